#include "bson/json_lexer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

namespace angelia::bson {
namespace {

using Json = nlohmann::json;

/// Walks the text and tells where the lexer stands: the library's events carry no position.
class TrackedIterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    TrackedIterator(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
    const char& operator*() const { return *at_; }
    TrackedIterator& operator++() {
        *furthest_ = ++at_;
        return *this;
    }
    bool operator==(const TrackedIterator& other) const { return at_ == other.at_; }
    bool operator!=(const TrackedIterator& other) const { return at_ != other.at_; }

  private:
    const char* at_;
    const char** furthest_;
};

/// The library's interface, passed on to JsonEvents.
class SaxBridge final : public nlohmann::json_sax<Json> {
  public:
    explicit SaxBridge(JsonEvents& events) : events_(events) {}

    bool null() override { return keep(events_.null()); }
    bool boolean(bool v) override { return keep(events_.boolean(v)); }
    bool number_integer(number_integer_t v) override { return keep(events_.integer(v)); }
    bool number_unsigned(number_unsigned_t v) override {
        constexpr auto kMax =
            static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
        return keep(v <= kMax ? events_.integer(static_cast<std::int64_t>(v))
                              : events_.number(static_cast<double>(v)));
    }
    bool number_float(number_float_t v, const string_t&) override {
        return keep(events_.number(v));
    }
    bool string(string_t& v) override { return keep(events_.string(v)); }
    bool binary(binary_t&) override {
        return keep({ErrorCode::FailedToParse, "binary data is not JSON"});
    }
    bool start_object(std::size_t) override { return keep(events_.start_object()); }
    bool key(string_t& v) override { return keep(events_.key(v)); }
    bool end_object() override { return keep(events_.end_object()); }
    bool start_array(std::size_t) override { return keep(events_.start_array()); }
    bool end_array() override { return keep(events_.end_array()); }

    bool parse_error(std::size_t, const std::string&,
                     const nlohmann::detail::exception& e) override {
        // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ...": we
        // count lines ourselves.
        std::string_view what = e.what();
        const auto column = what.find(", column ");
        const auto start =
            column == std::string_view::npos ? what.find("] ") : what.find(": ", column);
        if (start != std::string_view::npos) what.remove_prefix(start + 2);
        return keep({ErrorCode::FailedToParse, std::string(what)});
    }

    Error take_error() { return std::move(error_); }

  private:
    bool keep(Result<void> result) {
        if (result) return true;
        error_ = std::move(result).error();
        return false;
    }
    JsonEvents& events_;
    Error error_;
};

std::string place_of(std::string_view text, std::size_t offset) {
    const std::string_view before = text.substr(0, offset);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const auto line_start = before.rfind('\n');
    const auto column =
        line_start == std::string_view::npos ? before.size() : before.size() - line_start - 1;
    return fmt::format("JSON at line {}, column {}", line, std::max<std::size_t>(column, 1));
}

}  // namespace

Result<void> lex_json(std::string_view text, JsonEvents& events) {
    // The library takes a zero byte for the end of the text.
    if (const auto zero = text.find('\0'); zero != std::string_view::npos) {
        return {ErrorCode::FailedToParse, place_of(text, zero + 1) + ": a zero byte is not JSON"};
    }
    SaxBridge bridge(events);
    const char* furthest = text.data();
    const TrackedIterator begin(text.data(), &furthest);
    const TrackedIterator end(text.data() + text.size(), &furthest);
    if (Json::sax_parse(begin, end, &bridge)) return {};
    Error error = bridge.take_error();
    if (error.code == ErrorCode::FailedToParse) {
        error.message =
            place_of(text, static_cast<std::size_t>(furthest - text.data())) + ": " + error.message;
    }
    return error;
}

}  // namespace angelia::bson
