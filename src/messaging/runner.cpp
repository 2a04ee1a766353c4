#include "messaging/runner.h"

#include <algorithm>
#include <exception>

namespace angelia::messaging {

void Runner::wake() {
    const std::size_t ready = intake_.ready_count();
    std::size_t start = 0;
    {
        MutexLock lock(mutex_);
        const std::size_t wanted = std::min(context_.threads, ready);
        // Tasks that already run will see the new work; more of them only as long as threads are
        // free.
        const std::size_t may = context_.threads > tasks_ ? context_.threads - tasks_ : 0;
        start = std::min(wanted - std::min(wanted, claiming_), may);
        tasks_ += start;
    }
    for (std::size_t i = 0; i < start; ++i)
        context_.post(context_.run.handlers, [this] { run_some(); });
}

bool Runner::run_behind(std::function<void()> claim) {
    {
        MutexLock lock(mutex_);
        if (tasks_ >= context_.threads) return false;
        ++tasks_;
        ++claiming_;
    }
    context_.post(context_.run.handlers, [this, first = std::move(claim)] {
        first();
        {
            MutexLock lock(mutex_);
            --claiming_;
        }
        run_some();
    });
    return true;
}

void Runner::run_some() {
    // Now and then the thread goes back to the pool, which others may share.
    constexpr int kMessagesPerTask = 128;
    for (int i = 0; i < kMessagesPerTask; ++i) {
        auto work = intake_.take_ready();
        if (!work) break;
        run(work);
    }
    const bool more = intake_.ready_count() != 0;
    if (more) {
        context_.post(context_.run.handlers, [this] { run_some(); });
        return;
    }
    {
        MutexLock lock(mutex_);
        --tasks_;
        if (tasks_ == 0) idle_.notify_all();
    }
    // Work that came between the look and the count found this task counted.
    if (intake_.ready_count() != 0) wake();
}

std::size_t Runner::running_count() const {
    MutexLock lock(mutex_);
    return tasks_;
}

bool Runner::wait_idle(std::chrono::steady_clock::time_point deadline) {
    MutexLock lock(mutex_);
    while (tasks_ != 0) {
        if (!idle_.wait_until(mutex_, deadline)) return tasks_ == 0;
    }
    return true;
}

void Runner::settle(Settlement settlement) {
    // Nothing else to do: written here, without a hand-over. Else the settle executor writes it
    // with whatever else is ready by then, and this thread goes on.
    if (intake_.ready_count() == 0) {
        settler_.settle(std::move(settlement));
    } else {
        settler_.settle_later(std::move(settlement));
    }
}

void Runner::run(const WorkPtr& work) {
    const Message& m = work->message();
    if (work->claimed && !leases_.begin(work->id())) {
        // Somebody else has it by now, or may have: its outcome is theirs.
        context_.metrics.add(Counter::lease_lost);
        leases_.drop(work->id());
        intake_.done(work->id());
        return;
    }
    if (!work->claimed && delivery::expired(m, context_.server_millis(), context_.morphium)) {
        context_.count_expired(m.topic);  // while it waited here
        intake_.done(work->id());
        return;
    }
    const auto subscriptions = registry_.read();
    const auto listeners = subscriptions->listeners.find(m.topic);
    if (context_.stopping || listeners == subscriptions->listeners.end() ||
        subscriptions->paused.count(m.topic) != 0) {
        if (work->claimed) {
            context_.metrics.add(Counter::released);
            settle({.work = work, .outcome = Outcome::Release});
        } else {
            intake_.forget(work->id());  // resume_topic() and listen() look again
        }
        return;
    }
    run_listeners(work, listeners->second);
}

void Runner::run_listeners(const WorkPtr& work,
                           const std::vector<std::shared_ptr<const Listener>>& listeners) {
    const Message& m = work->message();
    Settlement settlement{.work = work};
    std::size_t finished = 0;
    bool threw = false, gave_up = false;
    std::optional<std::string> reason;
    const auto started = context_.clock.steady_now();
    for (const auto& listener : listeners) {
        Reply reply;
        try {
            reply = listener->handler(m);
        } catch (const std::exception& e) {
            threw = true;
            reply = reject(e.what());
        } catch (...) {
            threw = true;
            reply = reject("the listener threw something that is no std::exception");
        }
        if (reply.kind() == Reply::Kind::Reject) {
            reason = reply.reason();
            gave_up = gave_up || reply.give_up();
            if (reply.tell_sender()) {
                add_answer(work, answer("message rejected by listener").with_value(reply.reason()),
                           settlement.answers);
            }
            continue;
        }
        ++finished;
        if (reply.kind() == Reply::Kind::None && context_.options.auto_answer)
            reply = answer("received").with_value("");
        if (reply.kind() == Reply::Kind::Answer)
            add_answer(work, std::move(reply), settlement.answers);
    }
    leases_.finished(work->id(), context_.clock.steady_now() - started);
    if (!reason) {
        context_.metrics.add(Counter::handled);
        settle(std::move(settlement));
        return;
    }
    context_.metrics.add(Counter::failed);
    if (m.exclusive) {
        if (gave_up) intake_.give_up(work->id());
        settlement.outcome = gave_up ? Outcome::Release : Outcome::Failed;
        settlement.reason = std::move(*reason);
        settlement.delete_anyway = context_.morphium && threw;
        settle(std::move(settlement));
        return;
    }
    if (finished != 0 || gave_up) {
        settle(std::move(settlement));
        return;
    }
    if (!settlement.answers.empty()) {
        // The sender is told although nothing is marked: the answers travel with a settlement of
        // their own.
        settlement.outcome = Outcome::AnswersOnly;
        settle(std::move(settlement));
    }
    broadcast_failed(work, threw);
}

void Runner::add_answer(const WorkPtr& work, Reply reply, std::vector<Message>& answers) {
    const Message& m = work->message();
    if (m.is_answer()) {
        // Two nodes that listen to their own topic would answer each other's answers for ever.
        context_.metrics.add(Counter::answers_dropped);
        return;
    }
    Message a = delivery::answer_to(m);
    a.msg = reply.msg();
    a.value = reply.value();
    a.ttl = reply.ttl();
    a.map_value = reply.take_map();
    if (m.sender == "self") a.recipients = {context_.self};
    auto ok = delivery::complete(a, {.sender = context_.self,
                                     .sender_host = context_.host,
                                     .now_millis = context_.server_millis(),
                                     .default_ttl = context_.options.default_ttl,
                                     .exclusive_times_out = context_.morphium,
                                     .exclusive_is_deleted = !context_.morphium});
    if (!ok) {
        context_.log(LogLevel::Error,
                     "an answer on topic \"" + m.topic +
                         "\" is not valid and was not sent: " + ok.error().message);
        return;
    }
    if (m.sender == "self") a.sender = "self";
    answers.push_back(std::move(a));
}

void Runner::broadcast_failed(const WorkPtr& work, bool threw) {
    if (context_.morphium) {
        if (threw) {
            intake_.done(work->id());  // never again on this node
        } else {
            intake_.forget(work->id());
            poll_(false);
        }
        return;
    }
    ++work->failures_here;
    if (intake_.in_progress_count() > Context::kWaitingMax) {
        intake_.forget(work->id());  // too many wait for their retry: the poll finds it again
        poll_(false);
        return;
    }
    context_.post_after(
        context_.run.background, delivery::retry_delay(work->failures_here), [this, work] {
            if (context_.stopping ||
                delivery::expired(work->message(), context_.server_millis(), false)) {
                intake_.done(work->id());
                return;
            }
            context_.metrics.add(Counter::retries);
            intake_.offer_again(work);
        });
}

}  // namespace angelia::messaging
