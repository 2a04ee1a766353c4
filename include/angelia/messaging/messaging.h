// Messages between nodes of one queue: topics, request/reply, work queues.
//
//     angelia::Messaging bus{store, {.queue = "msg"}};
//     bus.listen("user.lookup", [](const angelia::Message& m) -> angelia::Reply {
//         return angelia::answer("ok").with("userId", m.value);
//     });
//     bus.start();
//     auto reply = bus.request({.topic = "user.lookup", .value = "4711"}, 5s);
#pragma once

#include <angelia/messaging/message.h>
#include <angelia/messaging/options.h>
#include <angelia/store/store.h>

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace angelia::messaging {

class Node;

/// Runs on a handler thread; may block, may call every function of Messaging except stop(). A
/// thrown exception counts as reject(what()).
using Handler = std::function<Reply(const Message&)>;
using AnswerCallback = std::function<void(const Message& answer)>;

struct ListenOptions {
    std::string name{};  ///< the same name twice on one topic is refused; empty: "listener-1",
                         ///< "listener-2", ...
};

/// One listener, for unlisten().
struct ListenerId {
    std::string topic{};
    std::string name{};
};

struct TopicHandler {
    std::string topic{};
    Handler handler{};
    ListenOptions options{};
};

/// A decision about one message, newest last; kept for the last 512.
struct DecisionEntry {
    SystemTime at{};
    bson::ObjectId id{};
    std::string what{};  ///< "handle", "claim", "answer", "skip: locked", ...
};

/// Numbers of this node; all counters since start().
struct Status {
    std::string id{};
    std::string queue{};
    std::string layout{};
    bool running{false};
    bool streams{false};  ///< main and lock stream are live now
    bool polling_only{false};
    std::map<std::string, std::vector<std::string>> listeners{};  ///< topic: listener names
    std::vector<std::string> paused_topics{};
    std::size_t waiting_for_answers{0};
    std::size_t in_progress{0};  ///< taken and not finished
    std::size_t running_handlers{0};
    std::map<std::string, std::int64_t> counters{};  ///< see docs/messaging.md, "Counters"
    std::map<std::string, std::int64_t>
        expired_by_topic{};  ///< expired before anybody handled them
    std::map<std::string, std::int64_t>
        malformed{};  ///< documents that could not be read, by reason
};

/// A node: one sender id on one queue. Starts no thread before start(). Threads: everything is
/// safe. Errors of every call that reaches the store: those of store::Store. After stop():
/// ShutdownInProgress.
class Messaging {
  public:
    explicit Messaging(store::Store store, Options options = {});
    ~Messaging();  ///< stop(2 s)
    Messaging(const Messaging&) = delete;
    Messaging& operator=(const Messaging&) = delete;

    /// Checks options, announces this node, opens streams, and looks at what is stored. Once per
    /// object. Errors: BadValue (which option, what is allowed), ConflictingOperationInProgress
    /// (the id is alive on this queue), IllegalOperation (another layout is in use and
    /// implementation_check says Refuse; started before), those of the store.
    Result<void> start();
    /// True as soon as the streams run (or it was found that this server has none) and the first
    /// look at the collection is done.
    bool wait_ready(milliseconds timeout);
    /// Four phases: no intake (blocked callers get ShutdownInProgress), running handlers finish,
    /// their outcomes are settled, close. Claimed messages whose handler has not begun are
    /// released. Error ExceededTimeLimit: handlers still run after `timeout`; their messages stay
    /// leased until the lease runs out. Calling it twice is harmless.
    Result<void> stop(milliseconds timeout = milliseconds(10'000));

    /// Stores the message; returns its id once the store acknowledged it (majority). Works before
    /// start(). Errors: BadValue (topic, ttl, ...), DuplicateKey (chosen id), BSONObjectTooLarge.
    Result<bson::ObjectId> publish(Message message);
    /// All in one bulk insert. An error names the first message that failed; the others are stored.
    /// (A template, so that publish({.topic = …}) always means one message.)
    template <class Messages>
    requires std::same_as<std::remove_cvref_t<Messages>, std::vector<Message>>
        Result<std::vector<bson::ObjectId>> publish(Messages&& messages) {
        return publish_many(std::forward<Messages>(messages));
    }
    /// To this node's own listeners.
    Result<bson::ObjectId> publish_to_self(Message message);

    /// First answer. Errors: ExceededTimeLimit (no answer in time), IllegalOperation (not started),
    /// those of publish.
    Result<Message> request(Message message, milliseconds timeout);
    /// Returns as soon as `count` answers are there; at the end of `timeout` what came, possibly
    /// nothing. count 0: all that come in that time.
    Result<std::vector<Message>> request_all(Message message, std::size_t count,
                                             milliseconds timeout);
    /// `on_answer` per answer (of an exclusive request: the first only), on a callback thread;
    /// `on_timeout` once at the end unless an exclusive request was answered. After stop() neither
    /// runs any more. Returns the request's id.
    Result<bson::ObjectId> request_async(Message message, milliseconds timeout,
                                         AnswerCallback on_answer,
                                         std::function<void()> on_timeout = {});

    /// Delivers messages of exactly this topic, stored ones included. Several listeners of a topic
    /// run one after another, in order of registration. `handler`: Reply(const Message&) or
    /// void(const Message&). Errors: BadValue (topic, empty handler),
    /// ConflictingOperationInProgress (name taken on this topic).
    template <class F>
    Result<ListenerId> listen(std::string topic, F handler, ListenOptions options = {}) {
        if constexpr (std::is_void_v<std::invoke_result_t<F&, const Message&>>) {
            return add_listener(
                std::move(topic),
                [call = std::move(handler)](const Message& m) mutable {
                    call(m);
                    return Reply();
                },
                std::move(options));
        } else {
            return add_listener(std::move(topic), Handler(std::move(handler)), std::move(options));
        }
    }
    /// All or none of them.
    Result<std::vector<ListenerId>> listen_many(std::vector<TopicHandler> listeners);
    /// True when it was there. A handler that runs now finishes.
    bool unlisten(const ListenerId& id);

    /// Local: messages of the topic stay where they are until resume_topic(). Answers to waiting
    /// calls still pass.
    void pause_topic(const std::string& topic);
    /// How long it was paused; 0 if it was not.
    milliseconds resume_topic(const std::string& topic);

    /// Pull consumption of exclusive messages: claims up to `count` of the topic, waiting up to
    /// `wait` for the first. Each is leased for Options::lease and not renewed: extend() it, or
    /// acknowledge() it in time. Returns fewer, possibly none. Not with AtMostOnce.
    Result<std::vector<Message>> receive(const std::string& topic, std::size_t count,
                                         milliseconds wait);
    /// Done. Error StaleEpoch: the lease was lost and somebody else has the message by now; nothing
    /// was changed.
    Result<void> acknowledge(const Message& message);
    /// From now on `lease` more. Error StaleEpoch as above.
    Result<void> extend(const Message& message, milliseconds lease);
    /// Offered again after a back-off (1 s doubling to 60 s). Error StaleEpoch as above.
    Result<void> reject(const Message& message, std::string reason);

    const std::string& id() const;
    std::string collection_name() const;
    std::string lock_collection_name() const;
    std::string participants_collection_name() const;
    Status status() const;
    std::vector<DecisionEntry> decisions() const;
    /// Documents of other senders that nobody marked yet.
    Result<std::int64_t> pending_count();

  private:
    Result<std::vector<bson::ObjectId>> publish_many(std::vector<Message> messages);
    Result<ListenerId> add_listener(std::string topic, Handler handler, ListenOptions options);
    std::shared_ptr<Node> node_;  // shared with tasks that still run
};

}  // namespace angelia::messaging

namespace angelia {
using messaging::Messaging;
}  // namespace angelia
