#include "engine/changes/stream_hub.h"

#include <algorithm>
#include <utility>

namespace angelia::engine::changes {
namespace {

constexpr std::uint32_t kWholeTime = 0xFFFFFFFF;

OplogPosition position_of(const OplogEntry& entry) { return {entry.time(), entry.sub()}; }

/// The place right before an entry.
OplogPosition before(OplogPosition entry) {
    if (entry.sub > 0) return {entry.time, entry.sub - 1};
    return {bson::Timestamp::from_uint64(entry.time.as_uint64() - 1), kWholeTime};
}

void write_key(std::string& key, std::string_view db, std::string_view collection) {
    key.assign(db);
    key.push_back('\0');
    key.append(collection);
}

}  // namespace

StreamHub::StreamHub(Oplog& oplog, ChangeStreamHooks hooks)
    : oplog_(oplog), hooks_(std::move(hooks)), store_id_(hooks_.store_id()), cache_(store_id_) {
    listener_ = oplog_.add_listener([this](const Oplog::Entries& entries) { on_durable(entries); });
    MutexLock lock(mutex_);
    seen_ = std::max(seen_, OplogPosition{oplog_.newest_durable(), kWholeTime});
}

StreamHub::~StreamHub() { shutdown(); }

void StreamHub::shutdown() {
    Wakes wakes;
    {
        MutexLock lock(mutex_);
        if (shut_) return;
        shut_ = true;
        for (auto& [key, bucket] : buckets_) {
            for (Subscription* subscription : bucket.watching) {
                bucket.index.unwatch(subscription->index_entry_);
                subscription->watching_ = false;
                if (subscription->wake_)
                    wakes.push_back(std::exchange(subscription->wake_, nullptr));
            }
            bucket.watching.clear();
        }
        wakeups_ += wakes.size();
    }
    // Readers first, so that one that polls because of its wake-up learns about the end rather than
    // meets a closed oplog.
    for (auto& wake : wakes) wake();
    oplog_.remove_listener(listener_);
    MutexLock lock(mutex_);
    while (inside_ > 0) idle_.wait(mutex_);
}

bool StreamHub::enter() {
    MutexLock lock(mutex_);
    if (shut_) return false;
    ++inside_;
    return true;
}

void StreamHub::leave() {
    MutexLock lock(mutex_);
    if (--inside_ == 0 && shut_) idle_.notify_all();
}

std::string StreamHub::bucket_key(const StreamPlan& plan) {
    std::string key;
    switch (plan.scope()) {
        case WatchSpec::Scope::Collection:
            write_key(key, plan.ns().db, plan.ns().collection);
            break;
        case WatchSpec::Scope::Database:
            write_key(key, plan.ns().db, {});
            break;
        case WatchSpec::Scope::Deployment:
            break;
    }
    return key;
}

void StreamHub::add(Subscription& subscription) {
    MutexLock lock(mutex_);
    subscription.added_ = true;
    Bucket& bucket = buckets_[bucket_key(subscription.plan_)];
    ++bucket.subscriptions;
    bucket.index.add(subscription, subscription.plan_.interests(), subscription.index_entry_);
    ++opened_;
    open_count_.fetch_add(1, std::memory_order_relaxed);
}

void StreamHub::remove(Subscription& subscription) {
    std::function<void()> dropped;  // its destructor is foreign code: run it behind the lock
    MutexLock lock(mutex_);
    if (!subscription.added_) return;
    subscription.added_ = false;
    dropped = std::exchange(subscription.wake_, nullptr);
    const auto bucket = buckets_.find(bucket_key(subscription.plan_));
    if (subscription.watching_) stop_watching(subscription, bucket->second);
    bucket->second.index.remove(subscription.index_entry_);
    if (--bucket->second.subscriptions == 0) buckets_.erase(bucket);
    const bool last = open_count_.fetch_sub(1, std::memory_order_relaxed) == 1;
    lock.unlock();
    if (last) cache_.clear();
}

void StreamHub::end(Subscription& subscription) {
    std::function<void()> wake;
    {
        MutexLock lock(mutex_);
        subscription.ended_ = true;
        if (!subscription.watching_) return;
        stop_watching(subscription, buckets_.find(bucket_key(subscription.plan_))->second);
        wake = std::exchange(subscription.wake_, nullptr);
        if (wake) ++wakeups_;
    }
    if (wake) wake();
}

void StreamHub::stop_watching(Subscription& subscription, Bucket& bucket) {
    Subscription* const last = bucket.watching.back();
    bucket.watching[subscription.slot_] = last;
    last->slot_ = subscription.slot_;
    bucket.watching.pop_back();
    bucket.index.unwatch(subscription.index_entry_);
    subscription.watching_ = false;
}

StreamHub::Progress StreamHub::progress(const Subscription& subscription, OplogPosition position) {
    MutexLock lock(mutex_);
    Progress progress;
    progress.watching = subscription.watching_;
    progress.position = position;
    if (subscription.watching_) progress.position = std::max(position, seen_);
    if (subscription.hit_) progress.position = std::max(position, before(*subscription.hit_));
    return progress;
}

bool StreamHub::watch(Subscription& subscription, OplogPosition position) {
    MutexLock lock(mutex_);
    if (shut_ || subscription.ended_) return true;  // nothing will come; the next poll says why
    if (position < seen_) return false;
    subscription.hit_.reset();
    subscription.at_ = position;
    if (subscription.watching_) return true;
    Bucket& bucket = buckets_.find(bucket_key(subscription.plan_))->second;
    subscription.watching_ = true;
    subscription.slot_ = bucket.watching.size();
    bucket.watching.push_back(&subscription);
    bucket.index.watch(subscription.index_entry_);
    return true;
}

void StreamHub::set_wake(Subscription& subscription, std::function<void()> wake) {
    std::function<void()> replaced;  // destroyed behind the lock
    {
        MutexLock lock(mutex_);
        replaced = std::exchange(subscription.wake_, nullptr);
        if (!wake) return;
        if (subscription.watching_) {
            subscription.wake_ = std::move(wake);
            return;
        }
        ++wakeups_;
    }
    wake();
}

StreamHub::Bucket* StreamHub::find_bucket(std::string_view db, std::string_view collection) {
    write_key(key_buffer_, db, collection);
    const auto found = buckets_.find(key_buffer_);
    return found == buckets_.end() ? nullptr : &found->second;
}

void StreamHub::on_durable(const Oplog::Entries& entries) {
    if (entries.empty()) return;
    Wakes wakes;
    {
        MutexLock lock(mutex_);
        if (shut_) return;
        entries_seen_ += entries.size();
        // Entries of one commit mostly concern one collection: look its buckets up once.
        EventNamespace last;
        Bucket* of_collection = nullptr;
        Bucket* of_database = nullptr;
        const auto everything = buckets_.find(std::string());
        Bucket* const of_all = everything == buckets_.end() ? nullptr : &everything->second;
        bool first = true;
        for (const auto& entry : entries) {
            if (buckets_.empty()) break;
            const Operation operation = operation_of(*entry);
            if (operation == Operation::None) continue;
            const EventNamespace ns = namespace_of(*entry);
            if (first || ns.db != last.db || ns.collection != last.collection) {
                of_collection = ns.collection.empty() ? nullptr : find_bucket(ns.db, ns.collection);
                of_database = find_bucket(ns.db, {});
                last = ns;
                first = false;
            }
            if (of_collection != nullptr) offer(*of_collection, *entry, operation, wakes);
            if (of_database != nullptr) offer(*of_database, *entry, operation, wakes);
            if (of_all != nullptr) offer(*of_all, *entry, operation, wakes);
            if (operation != Operation::Rename) continue;
            if (Bucket* const to = find_bucket(ns.to_db, ns.to_collection))
                offer(*to, *entry, operation, wakes);
            if (Bucket* const to = ns.to_db == ns.db ? nullptr : find_bucket(ns.to_db, {}))
                offer(*to, *entry, operation, wakes);
        }
        // A commit's entries come together, so nothing else of this time will follow.
        seen_ = std::max(seen_, OplogPosition{entries.back()->time(), kWholeTime});
        wakeups_ += wakes.size();
    }
    for (auto& wake : wakes) wake();
}

void StreamHub::offer(Bucket& bucket, const OplogEntry& entry, Operation operation, Wakes& wakes) {
    const OplogPosition position = position_of(entry);
    // Holds the lock of this function, where the analysis does not see it.
    const auto ask = [&](Subscription& subscription) ANGELIA_NO_THREAD_SAFETY_ANALYSIS {
        if (position <= subscription.at_ || !concerns(subscription, entry, operation)) return false;
        subscription.hit_ = position;
        if (subscription.wake_) wakes.push_back(std::exchange(subscription.wake_, nullptr));
        stop_watching(subscription, bucket);
        return true;
    };
    bucket.index.offer(entry, operation, ask);
}

bool StreamHub::concerns(const Subscription& subscription, const OplogEntry& entry,
                         Operation operation) {
    ++candidates_;
    const StreamPlan& plan = subscription.plan_;
    const EventNamespace ns = namespace_of(entry);
    if (!plan.in_scope(ns, operation)) return false;
    const Verdict verdict = plan.concern(ns, operation);
    if (verdict != Verdict::Maybe) return verdict == Verdict::Yes;
    // A filter on a document that is looked up at delivery can only be asked then.
    if ((plan.needs_lookup(operation) || plan.missing_image(entry, operation)) &&
        plan.filter().reads_images())
        return true;
    return plan.filter().matches(cache_.get(entry, operation, plan.shape(), true).view());
}

ChangeStreams::Counters StreamHub::counters() const {
    ChangeStreams::Counters out;
    out.streams_open = open_count_.load(std::memory_order_relaxed);
    out.history_lost = history_lost_.load(std::memory_order_relaxed);
    out.entries_read = entries_read_.load(std::memory_order_relaxed);
    out.events_delivered = events_delivered_.load(std::memory_order_relaxed);
    out.lookups = lookups_.load(std::memory_order_relaxed);
    out.events_encoded = cache_.encoded();
    out.events_shared = cache_.shared();
    MutexLock lock(mutex_);
    out.streams_opened = opened_;
    out.entries_seen = entries_seen_;
    out.candidates = candidates_;
    out.wakeups = wakeups_;
    for (const auto& [key, bucket] : buckets_) {
        for (const Subscription* subscription : bucket.watching)
            out.streams_waiting += subscription->wake_ ? 1 : 0;
    }
    return out;
}

}  // namespace angelia::engine::changes
