#include "engine/changes/stream_reader.h"

#include "engine/changes/split_event.h"

#include <angelia/bson/json.h>

#include <algorithm>

namespace angelia::engine::changes {
namespace {

/// A poll runs on an I/O thread: after so many entries it hands back what it has, and goes on at
/// the next call.
constexpr std::size_t kEntriesPerPoll = 4096;
constexpr std::size_t kEntriesPerReadMin = 16;
constexpr std::size_t kEntriesPerReadMax = 512;
constexpr std::size_t kBytesPerRead = std::size_t{4} << 20;
constexpr std::uint32_t kAllOfTime = 0xFFFFFFFF;

OplogPosition place_before(bson::Timestamp time) {
    if (time.as_uint64() == 0) return {time, 0};
    return {bson::Timestamp::from_uint64(time.as_uint64() - 1), kAllOfTime};
}

/// Errors of the oplog as a stream reports them.
Error stream_error(Error error) {
    if (error.code == ErrorCode::ChangeStreamHistoryLost) {
        return non_resumable(error.code,
                             "Resume of change stream was not possible, as the resume point may no "
                             "longer be in the oplog. (" +
                                 error.message + ")");
    }
    if (is_retriable(error.code) && !error.has_label("ResumableChangeStreamError"))
        error.labels.emplace_back("ResumableChangeStreamError");
    return error;
}

Error shut_down() {
    return stream_error(Error(ErrorCode::ShutdownInProgress,
                              "The server is shutting down: the change stream ends"));
}

Error not_split() {
    return non_resumable(ErrorCode::ChangeStreamFatalError,
                         "The resume token points into a split event, but the event is not split "
                         "so in this pipeline");
}

/// Keeps the hub from finishing its shutdown under a running poll.
class Visit {
  public:
    explicit Visit(StreamHub& hub) : hub_(hub), inside_(hub.enter()) {}
    ~Visit() {
        if (inside_) hub_.leave();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    explicit operator bool() const { return inside_; }

  private:
    StreamHub& hub_;
    const bool inside_;
};

}  // namespace

struct StreamReader::Gathering {
    std::size_t events_max;
    std::size_t bytes_max;
    std::vector<bson::Document> events;
    std::size_t bytes = 0;
    bool full = false;  ///< an event is waiting that did not fit

