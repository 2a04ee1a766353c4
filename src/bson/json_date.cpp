#include "bson/json_date.h"

#include <fmt/format.h>

#include <chrono>

namespace angelia::bson {
namespace {

constexpr std::int64_t kYear10000Millis = 253'402'300'800'000;

/// Reads a fixed form from front to back; the first mismatch makes it fail for good.
class DateScanner {
  public:
    explicit DateScanner(std::string_view text) : rest_(text) {}

    int digits(std::size_t count) {
        if (rest_.size() < count) return fail();
        int value = 0;
        for (std::size_t i = 0; i < count; ++i) {
            if (!is_digit(rest_[i])) return fail();
            value = value * 10 + (rest_[i] - '0');
        }
        rest_.remove_prefix(count);
        return value;
    }
    void expect(char c) {
        if (!accept(c)) fail();
    }
    bool accept(char c) {
        if (rest_.empty() || rest_[0] != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    /// Digits behind the point as milliseconds; at least one.
    int fraction_millis() {
        int millis = 0;
        int scale = 100;
        if (rest_.empty() || !is_digit(rest_[0])) return fail();
        for (; !rest_.empty() && is_digit(rest_[0]); rest_.remove_prefix(1), scale /= 10)
            millis += (rest_[0] - '0') * scale;
        return millis;
    }
    bool at_end() const { return rest_.empty(); }
    bool failed() const { return failed_; }

  private:
    static bool is_digit(char c) { return c >= '0' && c <= '9'; }
    int fail() {
        failed_ = true;
        return 0;
    }
    std::string_view rest_;
    bool failed_ = false;
};

}  // namespace

bool has_iso_form(Date date) noexcept { return date.millis >= 0 && date.millis < kYear10000Millis; }

std::string format_iso_date(Date date) {
    using std::chrono::milliseconds;
    const std::chrono::sys_time<milliseconds> time{milliseconds(date.millis)};
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day ymd(day);
    const std::chrono::hh_mm_ss<milliseconds> clock(time - day);
    std::string text =
        fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(ymd.year()),
                    static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()),
                    clock.hours().count(), clock.minutes().count(), clock.seconds().count());
    if (clock.subseconds().count() != 0) text += fmt::format(".{:03}", clock.subseconds().count());
    return text + "Z";
}

std::optional<Date> parse_iso_date(std::string_view text) {
    DateScanner in(text);
    const int year = in.digits(4);
    in.expect('-');
    const int month = in.digits(2);
    in.expect('-');
    const int day = in.digits(2);
    in.expect('T');
    const int hour = in.digits(2);
    in.expect(':');
    const int minute = in.digits(2);
    in.expect(':');
    const int second = in.digits(2);
    const int millis = in.accept('.') ? in.fraction_millis() : 0;

    int offset_minutes = 0;
    if (!in.accept('Z')) {
        const int sign = in.accept('-') ? -1 : 1;
        if (sign > 0) in.expect('+');
        const int offset_hours = in.digits(2);
        const bool has_minutes = in.accept(':') || !in.at_end();
        const int minutes = has_minutes ? in.digits(2) : 0;
        if (offset_hours > 23 || minutes > 59) return std::nullopt;
        offset_minutes = sign * (offset_hours * 60 + minutes);
    }
    const std::chrono::year_month_day ymd{std::chrono::year(year),
                                          std::chrono::month(static_cast<unsigned>(month)),
                                          std::chrono::day(static_cast<unsigned>(day))};
    if (in.failed() || !in.at_end() || !ymd.ok() || hour > 23 || minute > 59 || second > 59)
        return std::nullopt;
    const std::int64_t days = std::chrono::sys_days(ymd).time_since_epoch().count();
    return Date{(((days * 24 + hour) * 60 + minute - offset_minutes) * 60 + second) * 1000 +
                millis};
}

}  // namespace angelia::bson
