#include "faults/load.h"

namespace angelia::engine::faults {

using namespace testing_support;

const Namespace kExpiring{"load", "expiring"};
const Namespace kLists{"load", "lists"};
const Namespace kLoose{"load", "loose"};

namespace {

constexpr std::int64_t kUniquePerWriter = 1'000'000'000;
constexpr std::int64_t kListLength = 1300;  // more than one batch
constexpr std::int64_t kListsPerRound = 4;
constexpr std::int64_t kFarFuture = 4'000'000'000'000;  // ms

bson::Document document_of(const Key& key, int writer, const State& state) {
    return bson::make("_id", key.id, "w", static_cast<std::int32_t>(writer), "rev", state.rev, "u",
                      state.unique, "tag", state.tag, "list", bson::array(state.tag, "x"), "pad",
                      std::string(static_cast<std::size_t>(state.unique % 700), 'p'));
}

std::shared_ptr<const query::Matcher> by_id(std::int64_t id) {
    return std::make_shared<const query::Matcher>(
        query::Matcher::parse(bson::make("_id", id)).value_or_throw());
}

ConditionalWrite update_of(const Namespace& ns, std::shared_ptr<const query::Matcher> filter,
                           const bson::Document& update, bool multi, bool upsert) {
    ConditionalWrite write;
    write.kind = WriteKind::Update;
    write.ns = ns;
    write.filter = std::move(filter);
    query::UpdateOptions options;
    options.multi = multi;
    options.upsert = upsert;
    write.update = std::make_shared<const query::Update>(
        query::Update::parse(update.view(), options).value_or_throw());
    write.multi = multi;
    write.upsert = upsert;
    return write;
}

ConditionalWrite copy_of_write(const ConditionalWrite& from) {
    ConditionalWrite to;
    to.kind = from.kind;
    to.ns = from.ns;
    to.document = from.document.copy();
    to.filter = from.filter;
    to.update = from.update;
    to.multi = from.multi;
    to.upsert = from.upsert;
    return to;
}

std::vector<ConditionalWrite> copies(const std::vector<ConditionalWrite>& writes) {
    std::vector<ConditionalWrite> out;
    for (const auto& write : writes) out.push_back(copy_of_write(write));
    return out;
}

std::string shown(const Key& key) {
    return loaded(key.collection).full() + " " + std::to_string(key.id);
}
std::string shown(const std::optional<State>& state) {
    if (!state) return "absent";
    return "rev " + std::to_string(state->rev) + " u " + std::to_string(state->unique) + " tag " +
           std::to_string(state->tag);
}

std::optional<State> state_in(const States& states, const Key& key) {
    const auto at = states.find(key);
    if (at == states.end()) return std::nullopt;
    return at->second;
}

}  // namespace

Namespace loaded(int collection) { return {"load", "c" + std::to_string(collection)}; }

void Times::told(bson::Timestamp time) {
    const std::lock_guard lock(mutex_);
    if (!told_.insert(time.as_uint64()).second)
        violations_.push_back("timestamp " + std::to_string(time.seconds) + ":" +
                              std::to_string(time.increment) + " was used twice");
}

Violations Times::take_violations() {
    const std::lock_guard lock(mutex_);
    return std::exchange(violations_, {});
}

void make_collections(TestEngine& engine) {
    for (int c = 0; c < kCollections; ++c) {
        auto unique = index_spec("u_1", R"({"u": 1})");
        unique.unique = true;
        engine.create_index(loaded(c), std::move(unique)).value_or_throw();
        engine.create_index(loaded(c), index_spec("w_tag", R"({"w": 1, "tag": -1})"))
            .value_or_throw();
        engine.create_index(loaded(c), index_spec("list_1", R"({"list": 1})")).value_or_throw();
    }
    auto expiring = index_spec("at_1", R"({"at": 1})");
    expiring.expire_after_seconds = 0;
    engine.create_index(kExpiring, std::move(expiring)).value_or_throw();
    engine.create_index(kLists, index_spec("l_1", R"({"l": 1})")).value_or_throw();
    engine.create(kLoose).value_or_throw();
}

Writer::Writer(int number, std::uint64_t seed, Ledger& ledger)
    : number_(number),
      random_(seed * 1000 + static_cast<std::uint64_t>(number)),
      ledger_(ledger),
      next_unique_(number * kUniquePerWriter) {}

void Writer::add_insert(Operation& op) {
    const Key key{static_cast<int>(below(kCollections)), number_ * kUniquePerWriter + next_id_++};
    const State state{0, next_unique_++, static_cast<std::int32_t>(below(5))};
    if (below(3) == 0) {
        // The same, as an upsert that finds nothing.
        op.writes.push_back(update_of(
            loaded(key.collection), by_id(key.id),
            bson::make("$set",
                       bson::make("w", static_cast<std::int32_t>(number_), "u", state.unique, "tag",
                                  state.tag, "list", bson::array(state.tag, "x")),
                       "$setOnInsert", bson::make("rev", std::int64_t{0})),
            false, true));
    } else {
        op.writes.push_back(insert_write(loaded(key.collection), document_of(key, number_, state)));
    }
    op.changes.push_back({key, state});
}

void Writer::add_update(Operation& op, const Key& key, const State& before) {
    const auto ns = loaded(key.collection);
    switch (below(4)) {
        case 0: {
            ConditionalWrite write;
            write.kind = WriteKind::Delete;
            write.ns = ns;
            write.filter = by_id(key.id);
            op.writes.push_back(std::move(write));
            op.changes.push_back({key, std::nullopt});
            return;
        }
        case 1: {
            const State after{before.rev + 1, next_unique_++, static_cast<std::int32_t>(below(5))};
            op.writes.push_back(
                update_of(ns, by_id(key.id), document_of(key, number_, after), false, false));
            op.changes.push_back({key, after});
            return;
        }
        default: {
            const State after{before.rev + 1, before.unique, static_cast<std::int32_t>(below(5))};
            op.writes.push_back(update_of(
                ns, by_id(key.id),
                bson::make("$inc", bson::make("rev", std::int64_t{1}), "$set",
                           bson::make("tag", after.tag, "list", bson::array(after.tag, "x"))),
                false, false));
            op.changes.push_back({key, after});
            return;
        }
    }
}

void Writer::add_multi_update(Operation& op) {
    const int collection = static_cast<int>(below(kCollections));
    const auto tag = static_cast<std::int32_t>(below(5));
    auto filter = std::make_shared<const query::Matcher>(
        query::Matcher::parse(bson::make("w", static_cast<std::int32_t>(number_), "tag", tag))
            .value_or_throw());
    op.writes.push_back(update_of(loaded(collection), std::move(filter),
                                  bson::make("$inc", bson::make("rev", std::int64_t{1})), true,
                                  false));
    for (const auto& [key, state] : sure_) {
        if (key.collection == collection && state.tag == tag)
            op.changes.push_back({key, State{state.rev + 1, state.unique, state.tag}});
    }
    op.atomic = true;
}

void Writer::add_duplicate(Operation& op) {
    const auto& [key, state] =
        *std::next(sure_.begin(), below(static_cast<std::int64_t>(sure_.size())));
    const Key other{key.collection, number_ * kUniquePerWriter + next_id_++};
    op.writes.push_back(insert_write(loaded(key.collection), document_of(other, number_, state)));
    op.duplicate = true;
}

Writer::Operation Writer::next() {
    Operation op;
    const auto kind = sure_.size() < 5 ? 0 : below(12);
    if (kind == 10) {
        add_multi_update(op);
        return op;
    }
    if (kind == 11) {
        add_duplicate(op);
        return op;
    }
    // One write, or an atomic list over several collections: an insert and changes of different
    // documents.
    const auto changes = sure_.size() < 5 || kind < 4 ? 0 : kind < 9 ? 1 : 3;
    if (changes != 1) add_insert(op);
    std::set<Key> chosen;
    while (static_cast<std::int64_t>(chosen.size()) < changes)
        chosen.insert(
            std::next(sure_.begin(), below(static_cast<std::int64_t>(sure_.size())))->first);
    for (const auto& key : chosen) add_update(op, key, sure_.at(key));
    op.atomic = op.writes.size() > 1;
    if (below(2) == 0) op.txn = ++txn_;
    return op;
}

Result<WriteResult> Writer::send(TestEngine& engine, Operation& op, bool wait_durable) {
    WriteRequest request;
    request.writes = std::move(op.writes);
    request.atomic = op.atomic;
    request.wait_durable = wait_durable;
    if (op.txn)
        request.retry = RetryKey{bson::make("id", static_cast<std::int32_t>(number_)), *op.txn};
    return engine.write(std::move(request));
}

void Writer::apply(const std::vector<Change>& changes) {
    for (const auto& change : changes) {
        if (change.after)
            sure_[change.key] = *change.after;
        else
            sure_.erase(change.key);
    }
}

void Writer::run(TestEngine& engine, bool wait_durable) {
    for (;;) {
        auto op = next();
        if (op.txn) {
            last_retryable_ = Sent{*op.txn, copies(op.writes), op.changes, op.atomic};
            last_acknowledged_ = false;
        }
        auto result = send(engine, op, wait_durable);
        const auto* error = !result ? &result.error() : nullptr;
        if (result) {
            for (const auto& outcome : result->outcomes) {
                if (outcome.error && !error) error = &*outcome.error;
            }
        }
        if (op.duplicate) {
            if (!error)
                violations_.push_back("a second document with one unique value was accepted");
            else if (error->code == ErrorCode::DuplicateKey)
                continue;
        }
        if (error) {
            if (error->code == ErrorCode::DuplicateKey)
                violations_.push_back("refused as a duplicate, but is none: " + error->message);
            doubt_ = std::move(op.changes);
            return;
        }
        if (!op.changes.empty()) ledger_.times.told(result->operation_time);
        apply(op.changes);
        if (op.txn) last_acknowledged_ = true;
        ++ledger_.acknowledged;
    }
}

Violations Writer::compare(const States& found) {
    auto violations = std::exchange(violations_, {});
    States made = sure_;
    std::set<Key> doubtful;
    if (doubt_) {
        std::size_t happened = 0, not_happened = 0;
        for (const auto& change : *doubt_) {
            doubtful.insert(change.key);
            const auto there = state_in(found, change.key);
            const auto before = state_in(sure_, change.key);
            if (there == change.after)
                ++happened;
            else if (there == before)
                ++not_happened;
            else
                violations.push_back(shown(change.key) + " is " + shown(there) + ", not " +
                                     shown(before) + " or " + shown(change.after));
        }
        if (happened != 0 && not_happened != 0)
            violations.push_back("writer " + std::to_string(number_) +
                                 ": an atomic list without an answer is half there");
    }
    for (const auto& [key, state] : sure_) {
        if (doubtful.count(key) == 0 && state_in(found, key) != state)
            violations.push_back(shown(key) + " was acknowledged as " + shown(state) + " and is " +
                                 shown(state_in(found, key)));
    }
    for (const auto& [key, state] : found) {
        if (doubtful.count(key) == 0 && sure_.count(key) == 0)
            violations.push_back(shown(key) + " is there: " + shown(state) + ", but should not be");
    }
    sure_ = found;
    return violations;
}

Violations Writer::send_again(TestEngine& engine) {
    Violations violations;
    doubt_.reset();
    if (!last_retryable_) return violations;
    Operation op;
    op.writes = copies(last_retryable_->writes);
    op.atomic = last_retryable_->atomic;
    op.txn = last_retryable_->txn;
    const auto changes = last_retryable_->changes;
    const auto result = send(engine, op, true);
    if (!result) return {"a retryable write sent again was refused: " + result.error().message};
    for (const auto& outcome : result->outcomes) {
        if (outcome.error)
            violations.push_back("a retryable write sent again failed: " + outcome.error->message);
        if (last_acknowledged_ && !outcome.retried)
            violations.push_back("an acknowledged retryable write was executed again");
    }
    if (!last_acknowledged_) apply(changes);  // exactly once, whether it had happened before or not
    last_acknowledged_ = true;
    return violations;
}

void ExpiringWriter::run(TestEngine& engine) {
    for (;;) {
        const auto id = next_++;
        const bool keep = id % 2 == 0;
        const auto outcome = engine.insert(
            kExpiring, bson::make("_id", id, "at", bson::Date{keep ? kFarFuture : 1000}));
        if (outcome.error) {
            if (keep) doubtful_.insert(id);
            return;
        }
        if (keep) kept_.insert(id);
        ++ledger_.acknowledged;
        if (id % 20 == 19 && !engine->run_ttl_pass()) return;
    }
}

Violations ExpiringWriter::check(TestEngine& engine) {
    Violations violations;
    if (auto pass = engine->run_ttl_pass(); !pass)
        violations.push_back("a pass of the TTL monitor failed: " + pass.error().message);
    std::set<std::int64_t> found;
    for (const auto& json : engine.find(kExpiring)) {
        const auto document = doc(json);
        found.insert(document.view()["_id"].to_int64().value_or(-1));
    }
    for (const auto id : kept_) {
        if (found.count(id) == 0)
            violations.push_back("document " + std::to_string(id) + " is gone before its time");
    }
    for (const auto id : found) {
        if (kept_.count(id) == 0 && doubtful_.count(id) == 0)
            violations.push_back("document " + std::to_string(id) + " outlived its time");
    }
    kept_ = std::move(found);
    doubtful_.clear();
    return violations;
}

void CatalogWriter::run(TestEngine& engine) {
    for (;;) {
        const auto number = next_++;
        auto& known = known_[number];
        doubt_ = Doubt::Create;
        if (!engine.create(name(number))) return;
        known.exists = true;
        doubt_ = Doubt::Insert;
        if (engine.insert(name(number), R"({"_id": 1, "a": 1})").error) return;
        known.documents = 1;
        doubt_ = Doubt::Index;
        if (!engine.create_index(name(number), index_spec("a_1", R"({"a": 1})"))) return;
        known.index = true;
        if (number % 4 != 0) {
            doubt_ = Doubt::Drop;
            if (!engine.drop(name(number))) return;
            known = Known{};
        }
        doubt_ = Doubt::None;
    }
}

Violations CatalogWriter::check(TestEngine& engine) {
    Violations violations;
    std::set<std::string> there;
    for (const auto& info : engine->list_collections("catalog")) there.insert(info.name);
    for (auto& [number, known] : known_) {
        const auto ns = name(number);
        const bool last = number + 1 == next_;
        const Doubt doubt = last ? doubt_ : Doubt::None;
        Known now;
        now.exists = there.erase(ns.collection) != 0;
        if (now.exists) {
            const auto stats = engine->collection_stats(ns).value_or_throw();
            now.documents = stats.count;
            now.index = stats.indexes.size() == 2;
            if (const auto valid = engine.validate(ns); valid != "valid")
                violations.push_back(ns.full() + ": " + valid);
        }
        const bool dropped = doubt == Doubt::Drop && !now.exists;
        if (!dropped) {
            if (now.exists != known.exists && doubt != Doubt::Create)
                violations.push_back(ns.full() + " should " +
                                     (known.exists ? "exist" : "not exist"));
            if (now.documents != known.documents && doubt != Doubt::Insert)
                violations.push_back(ns.full() + " has lost or gained a document");
            if (now.index != known.index && doubt != Doubt::Index)
                violations.push_back(ns.full() + " has lost or gained an index");
        }
        known = now;
    }
    for (const auto& name : there)
        violations.push_back("collection " + name + " came from nowhere");
    doubt_ = Doubt::None;
    return violations;
}

Result<WriteResult> ListWriter::send(TestEngine& engine, std::int64_t list) const {
    WriteRequest request;
    for (std::int64_t i = 0; i < kListLength; ++i)
        request.writes.push_back(
            insert_write(kLists, bson::make("_id", list * 10'000 + i, "l", list)));
    request.retry = RetryKey{bson::make("id", "lists"), list + 1};
    return engine.write(std::move(request));
}

void ListWriter::run(TestEngine& engine) {
    for (std::int64_t i = 0; i < kListsPerRound; ++i) {
        doubt_ = next_++;
        const auto result = send(engine, *doubt_);
        if (!result || result->outcomes.back().error || result->outcomes.back().skipped) return;
        doubt_.reset();
        ++ledger_.acknowledged;
    }
}

Violations ListWriter::check(TestEngine& engine) {
    Violations violations;
    const auto count = [&](std::int64_t list) {
        return engine.count(kLists, "{\"l\": " + std::to_string(list) + "}");
    };
    if (doubt_) {
        // What is there is a beginning: its length is the number of the first one that is missing.
        const auto there = count(*doubt_);
        const auto below = engine.count(
            kLists, "{\"l\": " + std::to_string(*doubt_) +
                        ", \"_id\": {\"$lt\": " + std::to_string(*doubt_ * 10'000 + there) + "}}");
        if (there != below) violations.push_back("list " + std::to_string(*doubt_) + " has a hole");
        const auto result = send(engine, *doubt_);
        if (!result)
            violations.push_back("a list sent again was refused: " + result.error().message);
        else if (result->outcomes.back().error)
            violations.push_back("a list sent again failed: " +
                                 result->outcomes.back().error->message);
        doubt_.reset();
    }
    for (std::int64_t list = 0; list < next_; ++list) {
        if (const auto there = count(list); there != kListLength)
            violations.push_back("list " + std::to_string(list) + " has " + std::to_string(there) +
                                 " documents");
    }
    return violations;
}

void write_loosely(TestEngine& engine, Ledger& ledger, std::int64_t first_id) {
    for (std::int64_t id = first_id;; ++id) {
        WriteRequest request;
        request.writes.push_back(insert_write(kLoose, bson::make("_id", id)));
        request.wait_durable = false;
        const auto result = engine.write(std::move(request));
        if (!result || result->outcomes[0].error) return;
        ledger.times.told(result->operation_time);
    }
}

}  // namespace angelia::engine::faults
