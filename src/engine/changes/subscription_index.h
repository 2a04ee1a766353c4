// Finds the streams that may want an entry without asking all of them: by operation, then by the
// value of one field that a stream's filter pins.
#pragma once

#include "engine/changes/event_filter.h"

#include <array>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

namespace angelia::engine::changes {

class Subscription;

/// A set of operations, as bits.
using Operations = std::uint32_t;
constexpr Operations operation_bit(Operation operation) {
    return Operations{1} << static_cast<unsigned>(operation);
}

/// A condition that every event a stream wants fulfils: one of these operations and, unless `path`
/// is empty, one of these values at `path`.
struct Interest {
    Operations operations = 0;
    std::string path;               ///< of the event, one of those that pinned_path_allowed() names
    std::vector<std::string> keys;  ///< the values in the order-preserving encoding
};

/// The encoded values of an entry's event at a path, without the event: true when these are all;
/// false when that cannot be told, and everybody who asks for the path must be asked.
bool pinned_values(const OplogEntry& entry, std::string_view path, std::vector<std::string>& keys);
/// pinned_values() knows the path in the events of these operations; in others it is absent.
Operations pinned_operations(std::string_view path);

/// One list of streams per operation set and value. Not thread-safe.
class SubscriptionIndex {
    struct Place;
    struct List {
        std::vector<Place*> watching;
        std::size_t members = 0;
    };
    struct Group {
        Operations operations = 0;
        std::string path;
        List all;  ///< used when the path is empty
        std::unordered_map<std::string, List> by_key;
        std::size_t members = 0, watching = 0;
    };
    struct Place {
        Subscription* subscription;
        Group* group;
        List* list;
        const std::string* key;  ///< of the list in its group, or null
        std::size_t slot;
    };

  public:
    /// A stream's part of the index; made by add(), handed back to remove().
    class Entry {
        friend class SubscriptionIndex;
        std::vector<Place> places_;
    };

    void add(Subscription& subscription, const std::vector<Interest>& interests, Entry& entry);
    /// Must not be watching.
    void remove(Entry& entry);
    /// From now on offer() finds it; not twice.
    void watch(Entry& entry);
    void unwatch(Entry& entry);

    /// Calls `ask(subscription)` for each watching one that may want the entry. When it says true,
    /// it has called unwatch() for this one, and for no other.
    template <class Ask>
    void offer(const OplogEntry& entry, Operation operation, const Ask& ask) {
        for (Group& group : groups_) {
            if (group.watching == 0 || (group.operations & operation_bit(operation)) == 0) continue;
            if (group.path.empty()) {
                ask_list(group.all, ask);
                continue;
            }
            keys_.clear();
            if (pinned_values(entry, group.path, keys_)) {
                for (const std::string& key : keys_) {
                    const auto found = group.by_key.find(key);
                    if (found != group.by_key.end()) ask_list(found->second, ask);
                }
            } else {
                for (auto& [key, list] : group.by_key) ask_list(list, ask);
            }
        }
    }

  private:
    template <class Ask>
    static void ask_list(List& list, const Ask& ask) {
        for (std::size_t i = 0; i < list.watching.size();) {
            if (!ask(*list.watching[i]->subscription)) ++i;  // else the last one stands here now
        }
    }
    Group& group_for(const Interest& interest);

    std::list<Group> groups_;  ///< a list: places point into it
    std::vector<std::string> keys_;
};

}  // namespace angelia::engine::changes
