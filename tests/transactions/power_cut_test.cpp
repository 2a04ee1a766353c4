// Power cuts inside transactions: what was acknowledged is there whole, what was not is there whole
// or not at all, a commit sent again says which, and a change stream goes on where it was.
#include "transactions/workload.h"

#include "engine/storage/testing/fault_env.h"
#include "support/seeds.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <iostream>

namespace angelia::transactions {
namespace {

using namespace engine;
using namespace engine::testing_support;
using Survivors = storage::testing::FaultEnvironment::Survivors;

/// Reads the change stream of the lists on a thread of its own, over the cuts, and puts the lists
/// together from the events.
class ListStream {
  public:
    ~ListStream() { stop(); }

    void start(TestEngine& engine) {
        stream_ = open(engine);
        stop_ = false;
        if (token_.view().empty())
            token_ = stream_->poll(0, kBytesMax).value_or_throw().resume_token.copy();
        thread_ = std::thread([this] {
            while (!stop_ && read_on(*stream_)) wait();
        });
    }
    void stop() {
        stop_ = true;
        wake();
        if (thread_.joinable()) thread_.join();
        if (stream_) stream_->close();
        stream_.reset();
    }
    /// Call when nobody writes: reads to the end on a new stream behind the last token.
    Lists lists(TestEngine& engine) {
        const auto stream = open(engine);
        // Nobody writes now: it is at the end when it stands where a new one begins.
        token_ = {};
        const auto end =
            bson::to_json(open(engine)->poll(0, kBytesMax).value_or_throw().resume_token);
        while (read_on(*stream) && bson::to_json(token_) < end) {
        }
        stream->close();
        return told_;
    }

  private:
    static constexpr std::size_t kBytesMax = std::size_t{1} << 20;

    std::shared_ptr<ChangeStream> open(TestEngine& engine) const {
        WatchSpec spec;
        spec.ns = kLists;
        if (!token_.view().empty()) spec.options = bson::make("resumeAfter", token_);
        return engine->watch(spec).value_or_throw();
    }

    /// The number of events; nothing when the stream has ended.
    std::optional<std::size_t> read_on(ChangeStream& stream) {
        auto batch = stream.poll(50, kBytesMax);
        if (!batch) return std::nullopt;
        for (const auto& event : batch->events) tell(event.view());
        token_ = batch->resume_token.copy();
        return batch->events.size();
    }

    void tell(bson::DocumentView event) {
        const auto key = event.find_path("documentKey._id").to_int64().value_or(-1);
        auto& list = told_[key];
        if (const auto inserted = event["fullDocument"].get_document()) {
            Lists one;
            add_list(one, *inserted);
            for (const auto value : one[key]) list.push_back(value);
        }
        const auto updated = event.find_path("updateDescription.updatedFields").get_document();
        if (!updated) return;
        for (const auto& [name, value] : *updated) {
            const auto appended = value.to_int64();
            if (name.substr(0, 7) == "values." && appended) list.push_back(*appended);
        }
    }

    void wait() {
        stream_->wake_once([this] { wake(); });
        std::unique_lock lock(mutex_);
        woken_.wait(lock, [&] { return wake_ || stop_; });
        wake_ = false;
        lock.unlock();
        stream_->wake_once({});
    }
    void wake() {
        const std::lock_guard lock(mutex_);
        wake_ = true;
        woken_.notify_one();
    }

    bson::Document token_;
    Lists told_;
    std::shared_ptr<ChangeStream> stream_;  // shared with the engine
    std::thread thread_;
    std::atomic<bool> stop_{false};
    std::mutex mutex_;
    std::condition_variable woken_;
    bool wake_ = false;
};

struct Resolved {
    int committed = 0, aborted = 0;
};

class Machine {
  public:
    explicit Machine(std::uint64_t seed) : seed_(seed), random_(seed), disk_(seed) {
        open();
        make_lists(*engine_);
    }

