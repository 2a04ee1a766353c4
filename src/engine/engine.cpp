// Opening, closing, writing, and the housekeeping that runs beside.
#include "engine/engine_impl.h"

#include <algorithm>
#include <thread>
#include "engine/collection/apply_scope.h"

namespace angelia::engine {

namespace {

constexpr std::size_t kWorkerTasksMax = 100'000;
constexpr std::size_t kTimerTasksMax = 100'000;
constexpr std::size_t kRetrySweepBatch = 1000;
constexpr int kRetrySweepEvery = 60;  // upkeep rounds

std::size_t worker_count() { return std::max<std::size_t>(2, std::thread::hardware_concurrency()); }

}  // namespace

Result<std::unique_ptr<Engine>> Engine::open(EngineOptions options) {
    auto engine = std::make_unique<EngineImpl>(std::move(options));
    ANGELIA_TRY(engine->start());
    return std::unique_ptr<Engine>(std::move(engine));
}

EngineImpl::EngineImpl(EngineOptions options)
    : core_(std::move(options)),
      cursors_(core_),
      sessions_(core_),
      snapshots_(core_),
      ttl_(core_),
      timers_({"engine-timers", kTimerTasksMax}),
      upkeep_({"engine-upkeep", 0}),
      workers_({"engine-work", worker_count(), kWorkerTasksMax, milliseconds{10'000}}),
      resumed_({"engine-resume", worker_count(), 0, milliseconds{10'000}}),
      ttl_interval_ms_(core_.options.ttl_interval.count()) {}

EngineImpl::~EngineImpl() { (void)close(); }

Result<void> EngineImpl::start() {
    ANGELIA_TRY_ASSIGN(core_.storage, storage::Storage::open(core_.options.storage));
    core_.oplog = Oplog::attach(*core_.storage);
    ANGELIA_TRY(core_.catalog.load(core_.storage->latest()));
    core_.storage->attach_first(core_.catalog.view());
    ChangeStreamHooks hooks;
    hooks.lookup = [this](const OplogEntry& entry) { return look_up(entry); };
    hooks.store_id = [this] { return core_.storage->store_id(); };
    streams_ = std::make_unique<ChangeStreams>(*core_.oplog, std::move(hooks));
    ANGELIA_TRY(timers_.start());
    ANGELIA_TRY(upkeep_.start());
    ANGELIA_TRY(workers_.start());
    ANGELIA_TRY(resumed_.start());
    core_.intents.start(resumed_);
    sessions_.set_on_end([this](const RetryKey& key) { cursors_.kill_transaction(key); });
    started_ = true;
    schedule_upkeep();
    schedule_session_sweep();
    return {};
}

Result<void> EngineImpl::close() {
    std::lock_guard lock(close_mutex_);
    if (closed_) return {};
    closed_ = true;
    core_.closing = true;
    if (!core_.storage) return {};
    cursors_.close_all(Error(ErrorCode::ShutdownInProgress, "the engine is shutting down"));
    if (streams_) streams_->shutdown();
    sessions_.end_sessions([](bson::DocumentView) { return true; });
    if (started_) {
        {
            std::lock_guard apply(core_.apply_mutex);
            core_.intents.shut_down();
        }
        upkeep_.stop(StopMode::Drop);
        timers_.stop(StopMode::Drop);
        workers_.stop(StopMode::Drain);
        resumed_.stop(StopMode::Drain);
    }
    return core_.storage->close();
}

void EngineImpl::write(WriteRequest request, WriteDone done) {
    if (request.retry) {
        if (auto number = sessions_.before_retryable_write(*request.retry); !number)
            return done(std::move(number).error());
    }
    const auto deadline = request.deadline;
    WriteRun first(core_, std::move(request));
    auto result = first.run();
    auto key = result ? std::nullopt : blocked_on(result.error());
    if (!key) {
        if (!result) return done(std::move(result).error());
        return answer_write(first, done);
    }
    auto run = std::make_shared<WriteRun>(std::move(first));
    auto work = std::make_shared<ParkedWork>(
        core_, timers_, deadline, [run](WaiterId waiter) { return run->run(waiter); },
        [this, run, done = std::move(done)](Result<void> finished) {
            if (!finished) return done(std::move(finished).error());
            answer_write(*run, done);
        });
    work->run_after(std::move(*key));
}

void EngineImpl::answer_write(WriteRun& run, const WriteDone& done) {
    WriteResult result;
    result.outcomes = run.take_outcomes();
    result.operation_time = run.position().time;
    if (!run.wait_durable()) return done(std::move(result));
    answer_durable(run.position(), std::move(result), done);
}

Result<std::int64_t> EngineImpl::run_ttl_pass() {
    ANGELIA_TRY_ASSIGN(const auto deleted, ttl_.run_pass());
    ANGELIA_TRY(core_.storage->wait_durable(core_.storage->applied()));
    return deleted;
}

void EngineImpl::set_ttl_interval(milliseconds interval) {
    ttl_interval_ms_ = interval.count();
    std::unique_lock lock(upkeep_mutex_);
    const bool waiting = next_upkeep_ && upkeep_.cancel(*next_upkeep_);
    lock.unlock();
    if (waiting) schedule_upkeep();  // else a pass is running and times the next one itself
}

void EngineImpl::schedule_upkeep() {
    const std::lock_guard lock(upkeep_mutex_);
    next_upkeep_ = upkeep_.post_after(ttl_interval(), [this] {
        run_upkeep();
        if (!core_.closing) schedule_upkeep();
    });
}

void EngineImpl::run_upkeep() {
    if (core_.closing) return;
    if (auto pass = ttl_.run_pass(); !pass) {
        ++core_.counters.ttl_failures;
        core_.options.storage.log(LogLevel::Warning,
                                  "TTL pass failed: " + pass.error().to_string());
    }
    cursors_.expire_idle();
    if (++upkeep_count_ % kRetrySweepEvery == 0 && !core_.closing) {
        ApplyScope scope(core_);
        auto swept = core_.retries.sweep(scope.section(), scope.wall(), kRetrySweepBatch);
        Result<storage::CommitPosition> committed = storage::CommitPosition{};
        if (swept && *swept > 0) committed = scope.commit(nullptr, {});
        if (!swept || !committed)
            core_.options.storage.log(LogLevel::Warning,
                                      "sweep of retry records failed: " +
                                          (swept ? committed.error() : swept.error()).to_string());
    }
}

bson::Document EngineImpl::status() const {
    const auto cursors = cursors_.counts();
    const auto& c = core_.counters;
    bson::Builder b;
    b.open("cursors")
        .add("open", cursors.open)
        .add("opened", cursors.opened)
        .add("timedOut", cursors.timed_out)
        .add("killed", cursors.killed)
        .close();
    b.open("documents")
        .add("inserted", c.inserted.load())
        .add("updated", c.updated.load())
        .add("deleted", c.deleted.load());
    b.add("examined", c.documents_examined.load())
        .add("duplicateKeys", c.duplicate_keys.load())
        .close();
    b.open("writes")
        .add("retriedStatements", c.retried_statements.load())
        .add("outsideSearches", c.outside_searches.load());
    b.add("searchesRepeated", c.searches_repeated.load())
        .add("sectionMicrosMax", c.section_us_max.load())
        .close();
    const auto t = sessions_.counts();
    b.open("transactions")
        .add("currentOpen", t.open)
        .add("currentActive", t.active)
        .add("currentInactive", t.open - t.active);
    b.add("totalStarted", t.started)
        .add("totalCommitted", t.committed)
        .add("totalAborted", t.aborted)
        .add("retriedCommitsCount", t.retried_commits);
    b.add("bytes", static_cast<std::int64_t>(core_.transaction_bytes.load()))
        .add("waitedWrites", c.parked.load())
        .add("waiting", static_cast<std::int64_t>(core_.intents.parked()))
        .close();
    b.open("sessions").add("open", t.sessions).close();
    b.open("ttl")
        .add("passes", c.ttl_passes.load())
        .add("deletedDocuments", c.ttl_deleted.load())
        .add("failures", c.ttl_failures.load())
        .close();
    if (streams_) {
        const auto s = streams_->counters();
        auto number = [](std::uint64_t v) { return static_cast<std::int64_t>(v); };
        b.open("streams")
            .add("open", number(s.streams_open))
            .add("opened", number(s.streams_opened))
            .add("waiting", number(s.streams_waiting));
        b.add("historyLost", number(s.history_lost))
            .add("wakeups", number(s.wakeups))
            .add("eventsDelivered", number(s.events_delivered));
        // Per entry: looked at, asked of a stream; per event: encoded, taken from the cache.
        b.add("entriesSeen", number(s.entries_seen))
            .add("candidates", number(s.candidates))
            .add("entriesRead", number(s.entries_read))
            .add("eventsEncoded", number(s.events_encoded))
            .add("eventsShared", number(s.events_shared))
            .add("lookups", number(s.lookups))
            .close();
    }
    return b.take();
}

}  // namespace angelia::engine
