// The messages of one partition that were read and are not yet checkpointed, in commit order: what
// may be sent next in which mode, what is settled, and how far the checkpoint may move. Pure: no
// clock, no I/O.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace angelia::outbox {

enum class DispatchMode : std::uint8_t {
    Serial,        ///< one at a time
    OrderedByKey,  ///< different keys side by side, one key never; no key counts as one key
    Unordered,     ///< all side by side; the checkpoint is contiguous all the same
};

struct WindowLimits {
    std::size_t messages_max = 1024;                ///< counted from the durable checkpoint
    std::size_t bytes_max = std::size_t{16} << 20;  ///< at least one message fits
};

/// Not thread-safe. Sequence numbers start behind `checkpoint` and have no holes.
class Window {
  public:
    Window(DispatchMode mode, WindowLimits limits, std::uint64_t checkpoint);

    /// Whether reading may go on. When it is false nothing is dropped: the source stops.
    bool has_room() const;
    /// The message that was read next; its number. Call only while has_room().
    std::uint64_t push(std::string key, std::size_t bytes);

    /// The next message that may be sent now; it counts as running from then on. Numbers come out
    /// in order, except where a key waits.
    std::optional<std::uint64_t> start_next();
    /// The attempt is over without success; the message is to be sent again after ready(). Later
    /// messages of its key (Serial: all) wait.
    void failed(std::uint64_t seq);
    /// Its wait is over.
    void ready(std::uint64_t seq);
    /// Sent, or durably put aside (parked, dead): it holds up nobody any more. Errors of the caller
    /// (unknown or settled before) are broken promises.
    void settle(std::uint64_t seq);
    /// No message of this key may start until it is released; for what is not here, too. Those that
    /// are waiting here are handed out: they are to be parked behind the others, in order.
    std::vector<std::uint64_t> block_key(const std::string& key);
    void release_key(const std::string& key);
    bool key_blocked(const std::string& key) const { return blocked_.count(key) != 0; }

    /// Everything up to here is settled: the checkpoint may be written.
    std::uint64_t settled_through() const { return settled_through_; }
    /// The checkpoint of this number is durable: its slots are free.
    void checkpointed(std::uint64_t seq);

    std::uint64_t checkpoint() const { return first_ - 1; }
    std::size_t messages() const { return slots_.size(); }
    std::size_t bytes() const { return bytes_; }
    std::size_t running() const { return running_; }
    bool idle() const { return running_ == 0 && settled_through_ == last(); }

  private:
    enum class State : std::uint8_t { Waiting, Running, Retrying, Settled };
    struct Slot {
        std::string key;
        std::size_t bytes = 0;
        State state = State::Waiting;
    };
    std::uint64_t last() const { return first_ + slots_.size() - 1; }
    Slot& slot(std::uint64_t seq);
    /// Which line a message stands in; messages of one line go one after another.
    std::string_view line_of(const Slot& slot) const;
    void line_moved(const std::string& line);

    const DispatchMode mode_;
    const WindowLimits limits_;
    std::uint64_t first_;  ///< number of slots_.front()
    std::uint64_t settled_through_;
    std::deque<Slot> slots_;
    std::size_t bytes_ = 0;
    std::size_t running_ = 0;
    /// Unsettled numbers of each line, in order. Unordered: unused.
    std::unordered_map<std::string, std::deque<std::uint64_t>> lines_;
    std::set<std::uint64_t> startable_;
    std::set<std::string> blocked_;
};

}  // namespace angelia::outbox
