#include "messaging/publishes.h"

#include <algorithm>

namespace angelia::messaging {
namespace {

std::size_t bytes_of(std::span<const bson::DocumentView> documents) {
    std::size_t bytes = 0;
    for (const auto& d : documents) bytes += d.size_bytes();
    return bytes;
}

}  // namespace

Result<store::InsertResult> Publishes::store(Documents documents) {
    return context_.store.insert(context_.main, documents, false, Context::majority());
}

Result<store::InsertResult> Publishes::insert(Documents documents) {
    const bool alone = bytes_of(documents) >= kAloneBytesMin;
    if (alone) return store(documents);
    Waiting self{.documents = documents, .changed = {}, .batch = {}, .result = {}};
    {
        MutexLock lock(mutex_);
        if (in_flight_ >= kInFlightMax) {
            waiting_.push_back(&self);
            while (self.batch.empty() && !self.result) self.changed.wait(mutex_);
            if (self.result) return *std::move(self.result);
            lock.unlock();
            return lead(self);
        }
        ++in_flight_;
    }
    auto result = store(documents);
    MutexLock lock(mutex_);
    hand_on();
    return result;
}

/// Who is through lets the first that waits go on for those behind it.
void Publishes::hand_on() {
    if (waiting_.empty()) {
        --in_flight_;
        return;
    }
    Waiting& first = *waiting_.front();
    std::size_t documents = 0, bytes = 0;
    while (!waiting_.empty()) {
        Waiting& next = *waiting_.front();
        documents += next.documents.size();
        bytes += bytes_of(next.documents);
        if (&next != &first && (documents > kBatchDocumentsMax || bytes > kBatchBytesMax)) break;
        first.batch.push_back(&next);
        waiting_.pop_front();
    }
    first.changed.notify_one();
}

Result<store::InsertResult> Publishes::lead(Waiting& self) {
    const Batch batch = std::move(self.batch);
    std::vector<bson::DocumentView> documents;
    for (const Waiting* one : batch)
        documents.insert(documents.end(), one->documents.begin(), one->documents.end());
    const auto stored = store(documents);
    MutexLock lock(mutex_);
    std::size_t begin = 0;
    for (Waiting* one : batch) {
        const std::size_t end = begin + one->documents.size();
        if (stored) {
            store::InsertResult mine;
            for (const auto& error : stored->errors) {
                if (error.index >= begin && error.index < end)
                    mine.errors.push_back({error.index - begin, error.error});
            }
            mine.inserted = static_cast<std::int64_t>(end - begin - mine.errors.size());
            one->result = std::move(mine);
        } else {
            one->result = stored.error();
        }
        begin = end;
        if (one != &self) one->changed.notify_one();  // under the lock: it may be gone right after
    }
    hand_on();
    return *std::move(self.result);
}

}  // namespace angelia::messaging
