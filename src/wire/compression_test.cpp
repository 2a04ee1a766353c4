#include "wire/compression.h"

#include <angelia/bson/builder.h>

#include <gtest/gtest.h>

#include <cstring>

namespace angelia::wire {
namespace {

constexpr Compressor kAll[] = {Compressor::Snappy, Compressor::Zlib, Compressor::Zstd};

/// A whole message that packs well.
std::string plain_message(std::size_t pad = 5000) {
    return encode_request(77, flag::kChecksumPresent,
                          bson::make("insert", "c", "pad", std::string(pad, 'x'), "$db", "app"));
}

std::string packed_message(Compressor compressor, std::string_view plain) {
    return pack_message(compressor, plain.substr(0, kHeaderBytes + 4),
                        plain.substr(kHeaderBytes + 4))
        .value();
}

/// A message with a front of the test's choice.
std::string made_message(std::int32_t op_code, std::int32_t size, std::uint8_t id,
                         std::string_view packed) {
    std::string out(kHeaderBytes + kCompressedPrefixBytes, '\0');
    out.append(packed);
    const std::int32_t fields[] = {
        static_cast<std::int32_t>(out.size()), 5, 0, opcode::kCompressed, op_code, size};
    std::memcpy(out.data(), fields, sizeof fields);
    out[24] = static_cast<char>(id);
    return out;
}

std::string refusal(std::string_view message) {
    const auto unpacked = unpack_message(message);
    return unpacked ? "accepted" : unpacked.error().to_string();
}

TEST(Compression, BringsBackTheWholeMessage) {
    const std::string plain = plain_message();
    for (const auto compressor : kAll) {
        const std::string packed = packed_message(compressor, plain);
        EXPECT_LT(packed.size(), plain.size() / 2);
        const Header header = read_header(packed);
        EXPECT_EQ(header.op_code, opcode::kCompressed);
        EXPECT_EQ(header.request_id, 77);
        EXPECT_EQ(static_cast<std::size_t>(header.length), packed.size());
        const auto unpacked = unpack_message(packed).value_or_throw();
        EXPECT_EQ(unpacked.view(), plain);
        EXPECT_EQ(unpacked.compressor, compressor);
        EXPECT_FALSE(parse_message(unpacked.view()).error.has_value()) << "checksum and all";
    }
}

TEST(Compression, TakesWhatIsWrappedOnly) {
    const std::string plain = plain_message();
    const auto body = std::string_view(plain).substr(kHeaderBytes);
    const auto wrapped =
        made_message(opcode::kMessage, static_cast<std::int32_t>(body.size()), 0, body);
    EXPECT_EQ(unpack_message(wrapped).value_or_throw().view().substr(kHeaderBytes), body);
}

TEST(Compression, LeavesAloneWhatDoesNotGetShorter) {
    const std::string plain = encode_request(1, 0, bson::make("ok", 1.0));
    for (const auto compressor :
         {Compressor::Noop, Compressor::Snappy, Compressor::Zlib, Compressor::Zstd})
        EXPECT_FALSE(pack_message(compressor, plain, "").has_value());
}

TEST(Compression, RefusesImpossibleSizesBeforeAllocating) {
    const auto over = static_cast<std::int32_t>(kMessageBytesMax);
    for (const std::int32_t size : {-1, INT32_MIN, INT32_MAX, over}) {
        EXPECT_NE(
            refusal(made_message(opcode::kMessage, size, 2, "xxxxxxxx")).find("uncompressed size"),
            std::string::npos)
            << size;
    }
    const auto most = static_cast<std::int32_t>(kMessageBytesMax - kHeaderBytes);
    for (const std::uint8_t id : {0, 1, 2})
        EXPECT_NE(refusal(made_message(opcode::kMessage, most, id, "xxxxxxxx")).find("cannot hold"),
                  std::string::npos);
    EXPECT_NE(refusal(made_message(opcode::kMessage, most, 3, "xxxxxxxx")).find("cannot hold"),
              std::string::npos);
}

TEST(Compression, RefusesTheUnknownTheCutAndTheNested) {
    EXPECT_EQ(refusal(made_message(opcode::kMessage, 4, 9, "xxxx")),
              "FailedToParse (9): OP_COMPRESSED: compressor 9 is unknown; 0 to 3 exist");
    EXPECT_NE(refusal(made_message(opcode::kCompressed, 4, 0, "xxxx")).find("inside a packed"),
              std::string::npos);
    const auto whole = made_message(opcode::kMessage, 0, 0, "");
    EXPECT_NE(refusal(std::string_view(whole).substr(0, whole.size() - 1)).find("ends before"),
              std::string::npos);
}

TEST(Compression, RefusesEveryCutAndAnyOtherSize) {
    const std::string plain = plain_message(200);
    for (const auto compressor : kAll) {
        const std::string packed = packed_message(compressor, plain);
        for (std::size_t size = kHeaderBytes + kCompressedPrefixBytes; size < packed.size(); ++size)
            EXPECT_NE(refusal(std::string_view(packed).substr(0, size)), "accepted") << size;
        EXPECT_NE(refusal(packed + "x"), "accepted") << "bytes behind the end";
        for (const int off : {-1, 1}) {
            std::string other = packed;
            const auto size = static_cast<std::int32_t>(plain.size() - kHeaderBytes) + off;
            std::memcpy(other.data() + 20, &size, sizeof size);
            EXPECT_NE(refusal(other), "accepted") << off;
        }
    }
}

TEST(Compression, SurvivesEveryFlippedByte) {
    const std::string plain = plain_message(300);
    for (const auto compressor : kAll) {
        const std::string packed = packed_message(compressor, plain);
        for (std::size_t i = kHeaderBytes; i < packed.size(); ++i) {
            std::string other = packed;
            other[i] = static_cast<char>(other[i] ^ 0x55);
            const auto unpacked = unpack_message(other);
            EXPECT_TRUE(!unpacked || unpacked->size <= kMessageBytesMax);
        }
    }
}

TEST(Compression, NeverPacksWhatComesBeforeAuthentication) {
    for (const char* name : {"hello", "isMaster", "ismaster", "saslStart", "saslContinue",
                             "getnonce", "authenticate", "createUser", "updateUser", "copydb"})
        EXPECT_FALSE(may_be_packed(name)) << name;
    EXPECT_TRUE(may_be_packed("find"));
}

}  // namespace
}  // namespace angelia::wire
