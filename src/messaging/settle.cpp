#include "messaging/settle.h"

#include "messaging/settle_writes.h"

#include <algorithm>

namespace angelia::messaging {

namespace {

/// Others may take the message from now on: no reason to wait.
bool frees_message(const Settlement& s) {
    return s.outcome == Outcome::Release || s.outcome == Outcome::Failed;
}

}  // namespace

Settler::Batch Settler::take(std::deque<Settlement>& from) {
    Batch batch;
    while (!from.empty() && batch.size() < kBatchMax) {
        batch.push_back(std::move(from.front()));
        from.pop_front();
    }
    return batch;
}

void Settler::settle(Settlement settlement) {
    if (settlement.answers.empty()) {
        {
            MutexLock lock(mutex_);
            add_mark(std::move(settlement));
        }
        return write_if_due();
    }
    Batch batch, none, again;
    {
        MutexLock lock(mutex_);
        answers_.push_back(std::move(settlement));
        if (storing_) return;
        storing_ = true;
        batch = take(answers_);
    }
    // One batch here, so that a lone message costs no hand-over; what came meanwhile is the
    // executor's, so that this thread gets back to its handlers.
    store(batch, none, again);
    stored(std::move(batch), std::move(again));
    write_if_due();
}

void Settler::settle_later(Settlement settlement) {
    bool store = false, now = false;
    {
        MutexLock lock(mutex_);
        if (settlement.answers.empty()) {
            add_mark(std::move(settlement));
            now = mark_due();
        } else {
            answers_.push_back(std::move(settlement));
            store = !storing_;
            storing_ = true;
        }
    }
    if (store) return store_on_executor();
    now ? flush_on_executor() : arm();
}

void Settler::add_mark(Settlement settlement) {
    flush_wanted_ = flush_wanted_ || frees_message(settlement);
    marks_.push_back(std::move(settlement));
}

bool Settler::mark_due() const {
    return !marks_.empty() && (flush_wanted_ || marks_.size() >= kMarksMany ||
                               context_.options.settle_delay <= milliseconds(0));
}

void Settler::write_if_due() {
    bool now;
    {
        MutexLock lock(mutex_);
        now = mark_due();
    }
    now ? flush() : arm();
}

void Settler::store_on_executor() {
    context_.post(context_.run.settle, [this] { store_next(); });
}

/// One batch of answers, and the marks that are there: one call for both.
void Settler::store_next() {
    Batch batch, riders, again;
    {
        MutexLock lock(mutex_);
        batch = take(answers_);
        if (!marking_ && !marks_.empty()) {
            marking_ = true;
            flush_wanted_ = false;
            riders = take(marks_);
        }
    }
    const bool rode = !riders.empty();
    store(batch, riders, again);
    stored(std::move(batch), std::move(again));
    rode ? marked(std::move(riders)) : arm();
}

/// Ends the storing: outcomes whose answers are stored join the marks.
void Settler::stored(Batch batch, Batch again) {
    if (!again.empty()) try_again(std::move(again));
    bool more;
    {
        MutexLock lock(mutex_);
        for (auto& settlement : batch) {
            if (settlement.outcome == Outcome::AnswersOnly) continue;
            add_mark(std::move(settlement));
        }
        more = storing_ = !answers_.empty();
        if (idle()) became_idle_.notify_all();
    }
    for (const auto& settlement : batch) {
        if (settlement.outcome == Outcome::AnswersOnly) finish(settlement);
    }
    if (more) store_on_executor();
}

/// Makes sure that what waits is written in time.
void Settler::arm() {
    {
        MutexLock lock(mutex_);
        if (marks_.empty() || armed_ || marking_) return;
        armed_ = true;
    }
    context_.post_after(context_.run.settle, context_.options.settle_delay, [this] {
        {
            MutexLock lock(mutex_);
            armed_ = false;
        }
        flush();
    });
}

void Settler::flush_on_executor() {
    context_.post(context_.run.settle, [this] { flush(); });
}

/// Writes the marks that are there, unless somebody is at it, who then goes on.
void Settler::flush() {
    Batch batch, again;
    {
        MutexLock lock(mutex_);
        if (marks_.empty()) return;
        if (marking_) {
            flush_wanted_ = true;
            return;
        }
        marking_ = true;
        flush_wanted_ = false;
        batch = take(marks_);
    }
    write_marks(batch, again);
    if (!again.empty()) try_again(std::move(again));
    marked(std::move(batch));
}

/// `batch` is written; ends the marking.
void Settler::marked(Batch batch) {
    for (const auto& settlement : batch) finish(settlement);
    bool now;
    {
        MutexLock lock(mutex_);
        marking_ = false;
        now = mark_due();
        if (idle()) became_idle_.notify_all();
    }
    now ? flush_on_executor() : arm();
    if (!batch.empty()) hooks_.room();
}

/// `riders`: marks for the same call. Moves what failed to `again`.
void Settler::store(Batch& batch, Batch& riders, Batch& again) {
    SettleBulk bulk(context_, context_.server_millis());
    for (std::size_t i = 0; i < batch.size(); ++i) bulk.add_answers(batch[i], i);
    for (const auto& rider : riders) bulk.add_marks(rider);
    auto done = context_.store.bulk_write(bulk.take(), false, Context::repeatable());
    if (!done) {
        context_.metrics.add(Counter::settle_errors);
        context_.log(LogLevel::Warning, "answers could not be stored: " + done.error().to_string());
        for (auto* failed : {&batch, &riders}) {
            for (auto& s : *failed) again.push_back(std::move(s));
            failed->clear();
        }
        return;
    }
    context_.metrics.add(Counter::answers_sent, done->inserted);
    for (const auto& failed : done->errors) {
        if (failed.index >= bulk.answer_count()) {
            mark_refused(failed.error);
            continue;
        }
        // A duplicate is our own earlier try whose reply was lost; all else would fail again.
        if (failed.error.code == ErrorCode::DuplicateKey) continue;
        context_.metrics.add(Counter::settle_errors);
        auto& settlement = batch[bulk.owner(failed.index)];
        context_.log(LogLevel::Error, "an answer could not be stored: " + failed.error.to_string());
        if (settlement.work->message().exclusive && settlement.outcome == Outcome::Done) {
            settlement.outcome = Outcome::Failed;
            settlement.reason = "the answer could not be stored: " + failed.error.message;
        }
    }
    for (auto& settlement : batch) settlement.answers.clear();
    count_marks(bulk, *done);
    tell_availability(riders);
}

void Settler::write_marks(Batch& batch, Batch& again) {
    SettleBulk bulk(context_, context_.server_millis());
    for (const auto& s : batch) bulk.add_marks(s);
    auto ops = bulk.take();
    if (ops.empty()) return;
    auto done = context_.store.bulk_write(std::move(ops), false, Context::repeatable());
    if (!done) {
        // Conditional writes, all of them: what was written before the error is not changed by a
        // second try.
        context_.metrics.add(Counter::settle_errors);
        context_.log(LogLevel::Warning, "marks could not be written: " + done.error().to_string());
        again = std::move(batch);
        batch.clear();
        return;
    }
    for (const auto& failed : done->errors) mark_refused(failed.error);
    count_marks(bulk, *done);
    tell_availability(batch);
}

void Settler::mark_refused(const Error& error) {
    context_.metrics.add(Counter::settle_errors);
    context_.log(LogLevel::Error, "a mark was refused: " + error.to_string());
}

void Settler::count_marks(const SettleBulk& bulk, const store::BulkResult& done) {
    const auto counts = bulk.count(done);
    context_.metrics.add(Counter::marks, counts.marks);
    context_.metrics.add(Counter::deleted, counts.deleted);
    context_.metrics.add(Counter::stale_outcomes, counts.stale);
}

/// Messages became available again, at once or after their back-off.
void Settler::tell_availability(const Batch& batch) {
    bool released = false;
    milliseconds soonest_retry = milliseconds::max();
    for (const auto& s : batch) {
        if (!s.work->message().exclusive || s.mark_only) continue;
        if (s.outcome == Outcome::Release) released = true;
        if (s.outcome != Outcome::Failed) continue;
        if (context_.at_least_once) {
            soonest_retry =
                std::min(soonest_retry, delivery::retry_delay(s.work->message().attempt));
        } else {
            released = true;
        }
    }
    if (released) hooks_.poll(true);
    if (soonest_retry != milliseconds::max()) hooks_.retry_in(soonest_retry);
}

void Settler::finish(const Settlement& s) {
    if (s.work->claimed) leases_.drop(s.work->id());
    intake_.done(s.work->id());
}

void Settler::try_again(Batch again) {
    milliseconds delay{100};
    Batch keep;
    for (auto& s : again) {
        if (++s.tries >= kTriesMax) {
            context_.metrics.add(Counter::settle_given_up);
            context_.log(LogLevel::Error, "the outcome of message " + s.work->id().to_hex() +
                                              " could not be written; it will be delivered again");
            if (s.work->claimed) leases_.drop(s.work->id());
            s.work->claimed ? intake_.done(s.work->id()) : intake_.forget(s.work->id());
            continue;
        }
        delay = std::max(delay, milliseconds(100LL << std::min(s.tries - 1, 5)));
        keep.push_back(std::move(s));
    }
    if (keep.empty()) return;
    {
        MutexLock lock(mutex_);
        retrying_ += keep.size();
    }
    auto shared = std::make_shared<Batch>(std::move(keep));
    context_.post_after(context_.run.settle, delay, [this, shared] {
        {
            MutexLock lock(mutex_);
            retrying_ -= shared->size();
        }
        for (auto& s : *shared) settle_later(std::move(s));
    });
}

void Settler::delete_expired(const std::vector<WorkPtr>& works) {
    const bson::Date now{context_.server_millis()};
    std::vector<store::DeleteOp> deletes;
    for (const auto& work : works) {
        store::DeleteOp op;
        // Under Morphium's rule age comes from the sender's clock, and delete_at may say otherwise.
        op.filter = context_.morphium
                        ? bson::make("_id", work->id())
                        : bson::make("_id", work->id(), "delete_at", bson::make("$lte", now));
        deletes.push_back(std::move(op));
    }
    auto deleted =
        context_.store.remove(context_.main, std::move(deletes), false, Context::majority());
    if (!deleted) context_.metrics.add(Counter::settle_errors);
}

bool Settler::wait_idle(std::chrono::steady_clock::time_point deadline) {
    flush_on_executor();
    MutexLock lock(mutex_);
    while (!idle()) {
        if (!became_idle_.wait_until(mutex_, deadline)) return idle();
    }
    return true;
}

std::size_t Settler::waiting_count() const {
    MutexLock lock(mutex_);
    return answers_.size() + marks_.size() + retrying_;
}

}  // namespace angelia::messaging
