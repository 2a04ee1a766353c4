// Ids as types of their own, so that two of them cannot be swapped.
#pragma once

#include <compare>
#include <functional>
#include <string>

namespace angelia {

template <class Tag, class T = std::string>
struct StrongId {
    T value{};
    StrongId() = default;
    explicit StrongId(T v) : value(std::move(v)) {}
    auto operator<=>(const StrongId&) const = default;
};

}  // namespace angelia

template <class Tag, class T>
struct std::hash<angelia::StrongId<Tag, T>> {
    std::size_t operator()(const angelia::StrongId<Tag, T>& id) const {
        return std::hash<T>{}(id.value);
    }
};
