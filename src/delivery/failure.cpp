#include "delivery/failure.h"

#include <iterator>

namespace angelia::delivery {

namespace {

/// `*` matches any run of characters; everything else itself.
bool matches(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = t;
        } else if (p < pattern.size() && pattern[p] == text[t]) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

struct DefaultRule {
    std::string_view code;
    FailureClass kind;
};

// MongoDB's names, and HTTP's numbers as the webhook sink writes them.
constexpr DefaultRule kDefaults[] = {
    {"BSONObjectTooLarge", FailureClass::Data},
    {"DocumentValidationFailure", FailureClass::Data},
    {"InvalidBSON", FailureClass::Data},
    {"FailedToParse", FailureClass::Data},
    {"TypeMismatch", FailureClass::Data},
    {"BadValue", FailureClass::Data},
    {"InvalidLength", FailureClass::Data},
    {"Unauthorized", FailureClass::Config},
    {"AuthenticationFailed", FailureClass::Config},
    {"NamespaceNotFound", FailureClass::Config},
    {"InvalidNamespace", FailureClass::Config},
    {"InvalidOptions", FailureClass::Config},
    {"CommandNotFound", FailureClass::Config},
    {"http 401", FailureClass::Config},
    {"http 403", FailureClass::Config},
    {"http 404", FailureClass::Config},
    {"http 405", FailureClass::Config},
    {"http 408", FailureClass::Transient},
    {"http 410", FailureClass::Config},
    {"http 413", FailureClass::Data},
    {"http 415", FailureClass::Data},
    {"http 425", FailureClass::Transient},
    {"http 429", FailureClass::Transient},
    {"http 400", FailureClass::Data},
    {"http 422", FailureClass::Logic},
    {"http 409", FailureClass::Logic},
    {"http 4*", FailureClass::Logic},
};

/// Bytes of the character that starts at `at`, or 0 when there is no valid one.
std::size_t character_bytes(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(at);
    std::size_t length = 0;
    if (first < 0x80) length = 1;
    if (first >= 0xC2 && first <= 0xDF) length = 2;
    if (first >= 0xE0 && first <= 0xEF) length = 3;
    if (first >= 0xF0 && first <= 0xF4) length = 4;
    if (length == 0 || at + length > text.size()) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(at + i) & 0xC0) != 0x80) return 0;
    if (length < 3) return length;
    // Longer than needed, surrogates, and what lies beyond U+10FFFF (Unicode, table 3-7).
    const unsigned char second = byte(at + 1);
    const bool wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                       (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
    return wrong ? 0 : length;
}

}  // namespace

std::string_view name_of(FailureClass kind) {
    switch (kind) {
        case FailureClass::Transient:
            return "transient";
        case FailureClass::Data:
            return "data";
        case FailureClass::Logic:
            return "logic";
        case FailureClass::Config:
            return "config";
    }
    return "unknown";
}

Failure Failure::from(const Error& error) {
    Failure failure;
    failure.code = error_code_name(error.code);
    failure.message = error.message;
    failure.of_connection = is_retriable(error.code);
    return failure;
}

Classification::Classification(std::vector<FailureRule> rules) : rules_(std::move(rules)) {
    for (const auto& rule : kDefaults) rules_.push_back({std::string(rule.code), rule.kind});
}

FailureClass Classification::classify(const Failure& failure) const {
    for (const auto& rule : rules_)
        if (matches(rule.code, failure.code)) return rule.kind;
    return FailureClass::Transient;
}

NextAttempt after_failure(const RetryLimits& limits, FailureClass kind, const Failure& failure,
                          std::int32_t failures_before, double random) {
    NextAttempt next;
    if (kind == FailureClass::Data) return {AfterFailure::GiveUp, {}, true, true};
    if (kind == FailureClass::Logic)
        return {limits.hold_logic ? AfterFailure::Hold : AfterFailure::GiveUp, {}, true, true};
    next.counted = !failure.of_connection;
    next.tell_somebody = kind == FailureClass::Config;
    const auto& most =
        kind == FailureClass::Config ? limits.config_attempts_max : limits.attempts_max;
    if (next.counted && most && failures_before + 1 >= *most)
        return {AfterFailure::GiveUp, {}, true, true};
    next.delay = limits.schedule.delay(failures_before, random);
    if (failure.retry_after) next.delay = std::max(next.delay, *failure.retry_after);
    return next;
}

std::string storable_text(std::string_view text, std::size_t characters_max) {
    std::string out;
    std::size_t characters = 0;
    for (std::size_t at = 0; at < text.size() && characters < characters_max; ++characters) {
        const auto length = character_bytes(text, at);
        if (length == 0) {
            out += "\xEF\xBF\xBD";
            ++at;
            continue;
        }
        const bool control = length == 1 && (static_cast<unsigned char>(text[at]) < 0x20 ||
                                             static_cast<unsigned char>(text[at]) == 0x7F);
        if (control)
            out += ' ';
        else
            out += text.substr(at, length);
        at += length;
    }
    return out;
}

}  // namespace angelia::delivery
