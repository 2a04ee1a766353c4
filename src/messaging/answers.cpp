#include "messaging/answers.h"

namespace angelia::messaging {

// Guarded by the mutex of Answers, except what is constant.
struct Answers::Waiter {
    bson::ObjectId request;
    bool exclusive = false;
    AnswerCallback on_answer;  // empty for blocking callers
    std::function<void()> on_timeout;
    Condition arrived;
    std::vector<Message> answers;
    std::unordered_set<bson::ObjectId> seen;
    bool over = false;
    std::optional<Executor::TimerId> timer;
};

Result<void> Answers::enter(const bson::ObjectId& request, std::shared_ptr<Waiter> waiter) {
    const auto now = context_.clock.steady_now();
    MutexLock lock(mutex_);
    if (closed_) return {ErrorCode::ShutdownInProgress, "this node has stopped"};
    if (waiters_.size() >= kWaitersMax) {
        return {
            ErrorCode::ExceededMemoryLimit,
            "100000 requests of this node wait for answers already; wait for some of them first"};
    }
    if (!waiters_.emplace(request, std::move(waiter)).second) {
        return {ErrorCode::DuplicateKey,
                "a request with the id " + request.to_hex() + " waits for its answer already"};
    }
    asked_.insert(request, now);
    return {};
}

std::shared_ptr<Answers::Waiter> Answers::remove(const bson::ObjectId& request) {
    MutexLock lock(mutex_);
    auto found = waiters_.find(request);
    if (found == waiters_.end()) return nullptr;
    auto waiter = std::move(found->second);
    waiters_.erase(found);
    waiter->over = true;
    return waiter;
}

Result<std::shared_ptr<Answers::Waiter>> Answers::expect(const bson::ObjectId& request,
                                                         bool exclusive) {
    auto waiter = std::make_shared<Waiter>();
    waiter->request = request;
    waiter->exclusive = exclusive;
    ANGELIA_TRY(enter(request, waiter));
    return waiter;
}

Result<std::vector<Message>> Answers::wait(const std::shared_ptr<Waiter>& waiter, std::size_t count,
                                           milliseconds timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    MutexLock lock(mutex_);
    bool in_time = true;
    const auto complete = [&]() ANGELIA_REQUIRES(mutex_) {
        return closed_ || (count != 0 && waiter->answers.size() >= count) ||
               (waiter->exclusive && !waiter->answers.empty());
    };
    while (!complete() && in_time) in_time = waiter->arrived.wait_until(mutex_, deadline);
    waiter->over = true;
    waiters_.erase(waiter->request);
    auto answers = std::move(waiter->answers);
    const bool enough =
        !answers.empty() && (count == 0 || answers.size() >= count || waiter->exclusive);
    if (closed_ && !enough)
        return {ErrorCode::ShutdownInProgress,
                "this node has stopped while a request waited for its answer"};
    if (count != 0 && answers.size() > count) answers.resize(count);
    return answers;
}

Result<void> Answers::expect_async(const bson::ObjectId& request, bool exclusive,
                                   milliseconds timeout, AnswerCallback on_answer,
                                   std::function<void()> on_timeout) {
    auto waiter = std::make_shared<Waiter>();
    waiter->request = request;
    waiter->exclusive = exclusive;
    waiter->on_answer = std::move(on_answer);
    waiter->on_timeout = std::move(on_timeout);
    ANGELIA_TRY(enter(request, waiter));
    const auto timer = context_.post_after(context_.run.background, timeout, [this, request] {
        auto over = remove(request);
        if (over && over->on_timeout) {
            context_.post(context_.run.callbacks, [this, over] {
                if (!context_.stopping) over->on_timeout();
            });
        }
    });
    MutexLock lock(mutex_);
    waiter->timer = timer;
    return {};
}

void Answers::forget(const bson::ObjectId& request) {
    auto waiter = remove(request);
    if (waiter && waiter->timer) context_.run.background->cancel(*waiter->timer);
}

bool Answers::waiting_for(const bson::ObjectId& request) const {
    MutexLock lock(mutex_);
    return waiters_.count(request) != 0;
}

bool Answers::asked(const bson::ObjectId& request) const {
    MutexLock lock(mutex_);
    return asked_.contains(request);
}

std::vector<bson::ObjectId> Answers::waited_ids(std::size_t count_max) const {
    std::vector<bson::ObjectId> ids;
    MutexLock lock(mutex_);
    for (const auto& [id, unused] : waiters_) {
        if (ids.size() >= count_max) break;
        ids.push_back(id);
    }
    return ids;
}

std::size_t Answers::waiting_count() const {
    MutexLock lock(mutex_);
    return waiters_.size();
}

bool Answers::dispatch(Message answer) {
    std::optional<Executor::TimerId> timer;
    std::shared_ptr<Waiter> called;
    {
        MutexLock lock(mutex_);
        auto found = waiters_.find(*answer.in_answer_to);
        if (found == waiters_.end()) return false;
        auto waiter = found->second;
        if (!waiter->seen.insert(answer.id).second) return false;
        if (!waiter->on_answer) {
            if (waiter->exclusive && !waiter->answers.empty()) return false;
            waiter->answers.push_back(std::move(answer));
            waiter->arrived.notify_one();
            return true;
        }
        if (waiter->exclusive) {
            waiters_.erase(found);
            waiter->over = true;
            timer = waiter->timer;
        }
        called = std::move(waiter);
    }
    if (timer) context_.run.background->cancel(*timer);
    // std::function wants to be copyable, a Message is not.
    context_.post(context_.run.callbacks,
                  [this, called, shared = std::make_shared<const Message>(std::move(answer))] {
                      if (!context_.stopping) called->on_answer(*shared);
                  });
    return true;
}

void Answers::shut_down() {
    std::unordered_map<bson::ObjectId, std::shared_ptr<Waiter>> dropped;
    MutexLock lock(mutex_);
    closed_ = true;
    for (auto& [id, waiter] : waiters_) {
        waiter->over = true;
        waiter->arrived.notify_all();
    }
    dropped.swap(waiters_);
}

}  // namespace angelia::messaging
