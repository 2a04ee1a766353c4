#include "messaging/settle_writes.h"

#include <angelia/bson/validate.h>

#include <algorithm>

namespace angelia::messaging {
namespace {

using bson::make;

store::UpdateOp update_of(bson::Document filter, bson::Document update) {
    store::UpdateOp op;
    op.filter = std::move(filter);
    op.update = std::move(update);
    return op;
}

store::DeleteOp delete_of(bson::Document filter) {
    store::DeleteOp op;
    op.filter = std::move(filter);
    return op;
}

/// The holder and attempt are the epoch: whoever took over has another one.
bson::Document ours(const Context& context, const Message& m) {
    return make("_id", m.id, "leased_by", context.self, "attempt", m.attempt);
}

bool deletes_now(const Message& m) {
    return m.delete_after_processing.value_or(false) && m.delete_after_processing_time.count() == 0;
}

/// $set of the time when the TTL index shall delete it; empty when nothing is to be set.
std::optional<bson::Date> deletes_later(const Message& m, std::int64_t now) {
    if (!m.delete_after_processing.value_or(false) || m.delete_after_processing_time.count() == 0)
        return std::nullopt;
    return bson::Date{now + m.delete_after_processing_time.count()};
}

/// $addToSet fails on an explicit null, and a repair must never overwrite an array that somebody
/// else made meanwhile.
void add_mark(const Context& context, const delivery::Envelope& e, std::int64_t now,
              std::vector<store::UpdateOp>& out) {
    const Message& m = e.message;
    const auto delete_at = deletes_later(m, now);
    if (e.marks_are_null) {
        bson::Builder set;
        set.open("$set").add("processed_by", bson::array(context.self));
        if (delete_at) set.add("delete_at", *delete_at);
        set.close();
        out.push_back(update_of(make("_id", m.id, "processed_by", bson::Null{}), set.take()));
    }
    bson::Builder filter, update;
    filter.add("_id", m.id);
    if (e.marks_are_null) filter.add("processed_by", make("$ne", bson::Null{}));
    update.add("$addToSet", make("processed_by", context.self));
    if (delete_at) update.add("$set", make("delete_at", *delete_at));
    out.push_back(update_of(filter.take(), update.take()));
}

/// Reasons come from exceptions and other programs: what is stored is UTF-8 and of a sane length.
std::string storable_reason(std::string_view reason) {
    constexpr std::size_t kReasonBytesMax = 64 * 1024;
    std::string text(reason.substr(0, kReasonBytesMax));
    if (bson::is_utf8(text)) return text;
    // Cut in the middle of a character, or no UTF-8 at all.
    for (int cut = 1; cut <= 3 && text.size() > 3; ++cut) {
        text.pop_back();
        if (reason.size() > kReasonBytesMax && bson::is_utf8(text)) return text;
    }
    text.assign(reason.substr(0, kReasonBytesMax));
    for (char& c : text) {
        if (static_cast<unsigned char>(c) >= 0x80) c = '?';
    }
    return text;
}

MessageWrites leased_writes(const Context& context, const Settlement& s, std::int64_t now) {
    const Message& m = s.work->message();
    MessageWrites w;
    w.counts = true;
    switch (s.outcome) {
        case Outcome::Done: {
            if (deletes_now(m)) {
                w.remove = delete_of(ours(context, m));
                return w;
            }
            bson::Builder update;
            if (s.work->envelope.marks_are_null) {
                update.open("$set").add("processed_by", bson::array(context.self));
                if (auto at = deletes_later(m, now)) update.add("delete_at", *at);
                update.close();
            } else {
                update.add("$addToSet", make("processed_by", context.self));
                if (auto at = deletes_later(m, now)) update.add("$set", make("delete_at", *at));
            }
            // The lease goes, the attempt stays: a message that is requeued later counts on.
            update.add("$unset", make("leased_by", "", "leased_until", "", "last_error", ""));
            w.updates.push_back(update_of(ours(context, m), update.take()));
            return w;
        }
        case Outcome::Failed: {
            const bson::Date until{now + delivery::retry_delay(m.attempt).count()};
            w.updates.push_back(
                update_of(ours(context, m), make("$set", make("leased_until", until, "last_error",
                                                              storable_reason(s.reason)))));
            return w;
        }
        case Outcome::Release:
            // An explicit null is what streams match: the message is available again.
            w.updates.push_back(update_of(
                ours(context, m),
                make("$set", make("leased_by", bson::Null{}, "leased_until", bson::Null{}))));
            return w;
        case Outcome::AnswersOnly:
            return w;
    }
    return w;
}

MessageWrites marked_writes(const Context& context, const Settlement& s, std::int64_t now) {
    const Message& m = s.work->message();
    MessageWrites w;
    if (s.outcome == Outcome::Done || s.delete_anyway) {
        if (deletes_now(m)) {
            w.remove = delete_of(make("_id", m.id));
        } else if (auto at = deletes_later(m, now)) {
            w.updates.push_back(update_of(make("_id", m.id), make("$set", make("delete_at", *at))));
        }
        if (!s.delete_anyway) return w;
    }
    if (!w.remove)
        w.updates.push_back(
            update_of(make("_id", m.id), make("$pull", make("processed_by", context.self))));
    return w;
}

}  // namespace

MessageWrites message_writes(const Context& context, const Settlement& s, std::int64_t now) {
    const Message& m = s.work->message();
    if (!s.mark_only && m.exclusive)
        return context.at_least_once ? leased_writes(context, s, now)
                                     : marked_writes(context, s, now);
    MessageWrites w;
    if (s.outcome == Outcome::AnswersOnly) return w;
    if (deletes_now(m)) {
        w.remove = delete_of(make("_id", m.id));
    } else {
        add_mark(context, s.work->envelope, now, w.updates);
    }
    return w;
}

LockWrites lock_writes(const Context& context, const Settlement& s, std::int64_t now) {
    LockWrites w;
    const Message& m = s.work->message();
    if (s.mark_only || !m.exclusive || !s.work->claimed) return w;
    if (!context.at_least_once) {
        w.remove = delete_of(make("_id", m.id, "lock_id", context.self));
        return w;
    }
    auto filter = make("_id", m.id, "lock_id", context.self, "attempt", m.attempt);
    if (s.outcome == Outcome::Failed) {
        const bson::Date until{now + delivery::retry_delay(m.attempt).count()};
        w.update = update_of(std::move(filter), make("$set", make("delete_at", until)));
    } else {
        w.remove = delete_of(std::move(filter));
    }
    return w;
}

void SettleBulk::add(Stage stage, const store::CollectionName& collection, store::UpdateOp op,
                     bool counts) {
    Op next;
    next.op.kind = store::BulkOp::Kind::Update;
    next.op.collection = collection;
    next.op.update = std::move(op);
    next.counts = counts;
    stages_[stage].push_back(std::move(next));
}

void SettleBulk::add(Stage stage, const store::CollectionName& collection, store::DeleteOp op,
                     bool counts) {
    Op next;
    next.op.kind = store::BulkOp::Kind::Delete;
    next.op.collection = collection;
    next.op.remove = std::move(op);
    next.counts = counts;
    stages_[stage].push_back(std::move(next));
}

void SettleBulk::add_answers(const Settlement& settlement, std::size_t owner) {
    for (const auto& answer : settlement.answers) {
        Op next;
        next.op.collection = context_.main;
        next.op.document = delivery::encode(answer);
        stages_[Answers].push_back(std::move(next));
        owners_.push_back(owner);
    }
}

void SettleBulk::add_marks(const Settlement& settlement) {
    auto message = message_writes(context_, settlement, now_);
    for (auto& op : message.updates) add(Updates, context_.main, std::move(op), message.counts);
    if (message.remove) add(Deletes, context_.main, std::move(*message.remove), message.counts);
    auto lock = lock_writes(context_, settlement, now_);
    if (lock.update) add(LockUpdates, context_.locks, std::move(*lock.update), false);
    if (lock.remove) add(LockDeletes, context_.locks, std::move(*lock.remove), false);
}

std::vector<store::BulkOp> SettleBulk::take() {
    std::vector<store::BulkOp> ops;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
        for (auto& next : stages_[stage]) {
            ops.push_back(std::move(next.op));
            places_.push_back({static_cast<Stage>(stage), next.counts});
        }
        stages_[stage].clear();
    }
    return ops;
}

