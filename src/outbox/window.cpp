#include "outbox/window.h"

#include <angelia/base/check.h>

#include <algorithm>

namespace angelia::outbox {

Window::Window(DispatchMode mode, WindowLimits limits, std::uint64_t checkpoint)
    : mode_(mode), limits_(limits), first_(checkpoint + 1), settled_through_(checkpoint) {}

bool Window::has_room() const {
    if (slots_.empty()) return true;
    return slots_.size() < limits_.messages_max && bytes_ < limits_.bytes_max;
}

Window::Slot& Window::slot(std::uint64_t seq) {
    ANGELIA_CHECK(seq >= first_ && seq <= last());
    return slots_[seq - first_];
}

std::string_view Window::line_of(const Slot& slot) const {
    return mode_ == DispatchMode::Serial ? std::string_view() : std::string_view(slot.key);
}

std::uint64_t Window::push(std::string key, std::size_t bytes) {
    ANGELIA_CHECK(has_room());
    slots_.push_back({std::move(key), bytes, State::Waiting});
    bytes_ += bytes;
    const auto seq = last();
    const Slot& pushed = slots_.back();
    if (mode_ == DispatchMode::Unordered) {
        if (!key_blocked(pushed.key)) startable_.insert(seq);
        return seq;
    }
    const std::string line(line_of(pushed));
    lines_[line].push_back(seq);
    line_moved(line);
    return seq;
}

void Window::line_moved(const std::string& line) {
    const auto at = lines_.find(line);
    if (at == lines_.end()) return;
    if (at->second.empty()) {
        lines_.erase(at);
        return;
    }
    const auto head = at->second.front();
    const Slot& first = slot(head);
    if (first.state == State::Waiting && !key_blocked(first.key)) startable_.insert(head);
}

std::optional<std::uint64_t> Window::start_next() {
    if (startable_.empty()) return std::nullopt;
    const auto seq = *startable_.begin();
    startable_.erase(startable_.begin());
    slot(seq).state = State::Running;
    ++running_;
    return seq;
}

void Window::failed(std::uint64_t seq) {
    Slot& s = slot(seq);
    ANGELIA_CHECK(s.state == State::Running);
    s.state = State::Retrying;
    --running_;
}

void Window::ready(std::uint64_t seq) {
    if (seq < first_) return;  // settled and gone while it waited
    Slot& s = slot(seq);
    if (s.state != State::Retrying) return;
    s.state = State::Waiting;
    if (!key_blocked(s.key)) startable_.insert(seq);
}

void Window::settle(std::uint64_t seq) {
    Slot& s = slot(seq);
    ANGELIA_CHECK(s.state != State::Settled);
    if (s.state == State::Running) --running_;
    s.state = State::Settled;
    startable_.erase(seq);
    if (mode_ != DispatchMode::Unordered) {
        const std::string line(line_of(s));
        std::erase(lines_[line], seq);
        line_moved(line);
    }
    while (settled_through_ < last() && slot(settled_through_ + 1).state == State::Settled)
        ++settled_through_;
}

std::vector<std::uint64_t> Window::block_key(const std::string& key) {
    blocked_.insert(key);
    std::vector<std::uint64_t> waiting;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (slots_[i].key != key) continue;
        const auto seq = first_ + i;
        startable_.erase(seq);
        if (slots_[i].state == State::Waiting || slots_[i].state == State::Retrying)
            waiting.push_back(seq);
    }
    return waiting;
}

void Window::release_key(const std::string& key) {
    if (blocked_.erase(key) == 0) return;
    if (mode_ != DispatchMode::Unordered) {
        line_moved(mode_ == DispatchMode::Serial ? std::string() : key);
        return;
    }
    for (std::size_t i = 0; i < slots_.size(); ++i)
        if (slots_[i].key == key && slots_[i].state == State::Waiting)
            startable_.insert(first_ + i);
}

void Window::checkpointed(std::uint64_t seq) {
    ANGELIA_CHECK(seq <= settled_through_);
    while (first_ <= seq) {
        bytes_ -= slots_.front().bytes;
        slots_.pop_front();
        ++first_;
    }
}

}  // namespace angelia::outbox
