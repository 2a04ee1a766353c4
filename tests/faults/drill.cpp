#include "faults/drill.h"

namespace angelia::engine::faults {

using namespace testing_support;
using Survivors = storage::testing::FaultEnvironment::Survivors;

namespace {

constexpr int kWriters = 6;

void append(Violations& to, Violations from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

std::string shown(const Violations& violations) {
    std::string out;
    for (std::size_t i = 0; i < violations.size() && i < 10; ++i) out += violations[i] + "\n";
    if (violations.size() > 10) out += "and " + std::to_string(violations.size() - 10) + " more\n";
    return out;
}

Drill::Drill(std::uint64_t seed, std::uint64_t oplog_bytes_max)
    : seed_(seed),
      oplog_bytes_max_(oplog_bytes_max),
      disk_(seed),
      expiring_(ledger_),
      lists_(ledger_) {
    for (int i = 0; i < kWriters; ++i)
        writers_.push_back(std::make_unique<Writer>(i, seed, ledger_));
    for (int c = 0; c < kCollections; ++c)
        readers_.push_back(std::make_unique<StreamReader>(loaded(c)));
}

Drill::~Drill() {
    disk_.power_cut();  // ends the load
    join_load();
    for (auto& reader : readers_) reader->stop();
}

EngineOptions Drill::options() {
    auto options = folder_options(folder_.path());
    options.storage.environment = disk_.environment();
    options.storage.clock = &clock_;
    options.storage.resume_retry = milliseconds(2);
    // Every other seed reads its streams from the store's files rather than from memory.
    if (seed_ % 2 == 0) options.storage.tail_bytes_max = 16 << 10;
    if (oplog_bytes_max_ != 0) options.storage.oplog_bytes_max = oplog_bytes_max_;
    return options;
}

void Drill::open() {
    const bool first = engine_ == nullptr && ledger_.acknowledged == 0;
    engine_ = std::make_unique<TestEngine>(options());
    if (first) make_collections(*engine_);
}

void Drill::start_load(bool wait_durable) {
    for (auto& reader : readers_) reader->start(*engine_);
    for (auto& writer : writers_)
        threads_.emplace_back(
            [this, &writer, wait_durable] { writer->run(*engine_, wait_durable); });
    threads_.emplace_back([this] { expiring_.run(*engine_); });
    threads_.emplace_back([this] { catalog_.run(*engine_); });
    threads_.emplace_back([this] { lists_.run(*engine_); });
    threads_.emplace_back([this, first = loose_next_] { write_loosely(*engine_, ledger_, first); });
    loose_next_ += 10'000'000;
    // Tables and manifests are in the making, too; the outcome of a compaction is nobody's promise.
    threads_.emplace_back([this] {
        static_cast<void>((*engine_)->storage().compact(storage::Family::Records, {}, {}));
    });
}

void Drill::wait_for(std::uint64_t acknowledged) {
    const auto goal = ledger_.acknowledged + acknowledged;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (ledger_.acknowledged < goal && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void Drill::join_load() {
    for (auto& thread : threads_) thread.join();
    threads_.clear();
}

void Drill::power_cut_and_on(Survivors survivors) {
    disk_.power_cut();
    stop_all();
    disk_.power_on(survivors);
    open();
}

void Drill::restart() {
    stop_all();
    open();
}

void Drill::stop_all() {
    join_load();
    for (auto& reader : readers_) reader->stop();
    engine_.reset();
}

Violations Drill::check_writers() {
    Violations violations;
    std::map<int, States> found;
    for (int c = 0; c < kCollections; ++c) {
        for (const auto& json : engine_->find(loaded(c))) {
            const auto document = doc(json);
            const auto view = document.view();
            const auto number = [&](const char* field) {
                return view[field].to_int64().value_or(-1);
            };
            found[static_cast<int>(number("w"))][{c, number("_id")}] =
                State{number("rev"), number("u"), static_cast<std::int32_t>(number("tag"))};
        }
    }
    for (auto& writer : writers_) append(violations, writer->compare(found[writer->number()]));
    for (auto& writer : writers_) append(violations, writer->send_again(*engine_));
    return violations;
}

Violations Drill::check_collections() {
    Violations violations;
    for (int c = 0; c < kCollections; ++c) {
        const auto ns = loaded(c);
        std::int64_t expected = 0;
        for (const auto& writer : writers_) {
            for (const auto& [key, state] : writer->sure()) expected += key.collection == c ? 1 : 0;
        }
        std::int64_t by_index = 0;
        for (int tag = 0; tag < 5; ++tag)
            by_index += engine_->count(ns, "{\"list\": " + std::to_string(tag) + "}");
        const auto counted = engine_->count(ns);
        const auto kept = (*engine_)->collection_stats(ns).value_or_throw().count;
        if (counted != expected || kept != expected || by_index != expected)
            violations.push_back(ns.full() + ": " + std::to_string(expected) +
                                 " documents, counted " + std::to_string(counted) +
                                 ", the counter says " + std::to_string(kept) + ", by index " +
                                 std::to_string(by_index));
    }
    for (const auto& info : (*engine_)->list_collections("load")) {
        if (const auto valid = engine_->validate({"load", info.name}); valid != "valid")
            violations.push_back("load." + info.name + ": " + valid);
    }
    return violations;
}

Violations Drill::check() {
    Violations violations;
    append(violations, check_writers());
    append(violations, expiring_.check(*engine_));
    append(violations, catalog_.check(*engine_));
    append(violations, lists_.check(*engine_));
    append(violations, check_collections());
    for (auto& reader : readers_)
        append(violations,
               oplog_bytes_max_ == 0 ? reader->check(*engine_) : reader->check_trimmed(*engine_));
    append(violations, ledger_.times.take_violations());
    return violations;
}

}  // namespace angelia::engine::faults
