// How a node takes part in a queue.
#pragma once

#include <angelia/base/clock.h>
#include <angelia/base/executor.h>
#include <angelia/base/log.h>
#include <angelia/base/result.h>

#include <memory>
#include <optional>
#include <string>

namespace angelia::messaging {

enum class Layout : std::uint8_t { Standard };

enum class DeliveryMode : std::uint8_t {
    AtLeastOnce,  ///< exclusive messages: claim with a renewed lease, mark after success; a crashed
                  ///< holder's work is taken over
    AtMostOnce,   ///< exclusive messages: mark before the handler runs, as Morphium's Standard
                  ///< layout does
};

enum class Compat : std::uint8_t {
    None,
    Morphium,  ///< AtMostOnce, Morphium's lock life and failure rules, ttl for exclusive messages
               ///< too, the sender's clock for age, all nine indexes
};

enum class ImplementationCheck : std::uint8_t { Ignore, Warn, Refuse };

enum class IndexSet : std::uint8_t {
    Own,       ///< what our queries use, under Morphium's names
    Morphium,  ///< all of Morphium's nine
};

/// Where a node's work runs. All of them or none: what is not given, the node makes itself at
/// start() and ends at stop(). The first three run one function at a time; none of them ever runs a
/// listener except `handlers`.
struct Executors {
    std::shared_ptr<Executor> lane;        ///< claims and lease renewal
    std::shared_ptr<Executor> background;  ///< polls, heartbeat, stream (re)builds
    std::shared_ptr<Executor>
        settle;  ///< marks, deletions and lock releases that no handler thread wrote itself
    std::shared_ptr<Executor> handlers;   ///< listeners
    std::shared_ptr<Executor> callbacks;  ///< callbacks of request_async
};

struct Options {
    std::string queue{"msg"};
    Layout layout{Layout::Standard};
    std::string id{};  ///< this node's sender id; empty: a random UUID. Alive elsewhere on the
                       ///< queue: start() refuses
    std::size_t window{100};        ///< messages claimed or polled at once, 1 to 10 000
    std::size_t threads{0};         ///< handler threads, 1 to 1 000; 0: 16
    milliseconds poll_pause{250};   ///< tick of the poll timer
    milliseconds fallback_poll{0};  ///< a look at the collection even while streams are healthy; 0:
                                    ///< 10 s, or half the lease if that is shorter
    milliseconds default_ttl{30'000};
    milliseconds lease{30'000};  ///< at least once: how long a claim lasts without renewal (renewed
                                 ///< at a third), 200 ms to 12 h
    milliseconds settle_delay{1};  ///< so long marks of handled messages wait for others, to be
                                   ///< written together; 0 to 50 ms
    DeliveryMode delivery{DeliveryMode::AtLeastOnce};
    Compat compat{Compat::None};
    IndexSet indexes{IndexSet::Own};
    bool use_streams{true};  ///< false: polling only
    ImplementationCheck implementation_check{ImplementationCheck::Warn};
    milliseconds heartbeat{30'000};            ///< participants document
    milliseconds participant_timeout{65'000};  ///< a participant not seen for so long is not alive
    bool status_listener{true};                ///< answer on the status topic
    std::string status_topic{"morphium.status_info"};
    bool auto_answer{false};      ///< a listener without an answer sends `msg` "received"
    LogFunction log{};            ///< empty: silence
    const Clock* clock{nullptr};  ///< nullptr: the machine's; must outlive the node
    Executors executors{};        ///< for tests and hosts with threads of their own
};

/// What start() and the first publish() check. Errors: BadValue (which option, what is allowed).
Result<void> check_options(const Options& options);

}  // namespace angelia::messaging

namespace angelia {
using messaging::Compat;
using messaging::DeliveryMode;
using messaging::ImplementationCheck;
using messaging::Layout;
}  // namespace angelia
