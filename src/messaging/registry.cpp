#include "messaging/registry.h"

#include "delivery/envelope.h"

#include <algorithm>

namespace angelia::messaging {

std::vector<std::string> Subscriptions::topics() const {
    std::vector<std::string> out;
    out.reserve(listeners.size());
    for (const auto& [topic, unused] : listeners) out.push_back(topic);
    std::sort(out.begin(), out.end());
    return out;
}

std::vector<std::string> Subscriptions::watched_topics() const {
    auto out = topics();
    for (const auto& topic : pulled) {
        if (!listening(topic)) out.push_back(topic);
    }
    std::sort(out.begin(), out.end());
    return out;
}

std::shared_ptr<const Subscriptions> Registry::read() const {
    MutexLock lock(mutex_);
    return current_;
}

Result<std::vector<ListenerId>> Registry::add(std::vector<TopicHandler> wanted) {
    for (const auto& w : wanted) {
        ANGELIA_TRY(delivery::check_topic(w.topic));
        if (!w.handler)
            return {ErrorCode::BadValue, "listener on topic \"" + w.topic + "\" has no handler"};
    }
    std::vector<ListenerId> ids;
    MutexLock lock(mutex_);
    auto next = std::make_shared<Subscriptions>(*current_);
    for (auto& w : wanted) {
        std::string name = w.options.name.empty() ? "listener-" + std::to_string(++names_given_)
                                                  : std::move(w.options.name);
        auto& on_topic = next->listeners[w.topic];
        if (on_topic.empty()) ++next->topics_version;
        const bool taken = std::any_of(on_topic.begin(), on_topic.end(),
                                       [&](const auto& l) { return l->name == name; });
        if (taken) {
            return {ErrorCode::ConflictingOperationInProgress,
                    "a listener named \"" + name + "\" is registered on topic \"" + w.topic +
                        "\" already; names are unique per topic"};
        }
        ids.push_back({w.topic, name});
        on_topic.push_back(
            std::make_shared<Listener>(Listener{std::move(name), std::move(w.handler)}));
    }
    publish(std::move(next));
    return ids;
}

bool Registry::remove(const ListenerId& id) {
    MutexLock lock(mutex_);
    auto next = std::make_shared<Subscriptions>(*current_);
    auto topic = next->listeners.find(id.topic);
    if (topic == next->listeners.end()) return false;
    auto& list = topic->second;
    const auto found =
        std::find_if(list.begin(), list.end(), [&](const auto& l) { return l->name == id.name; });
    if (found == list.end()) return false;
    list.erase(found);
    if (list.empty()) {
        next->listeners.erase(topic);
        ++next->topics_version;
    }
    publish(std::move(next));
    return true;
}

void Registry::clear() {
    std::shared_ptr<const Subscriptions> old;  // handlers die after the lock
    MutexLock lock(mutex_);
    old = current_;
    publish(std::make_shared<Subscriptions>());
}

void Registry::pause(const std::string& topic, SteadyTime now) {
    MutexLock lock(mutex_);
    auto next = std::make_shared<Subscriptions>(*current_);
    if (!next->paused.insert(topic).second) return;
    paused_since_[topic] = now;
    publish(std::move(next));
}

milliseconds Registry::resume(const std::string& topic, SteadyTime now) {
    MutexLock lock(mutex_);
    auto since = paused_since_.find(topic);
    if (since == paused_since_.end()) return milliseconds(0);
    const auto paused_for = std::chrono::duration_cast<milliseconds>(now - since->second);
    paused_since_.erase(since);
    auto next = std::make_shared<Subscriptions>(*current_);
    next->paused.erase(topic);
    publish(std::move(next));
    return paused_for;
}

bool Registry::add_pulled(const std::string& topic) {
    MutexLock lock(mutex_);
    if (current_->pulled.count(topic) != 0) return false;
    auto next = std::make_shared<Subscriptions>(*current_);
    next->pulled.insert(topic);
    if (!next->listening(topic)) ++next->topics_version;
    publish(std::move(next));
    return true;
}

}  // namespace angelia::messaging