    bool has_room() const { return !full && events.size() < events_max; }
    /// False when it does not fit behind what is there; the first always fits. Then it is still the
    /// caller's.
    bool add(bson::Document&& event) {
        if (!events.empty() && bytes + event.size_bytes() > bytes_max) {
            full = true;
            return false;
        }
        bytes += event.size_bytes();
        events.push_back(std::move(event));
        return true;
    }
};

StreamReader::StreamReader(std::shared_ptr<StreamHub> hub, StreamPlan plan)
    : hub_(std::move(hub)), subscription_(std::move(plan)) {
    hub_->add(subscription_);
}

StreamReader::~StreamReader() { hub_->remove(subscription_); }

Result<std::shared_ptr<ChangeStream>> StreamReader::open(std::shared_ptr<StreamHub> hub,
                                                         StreamPlan plan) {
    const Visit visit(*hub);
    if (!visit) return shut_down();
    auto stream = std::make_shared<StreamReader>(hub, std::move(plan));
    ANGELIA_TRY(stream->place());
    return std::shared_ptr<ChangeStream>(std::move(stream));
}

Result<void> StreamReader::place() {
    MutexLock lock(mutex_);
    const StartPoint& start = subscription_.plan().start();
    if (start.kind == StartPoint::Kind::Now) {
        position_ = {hub_->oplog().newest_durable(), kAllOfTime};
        hub_->watch(subscription_, position_);
        return {};
    }
    if (start.kind == StartPoint::Kind::AtTime) position_ = place_before(start.time);
    if (start.kind == StartPoint::Kind::After) {
        const ResumeToken& token = start.token;
        position_ = place_before(token.time);
        if (token.place_only) {
            position_ = {token.time, token.index};
        } else if (token.kind == ResumeToken::Kind::Event) {
            // Read the entry itself again: it must still be there, and an invalidate may follow
            // from it.
            if (token.index > 0) position_ = {token.time, token.index - 1};
            resumed_at_ = OplogPosition{token.time, token.index};
        }
    }
    const auto check = hub_->oplog().read(position_, 1, 1);
    if (!check) {
        if (check.error().code == ErrorCode::ChangeStreamHistoryLost) hub_->count_history_lost();
        return stream_error(check.error());
    }
    if (!check->empty()) ANGELIA_TRY(check_resume_point(*check->front()));
    return {};
}

Result<void> StreamReader::check_resume_point(const OplogEntry& entry) {
    if (!resumed_at_ || resume_point_checked_) return {};
    resume_point_checked_ = true;
    const StreamPlan& plan = subscription_.plan();
    const Operation operation = operation_of(entry);
    if (resumed_at_ == OplogPosition{entry.time(), entry.sub()} && operation != Operation::None &&
        plan.in_scope(namespace_of(entry), operation) &&
        (plan.shape().expanded || !is_expanded_only(operation)))
        return {};
    return non_resumable(ErrorCode::ChangeStreamFatalError,
                         "cannot resume stream; the resume token was not found. " +
                             bson::to_json(plan.start().token.to_document()));
}

Error StreamReader::die(Error error) {
    if (error.code == ErrorCode::ChangeStreamHistoryLost) hub_->count_history_lost();
    dead_ = std::move(error);
    invalidating_.reset();
    return *dead_;
}

bson::Document StreamReader::token() const {
    const StoreId& store = hub_->store_id();
    if (finished_) return finished_->to_document();
    // Nothing read yet: not a place before the event that its client has seen.
    if (resumed_at_ && position_ < *resumed_at_ && !(split_ && split_->next > 0))
        return subscription_.plan().start().token.to_document();
    if (split_ && split_->next > 0) {
        ResumeToken place = ResumeToken::event(split_->at.time, split_->at.sub, store);
        place.fragment = static_cast<std::uint16_t>(split_->next);
        return place.to_document();
    }
    if (position_.sub != kAllOfTime) {
        const auto place = at_event_ ? ResumeToken::event(position_.time, position_.sub, store)
                                     : ResumeToken::place(position_.time, position_.sub, store);
        return place.to_document();
    }
    return ResumeToken::high_water(bson::Timestamp::from_uint64(position_.time.as_uint64() + 1),
                                   store)
        .to_document();
}

Result<ChangeStream::Batch> StreamReader::poll(std::size_t events_max, std::size_t bytes_max) {
    std::optional<Error> death;
    Batch batch;
    {
        MutexLock lock(mutex_);
        if (closed_.load(std::memory_order_acquire))
            return Error(ErrorCode::CursorKilled, "The change stream was closed");
        if (dead_) return *dead_;
        const Visit visit(*hub_);
        if (!visit) return shut_down();
        Gathering gathering{events_max, bytes_max, {}};
        if (!finished_ && events_max > 0) {
            auto gathered = gather(gathering);
            // Events before the failure are handed out first; the failure meets the next poll
            // again.
            if (!gathered && gathering.events.empty()) death = die(std::move(gathered).error());
        }
        if (!death) {
            batch.resume_token = token();
            batch.closed = finished_.has_value();
            batch.events = std::move(gathering.events);
            hub_->count_delivered(batch.events.size());
        }
    }
    if (death || batch.closed) hub_->end(subscription_);
    if (death) return *std::move(death);
    return batch;
}

Result<void> StreamReader::gather(Gathering& out) {
    std::size_t budget = kEntriesPerPoll;
    std::size_t step = std::clamp(out.events_max, kEntriesPerReadMin, kEntriesPerReadMax);
    while (out.has_room()) {
        if (invalidating_) return deliver_invalidate(out);
        if (split_) {
            deliver_fragments(out);
            continue;
        }
        const auto progress = hub_->progress(subscription_, position_);
        at_event_ = at_event_ && position_ == progress.position;
        position_ = progress.position;
        if (progress.watching || budget == 0) return {};

        const bson::Timestamp durable = hub_->oplog().newest_durable();
        auto read = hub_->oplog().read(position_, std::min(step, budget), kBytesPerRead);
        if (!read) return stream_error(std::move(read).error());
        if (read->empty()) {
            // Nothing behind position_ was durable after `durable` had been asked for.
            position_ =
                std::max(position_, OplogPosition{std::max(durable, position_.time), kAllOfTime});
            if (hub_->watch(subscription_, position_)) return {};
            --budget;  // the hub has seen more meanwhile
            continue;
        }
        budget -= read->size();
        hub_->count_read(read->size());
        for (const auto& entry : *read) {
            if (!out.has_room()) return {};
            ANGELIA_TRY(process(entry, out));
            if (invalidating_ || split_) break;
        }
        step = std::min(step * 2, kEntriesPerReadMax);
    }
    return {};
}

Result<void> StreamReader::process(const std::shared_ptr<const OplogEntry>& entry, Gathering& out) {
    ANGELIA_TRY(check_resume_point(*entry));
    const OplogPosition here{entry->time(), entry->sub()};
    bool delivered = false;
    const Operation operation = operation_of(*entry);
    const EventNamespace ns = namespace_of(*entry);
    const StreamPlan& plan = subscription_.plan();
    if (operation != Operation::None && plan.in_scope(ns, operation)) {
        const bool resumes_here = resumed_at_ == here;
        const std::uint16_t seen = resumes_here ? plan.start().token.fragment : 0;
        if (!resumes_here || seen > 0) {
            ANGELIA_TRY_ASSIGN(std::optional<bson::Document> event, event_of(*entry, operation));
            if (!event && seen > 0) return not_split();
            if (event) {
                ANGELIA_TRY_ASSIGN(const bool whole, deliver(*entry, *std::move(event), seen, out));
                if (!whole) return {};
                delivered = true;
            }
        }
        if (plan.invalidated_by(operation) && !(resumes_here && plan.start().token.from_invalidate))
            invalidating_ = entry;
    }
    position_ = here;
    at_event_ = delivered;
    return {};
}

Result<bool> StreamReader::deliver(const OplogEntry& entry, bson::Document event,
                                   std::uint16_t seen, Gathering& out) {
    if (event.size_bytes() <= bson::kDocumentBytesInternalMax) {
        if (seen > 0) return not_split();
        return out.add(std::move(event));
    }
    if (!subscription_.plan().splits_events())
        return Error(ErrorCode::BSONObjectTooLarge,
                     "A change event has " + std::to_string(event.size_bytes()) +
                         " bytes; allowed: " + std::to_string(bson::kDocumentBytesInternalMax));
    Split split;
    split.at = {entry.time(), entry.sub()};
    split.next = seen;
    ANGELIA_TRY_ASSIGN(
        split.fragments,
        split_event(event.view(), ResumeToken::event(entry.time(), entry.sub(), hub_->store_id()),
                    bson::kDocumentBytesInternalMax));
    if (seen > split.fragments.size()) return not_split();
    split_ = std::move(split);
    deliver_fragments(out);
    return !split_;
}

void StreamReader::deliver_fragments(Gathering& out) {
    while (split_->next < split_->fragments.size()) {
        if (!out.has_room() || !out.add(std::move(split_->fragments[split_->next]))) return;
        ++split_->next;
    }
    position_ = split_->at;
    at_event_ = true;
    split_.reset();
}

Result<void> StreamReader::deliver_invalidate(Gathering& out) {
    const OplogEntry& entry = *invalidating_;
    const StreamPlan& plan = subscription_.plan();
    bson::Document event = encode_invalidate(entry, hub_->store_id());
    // A filter may hide the invalidate; the stream ends all the same.
    if (plan.filter().matches(event.view())) {
        ANGELIA_TRY_ASSIGN(std::optional<bson::Document> passed, through_stages(std::move(event)));
        if (passed && !out.add(*std::move(passed))) return {};
    }
    finished_ = ResumeToken::invalidate(entry.time(), entry.sub(), hub_->store_id());
    invalidating_.reset();
    return {};
}

Result<std::optional<bson::Document>> StreamReader::event_of(const OplogEntry& entry,
                                                             Operation operation) {
    const StreamPlan& plan = subscription_.plan();
    const EventNamespace ns = namespace_of(entry);
    if (is_expanded_only(operation) && !plan.shape().expanded)
        return std::optional<bson::Document>();
    const Verdict verdict = plan.judge(ns, operation);
    if (verdict == Verdict::No) return std::optional<bson::Document>();
    EncodedEvent event = hub_->cache().get(entry, operation, plan.shape(), hub_->shares_events());
    const std::optional<Error> lack = plan.missing_image(entry, operation);
    const bool looks_up = plan.needs_lookup(operation);
    // What the filter would read is not there yet.
    const bool filter_waits =
        verdict == Verdict::Maybe && (lack || looks_up) && plan.filter().reads_images();
    if (verdict == Verdict::Maybe && !filter_waits && !plan.filter().matches(event.view()))
        return std::optional<bson::Document>();
    if (lack) return *lack;
    if (!looks_up) return through_stages(std::move(event).release());

    hub_->count_lookup();
    ANGELIA_TRY_ASSIGN(const std::optional<bson::Document> current, hub_->hooks().lookup(entry));
    bson::Document complete = with_full_document(event.view(), current);
    if (filter_waits && !plan.filter().matches(complete.view()))
        return std::optional<bson::Document>();
    return through_stages(std::move(complete));
}

Result<std::optional<bson::Document>> StreamReader::through_stages(bson::Document event) const {
    const aggregation::Pipeline& stages = subscription_.plan().stages();
    std::optional<bson::Document> out;
    if (stages.empty()) {
        out = std::move(event);
    } else {
        const bson::Value id(event["_id"]);
        ANGELIA_TRY_ASSIGN(out, stages.transform(std::move(event)));
        if (out && !out->view().find("_id").identical(id.view())) {
            return non_resumable(
                ErrorCode::ChangeStreamFatalError,
                "The pipeline of the change stream removed or changed the field _id of an event. "
                "It holds the resume token: "
                "without it the stream could not be resumed. Use only stages that keep it.");
        }
    }
    return out;
}

void StreamReader::wake_once(std::function<void()> wake) {
    hub_->set_wake(subscription_, std::move(wake));
}

void StreamReader::close() {
    closed_.store(true, std::memory_order_release);
    hub_->end(subscription_);
}

}  // namespace angelia::engine::changes
