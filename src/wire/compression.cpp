#include "wire/compression.h"

#include <angelia/base/check.h>

#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace angelia::wire {
namespace {

constexpr std::string_view kCompressorNames[] = {"snappy", "zstd", "zlib"};

// The fast end of what each library offers: a client waits meanwhile.
constexpr int kZlibLevel = 1;
constexpr int kZstdLevel = 1;
// What a byte can stand for at most: a snappy copy of 64 bytes takes two bytes or more; deflate
// writes 258 bytes with two bits or more (zlib manual, "technical details").
constexpr std::size_t kSnappyRatioMax = 64;
constexpr std::size_t kZlibRatioMax = 1032;

Error damaged(std::string_view why) {
    return {ErrorCode::FailedToParse, fmt::format("OP_COMPRESSED: {}", why)};
}

bool unpack_snappy(std::string_view packed, char* to, std::size_t size) {
    std::size_t announced = 0;
    return snappy::GetUncompressedLength(packed.data(), packed.size(), &announced) &&
           announced == size && snappy::RawUncompress(packed.data(), packed.size(), to);
}

bool unpack_zlib(std::string_view packed, char* to, std::size_t size) {
    uLongf made = size;
    uLong used = packed.size();
    return uncompress2(reinterpret_cast<Bytef*>(to), &made,
                       reinterpret_cast<const Bytef*>(packed.data()), &used) == Z_OK &&
           made == size && used == packed.size();
}

bool unpack_zstd(std::string_view packed, char* to, std::size_t size) {
    return ZSTD_decompress(to, size, packed.data(), packed.size()) == size;
}

bool unpack_noop(std::string_view packed, char* to, std::size_t size) {
    if (packed.size() != size) return false;
    std::memcpy(to, packed.data(), size);
    return true;
}

/// False when so few bytes cannot hold so many.
bool size_possible(Compressor compressor, std::string_view packed, std::size_t size) {
    switch (compressor) {
        case Compressor::Noop:
            return packed.size() == size;
        case Compressor::Snappy:
            return size / kSnappyRatioMax <= packed.size();
        case Compressor::Zlib:
            return size / kZlibRatioMax <= packed.size();
        case Compressor::Zstd: {
            const auto announced = ZSTD_getFrameContentSize(packed.data(), packed.size());
            return announced != ZSTD_CONTENTSIZE_ERROR &&
                   (announced == ZSTD_CONTENTSIZE_UNKNOWN || announced <= size);
        }
    }
    return false;
}

bool unpack_into(Compressor compressor, std::string_view packed, char* to, std::size_t size) {
    switch (compressor) {
        case Compressor::Noop:
            return unpack_noop(packed, to, size);
        case Compressor::Snappy:
            return unpack_snappy(packed, to, size);
        case Compressor::Zlib:
            return unpack_zlib(packed, to, size);
        case Compressor::Zstd:
            return unpack_zstd(packed, to, size);
    }
    return false;
}

std::size_t packed_bound(Compressor compressor, std::size_t size) {
    switch (compressor) {
        case Compressor::Noop:
            return size;
        case Compressor::Snappy:
            return snappy::MaxCompressedLength(size);
        case Compressor::Zlib:
            return compressBound(static_cast<uLong>(size));
        case Compressor::Zstd:
            return ZSTD_compressBound(size);
    }
    return size;
}

/// Bytes written to `to`; 0 when it did not work.
std::size_t pack_into(Compressor compressor, std::string_view plain, char* to, std::size_t room) {
    switch (compressor) {
        case Compressor::Noop:
            return 0;
        case Compressor::Snappy: {
            std::size_t made = 0;
            snappy::RawCompress(plain.data(), plain.size(), to, &made);
            return made;
        }
        case Compressor::Zlib: {
            uLongf made = room;
            const int done =
                compress2(reinterpret_cast<Bytef*>(to), &made,
                          reinterpret_cast<const Bytef*>(plain.data()), plain.size(), kZlibLevel);
            return done == Z_OK ? made : 0;
        }
        case Compressor::Zstd: {
            const auto made = ZSTD_compress(to, room, plain.data(), plain.size(), kZstdLevel);
            return ZSTD_isError(made) != 0 ? 0 : made;
        }
    }
    return 0;
}

template <class T>
T load_packed(std::string_view bytes, std::size_t at) {
    T v;
    std::memcpy(&v, bytes.data() + at, sizeof v);
    return v;
}

template <class T>
void store_packed(char* at, T v) {
    std::memcpy(at, &v, sizeof v);
}

}  // namespace

