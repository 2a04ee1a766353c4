// Remembers ids for a while: bounded in number and in age, oldest forgotten first.
#pragma once

#include <angelia/base/clock.h>
#include <angelia/bson/types.h>

#include <deque>
#include <unordered_map>

namespace angelia::delivery {

/// Not thread-safe.
class IdMemory {
  public:
    IdMemory(std::size_t count_max, microseconds age_max)
        : count_max_(count_max), age_max_(age_max) {}

    /// True when it was not there.
    bool insert(const bson::ObjectId& id, SteadyTime now) {
        trim(now);
        auto [at, is_new] = ids_.try_emplace(id, next_);
        if (!is_new) return false;
        order_.push_back({next_++, id, now});
        trim(now);
        return true;
    }
    bool contains(const bson::ObjectId& id) const { return ids_.count(id) != 0; }
    void erase(const bson::ObjectId& id) { ids_.erase(id); }
    /// Forgets what is too old or too much.
    void trim(SteadyTime now) {
        while (!order_.empty() &&
               (order_.size() > count_max_ || order_.front().at + age_max_ < now)) {
            auto found = ids_.find(order_.front().id);
            if (found != ids_.end() && found->second == order_.front().number) ids_.erase(found);
            order_.pop_front();
        }
    }
    std::size_t size() const { return ids_.size(); }

  private:
    struct Entry {
        std::uint64_t number;
        bson::ObjectId id;
        SteadyTime at;
    };
    std::size_t count_max_;
    microseconds age_max_;
    std::uint64_t next_ = 0;
    std::deque<Entry> order_;
    std::unordered_map<bson::ObjectId, std::uint64_t> ids_;
};

}  // namespace angelia::delivery
