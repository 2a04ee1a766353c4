// The drivers' convenient way to run a transaction: again after transient errors, bounded in time.
#include "store/session_core.h"
#include "store/transaction_rules.h"

#include <angelia/store/store.h>

#include <random>
#include <thread>

namespace angelia::store {
namespace {

constexpr const char* kThrew = "the function given to with_transaction threw ";

/// An exception of the caller's function ends here, as an error.
Result<void> run_work(const std::function<Result<void>(Session&)>& work, Session& session) {
    try {
        return work(session);
    } catch (const Exception& e) {
        return e.error();
    } catch (const std::exception& e) {
        return {ErrorCode::OperationFailed, std::string(kThrew) + "an exception: " + e.what()};
    } catch (...) {
        return {ErrorCode::OperationFailed,
                std::string(kThrew) + "something that is no std::exception"};
    }
}

void wait(const TransactionOptions& options, microseconds pause) {
    if (pause <= microseconds::zero()) return;
    if (options.pause) return options.pause(pause);
    std::this_thread::sleep_for(pause);
}

}  // namespace

Result<void> Store::with_transaction(const std::function<Result<void>(Session&)>& work,
                                     const TransactionOptions& options) {
    using Action = TransactionDecision::Action;
    using Kind = TransactionStep::Kind;
    if (adapter_ == nullptr)
        return {ErrorCode::ShutdownInProgress, "this store handle is not connected to a store"};
    if (!work) return {ErrorCode::BadValue, "with_transaction needs a function"};
    if (options.clock == nullptr) return {ErrorCode::BadValue, "with_transaction needs a clock"};
    ANGELIA_TRY_ASSIGN(const auto session, start_session());
    std::mt19937_64 random(options.jitter_seed != 0 ? options.jitter_seed : std::random_device{}());
    std::uniform_real_distribution<double> jitter(0.0, 1.0);
    const SteadyTime began = options.clock->steady_now();

    TransactionStep step;
    step.retry_for = options.retry_for;
    step.attempts = 0;
    const auto decide = [&](Kind kind, Result<void> outcome) {
        step.kind = kind;
        step.error.reset();
        if (!outcome) step.error = std::move(outcome).error();
        step.elapsed =
            std::chrono::duration_cast<microseconds>(options.clock->steady_now() - began);
        step.jitter = jitter(random);
        step.closed = is_ended(*session);
        return decide_transaction(step);
    };
    for (;;) {
        ANGELIA_TRY(session->start_transaction(options));
        ++step.attempts;
        step.commits = 0;
        auto outcome = run_work(work, *session);
        step.still_open = session->in_transaction();
        auto next = decide(Kind::Work, std::move(outcome));
        while (next.action == Action::Commit || next.action == Action::CommitAgain) {
            wait(options, next.pause);
            ++step.commits;
            next = decide(Kind::Commit, session->commit_transaction());
        }
        // What the server says to it is no news: it ends the transaction by itself.
        if (next.abort_first) (void)session->abort_transaction();
        if (next.action == Action::Return) break;
        wait(options, next.pause);
    }
    if (step.error) return *std::move(step.error);
    return {};
}

}  // namespace angelia::store