std::span<const std::string_view> compressor_names() { return kCompressorNames; }

std::size_t announced_bytes(std::string_view message) {
    if (message.size() < kHeaderBytes + kCompressedPrefixBytes) return 0;
    const auto size = load_packed<std::int32_t>(message, kHeaderBytes + 4);
    return size < 0 ? 0 : static_cast<std::size_t>(size);
}

Result<Unpacked> unpack_message(std::string_view message) {
    ANGELIA_CHECK(message.size() >= kHeaderBytes);
    if (message.size() < kHeaderBytes + kCompressedPrefixBytes)
        return damaged("the message ends before what is packed");
    const auto op_code = load_packed<std::int32_t>(message, kHeaderBytes);
    const auto announced = load_packed<std::int32_t>(message, kHeaderBytes + 4);
    const auto id = load_packed<std::uint8_t>(message, kHeaderBytes + 8);
    const auto packed = message.substr(kHeaderBytes + kCompressedPrefixBytes);
    if (op_code == opcode::kCompressed) return damaged("a packed message inside a packed message");
    if (id > static_cast<std::uint8_t>(Compressor::Zstd))
        return damaged(fmt::format("compressor {} is unknown; 0 to 3 exist", id));
    if (announced < 0 || static_cast<std::size_t>(announced) > kMessageBytesMax - kHeaderBytes)
        return damaged(fmt::format("an uncompressed size of {} bytes; at most {} are allowed",
                                   announced, kMessageBytesMax - kHeaderBytes));
    const auto size = static_cast<std::size_t>(announced);
    const auto compressor = static_cast<Compressor>(id);
    if (!size_possible(compressor, packed, size))
        return damaged(fmt::format("{} packed bytes cannot hold the {} that are announced",
                                   packed.size(), size));
    // Not zeroed: memory that is announced and never filled is never touched either.
    std::shared_ptr<char[]> bytes(new char[kHeaderBytes + size]);
    if (!unpack_into(compressor, packed, bytes.get() + kHeaderBytes, size))
        return damaged("the packed bytes are damaged, or not of the announced size");
    std::memcpy(bytes.get(), message.data(), kHeaderBytes);
    store_packed(bytes.get(), static_cast<std::int32_t>(kHeaderBytes + size));
    store_packed(bytes.get() + 12, op_code);
    return Unpacked{std::move(bytes), kHeaderBytes + size, compressor};
}

std::optional<std::string> pack_message(Compressor compressor, std::string_view prefix,
                                        std::string_view body) {
    ANGELIA_CHECK(prefix.size() >= kHeaderBytes);
    std::string plain;
    plain.reserve(prefix.size() - kHeaderBytes + body.size());
    plain.append(prefix.substr(kHeaderBytes)).append(body);
    constexpr std::size_t kFront = kHeaderBytes + kCompressedPrefixBytes;
    std::string out(kFront + packed_bound(compressor, plain.size()), '\0');
    const std::size_t made = pack_into(compressor, plain, out.data() + kFront, out.size() - kFront);
    if (made == 0 || made + kCompressedPrefixBytes >= plain.size()) return std::nullopt;
    out.resize(kFront + made);
    std::memcpy(out.data(), prefix.data(), kHeaderBytes);
    store_packed(out.data(), static_cast<std::int32_t>(out.size()));
    store_packed(out.data() + 12, opcode::kCompressed);
    store_packed(out.data() + 16, load_packed<std::int32_t>(prefix, 12));
    store_packed(out.data() + 20, static_cast<std::int32_t>(plain.size()));
    out[24] = static_cast<char>(compressor);
    return out;
}

bool may_be_packed(std::string_view command) {
    // Contract 1.3, from the specification of OP_COMPRESSED.
    constexpr std::string_view kNever[] = {
        "hello",        "isMaster",   "ismaster",   "saslStart",       "saslContinue",   "getnonce",
        "authenticate", "createUser", "updateUser", "copydbSaslStart", "copydbgetnonce", "copydb"};
    return std::find(std::begin(kNever), std::end(kNever), command) == std::end(kNever);
}

}  // namespace angelia::wire
