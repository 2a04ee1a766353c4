#include "messaging/polls.h"

#include "messaging/filters.h"

#include <algorithm>

namespace angelia::messaging {
namespace {

constexpr std::size_t kNamedMax = 1000;  // ids named in a filter
constexpr std::size_t kLowMark =
    kNamedMax /
    2;  // a further batch is fetched when no more than these are in progress: all are named then

}  // namespace

void Polls::request(bool soon) { request(soon, kAll); }

void Polls::request(bool soon, Kinds kinds) {
    requested_ |= kinds;
    if (!soon || posted_.exchange(true)) return;
    context_.post(context_.run.background, [this] {
        posted_ = false;
        if (const Kinds wanted = requested_.exchange(0)) run(wanted);
    });
}

void Polls::next_batch_if_low() {
    if (more_ == 0 || intake_.in_progress_count() > kLowMark) return;
    if (const Kinds kinds = more_.exchange(0)) request(true, kinds);
}

void Polls::request_in(milliseconds delay) {
    context_.post_after(context_.run.background, delay, [this] { request(true); });
}

void Polls::tick(bool must) {
    const bool fallback = context_.clock.steady_now() - last_ >= context_.fallback_poll;
    Kinds wanted = requested_.exchange(0);
    if (must || fallback || intake_.take_overflow()) wanted = kAll;
    if (wanted != 0) run(wanted);
}

void Polls::run(Kinds kinds) {
    if (context_.stopping) return;
    if (kinds == kAll) last_ = context_.clock.steady_now();
    if (!look(kinds)) {
        requested_ |= kinds;  // at the next tick
        return;
    }
    if (!any_succeeded_) {
        any_succeeded_ = true;
        first_poll_();
    }
}

/// False when the store did not answer.
bool Polls::look(Kinds kinds) {
    const auto subscriptions = registry_.read();
    PollTerms terms;
    for (auto& topic : subscriptions->topics()) {
        if (subscriptions->paused.count(topic) == 0) terms.topics.push_back(std::move(topic));
    }
    terms.waited_answers = answers_.waited_ids(kNamedMax);
    if (terms.topics.empty() && terms.waited_answers.empty()) return true;
    context_.metrics.add(Counter::polls);
    const std::size_t limit = batch_size();
    Kinds full = 0;
    const auto one = [&](bool exclusive) {
        terms.now_millis = context_.server_millis();
        terms.in_progress = intake_.in_progress_ids(kNamedMax);
        terms.malformed = intake_.malformed_ids();
        const auto found = find(exclusive ? exclusive_poll_filter(context_, terms)
                                          : broadcast_poll_filter(context_, terms),
                                limit);
        if (!found) return false;
        const bool through = found->taken == 0 && intake_.in_progress_count() ==
                                                      0;  // full of what nobody here can act on
        if (found->documents >= limit && !through) full |= exclusive ? kExclusive : kOthers;
        return true;
    };
    if ((kinds & kExclusive) != 0 && !terms.topics.empty() && !one(true)) return false;
    if ((kinds & kOthers) != 0 && !one(false)) return false;
    if (full != 0) {
        more_ |= full;
        next_batch_if_low();
    }
    return true;
}

/// The window, and up to ten of them while messages are small: a look at a large backlog costs
/// about the same for both.
std::size_t Polls::batch_size() const {
    constexpr double kBatchBytes = 4.0 * (1u << 20);
    const std::size_t window = context_.options.window;
    if (mean_bytes_ <= 0) return window;
    return std::clamp(static_cast<std::size_t>(kBatchBytes / mean_bytes_), window, 10 * window);
}

std::optional<Polls::Found> Polls::find(bson::Document filter, std::size_t limit) {
    auto found = context_.store.find(
        {context_.main, std::move(filter), {}, poll_sort(), 0, static_cast<std::int64_t>(limit)},
        {});
    if (!found) {
        context_.metrics.add(Counter::poll_errors);
        context_.log(LogLevel::Warning, "a poll failed: " + found.error().to_string());
        return std::nullopt;
    }
    std::vector<bson::DocumentView> views;
    views.reserve(found->size());
    std::size_t bytes = 0;
    for (const auto& document : *found) {
        views.push_back(document.view());
        bytes += document.size_bytes();
    }
    if (!views.empty())
        mean_bytes_ = static_cast<double>(bytes) / static_cast<double>(views.size());
    const auto taken = intake_.offer(views, Source::Poll);
    context_.metrics.add(Counter::poll_found, static_cast<std::int64_t>(taken));
    if (streams_live_ && any_succeeded_)
        context_.metrics.add(Counter::rescued, static_cast<std::int64_t>(taken));
    return Found{found->size(), taken};
}

}  // namespace angelia::messaging
