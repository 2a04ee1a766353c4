// Result<T>: a value or an Error. Member names follow std::expected, so that it can become an alias
// of it one day.
#pragma once

#include <angelia/base/error.h>

#include <optional>
#include <stdexcept>
#include <utility>
#include <variant>

namespace angelia {

/// Thrown by value_or_throw() only; everything else in the library reports by value.
class Exception : public std::runtime_error {
  public:
    explicit Exception(Error error)
        : std::runtime_error(error.to_string()), error_(std::move(error)) {}
    const Error& error() const noexcept { return error_; }

  private:
    Error error_;
};

namespace detail {
[[noreturn]] void bad_result_access(const Error& error);
}

/// Holds a value or an Error. Reading the wrong side is a broken promise of the caller and aborts.
template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
    Result(ErrorCode code, std::string message) : Result(Error(code, std::move(message))) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    T& value() & {
        check();
        return std::get<0>(state_);
    }
    const T& value() const& {
        check();
        return std::get<0>(state_);
    }
    T&& value() && {
        check();
        return std::get<0>(std::move(state_));
    }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    const Error& error() const& { return std::get<1>(state_); }
    Error&& error() && { return std::get<1>(std::move(state_)); }

    template <class U>
    T value_or(U&& other) && {
        return has_value() ? std::get<0>(std::move(state_))
                           : static_cast<T>(std::forward<U>(other));
    }
    /// For main(), examples and tests: the value, or an angelia::Exception.
    T value_or_throw() && {
        if (!has_value()) throw Exception(std::get<1>(std::move(state_)));
        return std::get<0>(std::move(state_));
    }

  private:
    void check() const {
        if (!has_value()) detail::bad_result_access(std::get<1>(state_));
    }
    std::variant<T, Error> state_;
};

/// Success costs one flag: the Error is only built when there is one.
template <>
class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}
    Result(ErrorCode code, std::string message) : error_(std::in_place, code, std::move(message)) {}

    bool has_value() const noexcept { return !error_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }
    void value() const {
        if (error_) detail::bad_result_access(*error_);
    }
    const Error& error() const& { return error_.value(); }
    Error&& error() && { return std::move(error_).value(); }
    void value_or_throw() && {
        if (error_) throw Exception(std::move(*error_));
    }

  private:
    std::optional<Error> error_;
};

#define ANGELIA_CONCAT_INNER(a, b) a##b
#define ANGELIA_CONCAT(a, b) ANGELIA_CONCAT_INNER(a, b)

/// ANGELIA_TRY(expression): returns the error of a Result from the enclosing function, else goes
/// on.
#define ANGELIA_TRY(...)                                            \
    do {                                                            \
        if (auto angelia_result_ = (__VA_ARGS__); !angelia_result_) \
            return std::move(angelia_result_).error();              \
    } while (false)

/// ANGELIA_TRY_ASSIGN(declaration, expression): declares the value of a Result, or returns its
/// error.
#define ANGELIA_TRY_ASSIGN(declaration, ...) \
    ANGELIA_TRY_ASSIGN_INNER(ANGELIA_CONCAT(angelia_result_, __LINE__), declaration, __VA_ARGS__)
#define ANGELIA_TRY_ASSIGN_INNER(result, declaration, ...) \
    auto result = (__VA_ARGS__);                           \
    if (!result) return std::move(result).error();         \
    declaration = std::move(result).value()

}  // namespace angelia
