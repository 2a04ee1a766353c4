#include "engine/changes/resume_token.h"

#include <angelia/bson/builder.h>

#include <optional>

namespace angelia::engine::changes {
namespace {

constexpr std::uint8_t kTokenVersion = 1;
constexpr std::size_t kTokenBytes = 1 + 4 + 4 + 1 + 4 + 1 + 2 + 8;
constexpr std::uint8_t kFromInvalidate = 1;
constexpr std::uint8_t kPlaceOnly = 2;
constexpr char kHexDigits[] = "0123456789ABCDEF";

class HexWriter {
  public:
    HexWriter() { text_.reserve(kTokenBytes * 2); }
    void number(std::uint64_t value, int bytes) {
        for (int i = bytes - 1; i >= 0; --i) byte(static_cast<std::uint8_t>(value >> (8 * i)));
    }
    void byte(std::uint8_t value) {
        text_.push_back(kHexDigits[value >> 4]);
        text_.push_back(kHexDigits[value & 15]);
    }
    std::string take() { return std::move(text_); }

  private:
    std::string text_;
};

/// Upper case only: two spellings of one place would not compare as strings.
std::optional<std::uint8_t> hex_digit(char c) {
    if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
    if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
    return std::nullopt;
}

class ByteReader {
  public:
    explicit ByteReader(const std::array<std::uint8_t, kTokenBytes>& bytes) : bytes_(bytes) {}
    std::uint32_t number(int bytes) {
        std::uint32_t value = 0;
        for (int i = 0; i < bytes; ++i) value = (value << 8) | bytes_[at_++];
        return value;
    }

  private:
    const std::array<std::uint8_t, kTokenBytes>& bytes_;
    std::size_t at_ = 0;
};

Error bad_token(std::string why) {
    return Error(ErrorCode::InvalidResumeToken,
                 "The resume token cannot be read: " + std::move(why));
}

}  // namespace

ResumeToken ResumeToken::high_water(bson::Timestamp time, const StoreId& store) {
    ResumeToken token;
    token.time = time;
    token.store = store;
    return token;
}

ResumeToken ResumeToken::event(bson::Timestamp time, std::uint32_t index, const StoreId& store) {
    ResumeToken token = high_water(time, store);
    token.kind = Kind::Event;
    token.index = index;
    return token;
}

ResumeToken ResumeToken::invalidate(bson::Timestamp time, std::uint32_t index,
                                    const StoreId& store) {
    ResumeToken token = event(time, index, store);
    token.from_invalidate = true;
    return token;
}

ResumeToken ResumeToken::place(bson::Timestamp time, std::uint32_t index, const StoreId& store) {
    ResumeToken token = event(time, index, store);
    token.place_only = true;
    return token;
}

std::string ResumeToken::to_hex() const {
    HexWriter hex;
    hex.byte(kTokenVersion);
    hex.number(time.seconds, 4);
    hex.number(time.increment, 4);
    hex.byte(static_cast<std::uint8_t>(kind));
    hex.number(index, 4);
    hex.byte(from_invalidate ? kFromInvalidate : place_only ? kPlaceOnly : 0);
    hex.number(fragment, 2);
    for (const std::uint8_t b : store) hex.byte(b);
    return hex.take();
}

bson::Document ResumeToken::to_document() const { return bson::make("_data", to_hex()); }

Result<ResumeToken> ResumeToken::parse(bson::DocumentView token) {
    const auto text = token.find("_data").get_string();
    if (!text) return bad_token("it has no string field '_data'");
    if (text->size() != kTokenBytes * 2) {
        return bad_token("'_data' has " + std::to_string(text->size()) + " characters, expected " +
                         std::to_string(kTokenBytes * 2));
    }
    std::array<std::uint8_t, kTokenBytes> bytes;
    for (std::size_t i = 0; i < kTokenBytes; ++i) {
        const auto high = hex_digit((*text)[2 * i]);
        const auto low = hex_digit((*text)[2 * i + 1]);
        if (!high || !low) return bad_token("'_data' is not upper-case hexadecimal");
        bytes[i] = static_cast<std::uint8_t>(*high << 4 | *low);
    }
    ByteReader reader(bytes);
    const std::uint32_t version = reader.number(1);
    if (version != kTokenVersion) {
        return bad_token("version " + std::to_string(version) + ", this server reads version " +
                         std::to_string(kTokenVersion));
    }
    ResumeToken out;
    out.time.seconds = reader.number(4);
    out.time.increment = reader.number(4);
    const std::uint32_t kind = reader.number(1);
    out.index = reader.number(4);
    const std::uint32_t flag = reader.number(1);
    out.fragment = static_cast<std::uint16_t>(reader.number(2));
    for (std::uint8_t& b : out.store) b = static_cast<std::uint8_t>(reader.number(1));

    out.kind = static_cast<Kind>(kind);
    out.from_invalidate = flag == kFromInvalidate;
    out.place_only = flag == kPlaceOnly;
    if (out.kind != Kind::HighWater && out.kind != Kind::Event)
        return bad_token("unknown kind " + std::to_string(kind));
    if (flag > kPlaceOnly) return bad_token("unknown flag " + std::to_string(flag));
    if (flag != 0 && out.fragment != 0) return bad_token("only an event is split");
    if (out.kind == Kind::HighWater && (out.index != 0 || flag != 0 || out.fragment != 0))
        return bad_token("a high-water mark that names an entry");
    return out;
}

}  // namespace angelia::engine::changes
