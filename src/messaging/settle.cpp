#include "messaging/settle.h"

#include "messaging/settle_writes.h"

#include <algorithm>

namespace angelia::messaging {

void Settler::settle(Settlement settlement) {
    {
        MutexLock lock(mutex_);
        queue_.push_back(std::move(settlement));
        if (writing_) return;
        writing_ = true;
    }
    // One batch here, so that a lone message costs no hand-over; what came meanwhile is the
    // executor's, so that this thread gets back to its handlers.
    write(take());
    drain_on_executor();
}

void Settler::settle_later(Settlement settlement) {
    {
        MutexLock lock(mutex_);
        queue_.push_back(std::move(settlement));
        if (writing_) return;
        writing_ = true;
    }
    context_.post(context_.run.settle, [this] {
        write(take());
        drain_on_executor();
    });
}

void Settler::drain_on_executor() {
    {
        MutexLock lock(mutex_);
        if (queue_.empty()) {
            writing_ = false;
            if (idle()) became_idle_.notify_all();
            return;
        }
    }
    context_.post(context_.run.settle, [this] {
        write(take());
        drain_on_executor();
    });
}

Settler::Batch Settler::take() {
    Batch batch;
    MutexLock lock(mutex_);
    while (!queue_.empty() && batch.size() < kBatchMax) {
        batch.push_back(std::move(queue_.front()));
        queue_.pop_front();
    }
    return batch;
}

void Settler::write(Batch batch) {
    if (batch.empty()) return;
    Batch again;
    store_answers(batch, again);
    write_messages(batch, again);
    release_locks(batch, again);
    for (auto& settlement : batch) finish(settlement);
    if (!again.empty()) try_again(std::move(again));
    if (!batch.empty()) hooks_.room();
}

/// Moves what failed to `again`.
void Settler::store_answers(Batch& batch, Batch& again) {
    std::vector<bson::Document> documents;
    std::vector<std::size_t> owner;
    for (std::size_t i = 0; i < batch.size(); ++i) {
        for (const auto& answer : batch[i].answers) {
            documents.push_back(delivery::encode(answer));
            owner.push_back(i);
        }
    }
    if (documents.empty()) return;
    std::vector<bson::DocumentView> views;
    views.reserve(documents.size());
    for (const auto& d : documents) views.push_back(d.view());
    auto stored = context_.store.insert(context_.main, views, false, Context::majority());
    if (!stored) {
        context_.metrics.add(Counter::settle_errors);
        context_.log(LogLevel::Warning,
                     "answers could not be stored: " + stored.error().to_string());
        Batch rest;
        for (auto& settlement : batch)
            (settlement.answers.empty() ? rest : again).push_back(std::move(settlement));
        batch = std::move(rest);
        return;
    }
    context_.metrics.add(Counter::answers_sent, stored->inserted);
    for (const auto& failed : stored->errors) {
        // A duplicate is our own earlier try whose reply was lost; all else would fail again.
        if (failed.error.code == ErrorCode::DuplicateKey) continue;
        context_.metrics.add(Counter::settle_errors);
        auto& settlement = batch[owner[failed.index]];
        context_.log(LogLevel::Error, "an answer could not be stored: " + failed.error.to_string());
        if (settlement.work->message().exclusive && settlement.outcome == Outcome::Done) {
            settlement.outcome = Outcome::Failed;
            settlement.reason = "the answer could not be stored: " + failed.error.message;
        }
    }
    for (auto& settlement : batch) settlement.answers.clear();
}

void Settler::write_messages(Batch& batch, Batch& again) {
    const auto now = context_.server_millis();
    std::vector<store::UpdateOp> updates;
    std::vector<store::DeleteOp> deletes;
    std::int64_t counted_updates = 0, counted_deletes = 0, plain_updates = 0;
    std::vector<bool> update_counts;
    bool released = false;
    milliseconds soonest_retry = milliseconds::max();
    for (const auto& s : batch) {
        auto w = message_writes(context_, s, now);
        for (auto& op : w.updates) {
            updates.push_back(std::move(op));
            update_counts.push_back(w.counts);
            w.counts ? ++counted_updates : ++plain_updates;
        }
        if (w.remove) {
            deletes.push_back(std::move(*w.remove));
            if (w.counts) ++counted_deletes;
        }
        if (s.work->message().exclusive && !s.mark_only) {
            if (s.outcome == Outcome::Release) released = true;
            if (s.outcome == Outcome::Failed) {
                context_.at_least_once
                    ? soonest_retry =
                          std::min(soonest_retry, delivery::retry_delay(s.work->message().attempt))
                    : soonest_retry;
                if (!context_.at_least_once) released = true;
            }
        }
    }
    const auto fail = [&](const Error& error) {
        context_.metrics.add(Counter::settle_errors);
        context_.log(LogLevel::Warning, "marks could not be written: " + error.to_string());
        for (auto& s : batch) again.push_back(std::move(s));
        batch.clear();
    };
    std::int64_t stale = 0;
    if (!updates.empty()) {
        const auto count = static_cast<std::int64_t>(updates.size());
        auto updated =
            context_.store.update(context_.main, std::move(updates), false, Context::majority());
        if (!updated) return fail(updated.error());
        for (const auto& e : updated->errors) {
            context_.metrics.add(Counter::settle_errors);
            context_.log(LogLevel::Error, "a mark was refused: " + e.error.to_string());
        }
        context_.metrics.add(Counter::marks, updated->modified);
        if (counted_updates != 0) {
            if (updated->effective.size() == update_counts.size()) {
                for (std::size_t i = 0; i < update_counts.size(); ++i) {
                    if (update_counts[i] && !updated->effective[i]) ++stale;
                }
            } else {
                stale +=
                    std::min(counted_updates, std::max<std::int64_t>(0, count - updated->matched));
            }
        }
    }
    if (!deletes.empty()) {
        auto deleted =
            context_.store.remove(context_.main, std::move(deletes), false, Context::majority());
        if (!deleted) return fail(deleted.error());
        context_.metrics.add(Counter::deleted, deleted->deleted);
        stale += std::max<std::int64_t>(0, counted_deletes - deleted->deleted);
    }
    if (stale > 0) context_.metrics.add(Counter::stale_outcomes, stale);
    if (released) hooks_.poll(true);
    if (soonest_retry != milliseconds::max()) hooks_.retry_in(soonest_retry);
}

void Settler::release_locks(Batch& batch, Batch& again) {
    const auto now = context_.server_millis();
    std::vector<store::UpdateOp> updates;
    std::vector<store::DeleteOp> deletes;
    for (const auto& s : batch) {
        auto w = lock_writes(context_, s, now);
        if (w.update) updates.push_back(std::move(*w.update));
        if (w.remove) deletes.push_back(std::move(*w.remove));
    }
    const auto fail = [&](const Error& error) {
        // The message itself is settled; a second try changes nothing there.
        context_.metrics.add(Counter::settle_errors);
        context_.log(LogLevel::Warning, "locks could not be released: " + error.to_string());
        for (auto& s : batch) {
            if (s.work->claimed) again.push_back(std::move(s));
        }
        batch.erase(
            std::remove_if(batch.begin(), batch.end(), [](const Settlement& s) { return !s.work; }),
            batch.end());
    };
    if (!updates.empty()) {
        if (auto r = context_.store.update(context_.locks, std::move(updates), false,
                                           Context::majority());
            !r)
            return fail(r.error());
    }
    if (!deletes.empty()) {
        if (auto r = context_.store.remove(context_.locks, std::move(deletes), false,
                                           Context::majority());
            !r)
            return fail(r.error());
    }
}

void Settler::finish(Settlement& s) {
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
    MutexLock lock(mutex_);
    while (!idle()) {
        if (!became_idle_.wait_until(mutex_, deadline)) return idle();
    }
    return true;
}

std::size_t Settler::waiting_count() const {
    MutexLock lock(mutex_);
    return queue_.size() + retrying_;
}

}  // namespace angelia::messaging
