// A reader of one collection's change stream that goes on from its last token whenever the store
// comes back, and the check of what it was handed against what the store holds.
#pragma once

#include "faults/load.h"

#include <condition_variable>
#include <thread>

namespace angelia::engine::faults {

class StreamReader {
  public:
    explicit StreamReader(Namespace ns) : ns_(std::move(ns)) {}
    ~StreamReader() { stop(); }

    /// Opens a stream behind the last token and reads on a thread of its own until stop() or an
    /// error of the stream.
    void start(TestEngine& engine);
    void stop();
    /// Why the stream ended, if it did.
    std::optional<Error> error() const;

    /// A new stream from the first token must tell what this one was told, and more; told from the
    /// beginning it leads to the state of the collection. `behind` then holds what a reader that
    /// goes on from its last token would get.
    Violations check(TestEngine& engine);
    /// Where the oplog forgets: from each of some tokens a stream either tells everything this one
    /// was told behind it, or it is refused with ChangeStreamHistoryLost; never less without a
    /// word.
    Violations check_trimmed(TestEngine& engine);
    std::size_t delivered() const;
    /// Tokens that check_trimmed() saw refused.
    std::size_t forgotten() const { return forgotten_; }

    struct Event {
        std::string token, operation;
        std::int64_t id = 0;
        std::optional<std::int64_t> rev;  ///< where the event says it
        bool operator==(const Event&) const = default;
    };
    /// For proving that the check can fail.
    void pretend(Event event) { delivered_.push_back(std::move(event)); }

  private:
    void read_until_stopped(ChangeStream& stream);
    Result<std::vector<Event>> read_all(TestEngine& engine, const bson::Document& token) const;
    Violations replay(TestEngine& engine, const std::vector<Event>& all) const;

    Namespace ns_;
    bson::Document first_token_, last_token_;
    std::thread thread_;
    mutable std::mutex mutex_;
    std::condition_variable woken_;
    bool wake_ = false, stop_ = false;
    std::vector<Event> delivered_;
    std::vector<bson::Document> tokens_;  ///< of delivered_
    std::size_t forgotten_ = 0;
    std::optional<Error> error_;
};

}  // namespace angelia::engine::faults
