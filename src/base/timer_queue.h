// Timers in the order of their deadlines, for the executors. Not thread-safe: its owner locks.
#pragma once

#include <angelia/base/executor.h>

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace angelia::detail {

class TimerQueue {
  public:
    using Task = Executor::Task;
    using TimerId = Executor::TimerId;

    TimerId add(SteadyTime deadline, Task task, std::uint64_t owner = 0) {
        const auto id = static_cast<TimerId>(++last_id_);
        by_deadline_.emplace(std::pair(deadline, id), Entry{std::move(task), owner});
        deadlines_.emplace(id, deadline);
        return id;
    }

    bool empty() const { return by_deadline_.empty(); }
    /// Only when not empty.
    SteadyTime next_deadline() const { return by_deadline_.begin()->first.first; }
    Task take_first() { return remove(by_deadline_.begin()); }

    /// Takes the task out; an empty function when there is no such timer (any more).
    Task take(TimerId id) {
        const auto found = deadlines_.find(id);
        return found == deadlines_.end() ? Task()
                                         : remove(by_deadline_.find(std::pair(found->second, id)));
    }

    std::vector<Task> take_all_of(std::uint64_t owner) {
        std::vector<Task> tasks;
        for (auto it = by_deadline_.begin(); it != by_deadline_.end();) {
            const auto here = it++;
            if (here->second.owner == owner) tasks.push_back(remove(here));
        }
        return tasks;
    }

  private:
    struct Entry {
        Task task;
        std::uint64_t owner;
    };
    using Map = std::map<std::pair<SteadyTime, TimerId>, Entry>;

    Task remove(Map::iterator it) {
        Task task = std::move(it->second.task);
        deadlines_.erase(it->first.second);
        by_deadline_.erase(it);
        return task;
    }

    std::uint64_t last_id_ = 0;
    Map by_deadline_;
    std::unordered_map<TimerId, SteadyTime> deadlines_;
};

}  // namespace angelia::detail