    /// Clients at work until the power goes, and then some more, who learn that nothing works.
    void work_until_power_cut(int round) {
        stream_.start(*engine_);
        std::atomic<bool> cut{false};
        int turns_left = 3;
        const auto goal = recorder_.size() + 20 + random_() % 300;
        const auto instant = microseconds(random_() % 3000);
        std::thread cutter([&] {
            const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
            while (recorder_.size() < goal && std::chrono::steady_clock::now() < deadline)
                std::this_thread::sleep_for(microseconds(200));
            std::this_thread::sleep_for(instant);  // a random one
            disk_.power_cut();
            cut = true;
        });
        Plan plan;
        plan.seed = seed_ * 10 + static_cast<std::uint64_t>(round);
        plan.turns = 1'000'000;
        plan.turns_per_epoch = 60;
        plan.first_epoch = round * 1000;
        run(
            plan, [&](std::int64_t number) { return engine_session(**engine_, number); }, recorder_,
            [&] { return cut && turns_left-- == 0; });
        cutter.join();
        stream_.stop();
        engine_.reset();
        disk_.power_on(random_() % 2 == 0 ? Survivors::Nothing : Survivors::RandomPrefix);
        open();
    }

    /// Sends the commits again: acknowledged ones must still be known, the others get an answer.
    Resolved ask_again() {
        Resolved resolved;
        std::map<std::int64_t, std::int64_t> newest;  // committed, by session
        recorder_.resolve([&](Transaction& t) {
            if (t.session == 0 || !t.appends()) return;
            if (t.outcome == Outcome::Committed)
                newest[t.session] = std::max(newest[t.session], t.number);
            if (t.outcome != Outcome::Unknown) return;
            t.outcome = commit_again(**engine_, t.session, t.number);
            resolved.committed += t.outcome == Outcome::Committed ? 1 : 0;
            resolved.aborted += t.outcome == Outcome::Aborted ? 1 : 0;
        });
        for (const auto& [session, number] : newest)
            EXPECT_NE(commit_again(**engine_, session, number), Outcome::Aborted)
                << "the store has forgotten that transaction " << number << " of session "
                << session << " was committed";
        return resolved;
    }

    void check_everything() {
        const auto lists = all_lists(*engine_);
        const auto report = check(recorder_.take(lists));
        EXPECT_EQ(report.text(), "") << "seed " << seed_;
        EXPECT_EQ(engine_->validate(kLists), "valid") << "seed " << seed_;
        EXPECT_EQ(stream_.lists(*engine_), lists) << "seed " << seed_;
    }

    /// Nothing that died with the power holds a document.
    void write_to_every_list() {
        for (const auto& [key, list] : all_lists(*engine_)) {
            Transaction t;
            t.who = "after the cut";
            t.began = recorder_.now();
            const auto value = recorder_.new_value();
            WriteRequest request;
            request.writes.push_back(
                update_write(kLists, "{\"_id\": " + std::to_string(key) + "}",
                             "{\"$push\": {\"values\": " + std::to_string(value) + "}}"));
            request.deadline = real_clock().steady_now() + std::chrono::seconds(10);
            const auto result = engine_->write(std::move(request));
            ASSERT_EQ(code_of(result), "ok");
            ASSERT_EQ(code_of(result->outcomes[0]), "ok");
            t.steps.push_back(append_step(key, value, "plainly"));
            t.ended = recorder_.now();
            recorder_.add(std::move(t));
        }
    }

  private:
    void open() {
        auto options = folder_options(folder_.path());
        options.storage.environment = disk_.environment();
        options.storage.resume_retry = milliseconds(2);
        engine_ = std::make_unique<TestEngine>(std::move(options));
    }

    const std::uint64_t seed_;
    std::mt19937_64 random_;
    TempFolder folder_;
    storage::testing::FaultEnvironment disk_;
    Recorder recorder_;
    ListStream stream_;
    std::unique_ptr<TestEngine> engine_;
};

class TransactionsPowerCut : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(TransactionsPowerCut, LeavesEachWholeOrNotAtAll) {
    std::cout << "seed " << GetParam() << std::endl;
    Machine machine(GetParam());
    for (int round = 0; round < 2; ++round) {
        machine.work_until_power_cut(round);
        const auto resolved = machine.ask_again();
        std::cout << "commits without an answer: " << resolved.committed << " happened, "
                  << resolved.aborted << " did not" << std::endl;
        machine.check_everything();
        machine.write_to_every_list();
        machine.check_everything();
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TransactionsPowerCut, ::testing::ValuesIn(test::seeds(6, 60)));

}  // namespace
}  // namespace angelia::transactions