SettleBulk::Counts SettleBulk::count(const store::BulkResult& result) const {
    Counts counts;
    if (result.effective.size() == places_.size()) {
        for (std::size_t i = 0; i < places_.size(); ++i) {
            const auto [stage, counted] = places_[i];
            if (counted && !result.effective[i]) ++counts.stale;
            if (!result.effective[i]) continue;
            counts.marks += stage == Updates ? 1 : 0;
            counts.deleted += stage == Deletes ? 1 : 0;
        }
        return counts;
    }
    // Totals only. A message that is not ours any more has a lock that is not, either.
    const auto of_stage = [&](Stage stage) {
        return std::count_if(places_.begin(), places_.end(),
                             [&](const Place& place) { return place.stage == stage; });
    };
    const auto pairs = [](std::int64_t wanted, std::int64_t done) {
        return (std::max<std::int64_t>(0, wanted - done) + 1) / 2;
    };
    const auto unmarked = pairs(of_stage(Updates) + of_stage(LockUpdates), result.matched);
    const auto undeleted = pairs(of_stage(Deletes) + of_stage(LockDeletes), result.deleted);
    counts.marks = std::max<std::int64_t>(0, of_stage(Updates) - unmarked);
    counts.deleted = std::max<std::int64_t>(0, of_stage(Deletes) - undeleted);
    const auto counted = std::count_if(places_.begin(), places_.end(),
                                       [](const Place& place) { return place.counts; });
    counts.stale = std::min<std::int64_t>(counted, unmarked + undeleted);
    return counts;
}

}  // namespace angelia::messaging
