#include "store_embedded/adapter.h"

#include "engine/query/projection.h"
#include "store_embedded/diagnostics.h"
#include "store_embedded/embedded_session.h"
#include "store_embedded/embedded_store.h"
#include "store_embedded/embedded_watch.h"
#include "store_embedded/waiter.h"
#include "store_embedded/write_list.h"

#include <algorithm>
#include <thread>

namespace angelia::store_embedded {

namespace query = engine::query;
using engine::ConditionalWrite;
using store::CallOptions;
using store::CollectionName;

namespace {

constexpr std::int64_t kFindBatch = 10'000;

Error closed_error() { return {ErrorCode::ShutdownInProgress, "the store was closed"}; }

}  // namespace

engine::Namespace to_namespace(const CollectionName& name) { return {name.db, name.collection}; }

EmbeddedStore::EmbeddedStore(EngineLease lease, std::string description)
    : description_(std::move(description)),
      session_ids_(std::make_shared<SessionIds>()),
      lease_(std::move(lease)) {}

EmbeddedStore::~EmbeddedStore() { (void)close(); }

Result<std::shared_ptr<engine::Engine>> EmbeddedStore::engine() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return closed_error();
    return lease_.engine();
}

Result<engine::WriteResult> EmbeddedStore::write(engine::Engine& target,
                                                 std::vector<ConditionalWrite> writes, bool ordered,
                                                 const CallOptions& options) {
    ANGELIA_TRY_ASSIGN(Statement statement, this->statement(options));
    engine::WriteRequest request;
    request.statement = statement.engine_statement();
    request.writes = std::move(writes);
    request.ordered = ordered;
    request.wait_durable = options.acknowledge != store::Acknowledge::None;
    request.deadline = target.options().storage.clock->steady_now() + options.timeout;
    Waiter<engine::WriteResult> waiter;
    target.write(std::move(request), waiter.done());
    return statement.end(waiter.wait(options.timeout));
}

Result<Statement> EmbeddedStore::statement(const CallOptions& options) {
    return Statement::begin(options, this);
}

Result<engine::WriteResult> EmbeddedStore::write(
    WriteList& list, std::size_t count,
    const std::function<Result<ConditionalWrite>(std::size_t)>& parsed, bool ordered,
    const CallOptions& options) {
    ANGELIA_TRY_ASSIGN(const auto target, engine());
    for (std::size_t i = 0; i < count; ++i) {
        auto write = parsed(i);
        // A transaction ends with its first failed write: nothing before this one would stay.
        if (!write && options.session != nullptr && options.session->in_transaction())
            return refused(options, std::move(write).error());
        if (!list.add(i, std::move(write))) break;
    }
    if (list.empty()) return engine::WriteResult{};
    return write(*target, list.take(), ordered, options);
}

Error EmbeddedStore::refused(const CallOptions& options, Error error) {
    auto begun = statement(options);
    return begun ? begun->failed(std::move(error)) : std::move(begun).error();
}

Result<store::InsertResult> EmbeddedStore::insert(const CollectionName& name,
                                                  std::span<const bson::DocumentView> documents,
                                                  bool ordered, const CallOptions& options) {
    ANGELIA_TRY_ASSIGN(const auto target, engine());
    const engine::Namespace ns = to_namespace(name);
    WriteList list(ordered);
    for (std::size_t i = 0; i < documents.size(); ++i) list.add(i, to_write(ns, documents[i]));
    ANGELIA_TRY_ASSIGN(engine::WriteResult done, write(*target, list.take(), ordered, options));
    store::InsertResult result;
    for (const auto& outcome : done.outcomes)
        result.inserted += outcome.error || outcome.skipped ? 0 : 1;
    result.errors = list.errors(done.outcomes);
    return result;
}

Result<std::vector<bson::Document>> EmbeddedStore::find(const store::FindRequest& request,
                                                        const CallOptions& options) {
    ANGELIA_TRY_ASSIGN(const auto target, engine());
    ANGELIA_TRY_ASSIGN(Statement statement, this->statement(options));
    return statement.end(read(*target, request, options, statement));
}

Result<std::vector<bson::Document>> EmbeddedStore::read(engine::Engine& target,
                                                        const store::FindRequest& request,
                                                        const CallOptions& options,
                                                        const Statement& statement) {
    engine::FindSpec spec;
    statement.fill(spec);
    spec.ns = to_namespace(request.collection);
    spec.filter = request.filter.copy();
    spec.projection = request.projection.copy();
    spec.sort = request.sort.copy();
    spec.skip = request.skip;
    spec.limit = request.limit;
    spec.batch_size = kFindBatch;
    spec.deadline = target.options().storage.clock->steady_now() + options.timeout;
    ANGELIA_TRY_ASSIGN(engine::CursorBatch batch, target.find(spec));
    std::vector<bson::Document> all = std::move(batch.documents);
    while (batch.cursor_id != 0) {
        engine::GetMoreSpec more;
        more.cursor_id = batch.cursor_id;
        more.ns = spec.ns;
        more.batch_size = kFindBatch;
        statement.fill(more);
        Waiter<engine::CursorBatch> waiter;
        target.get_more(more, waiter.done());
        ANGELIA_TRY_ASSIGN(batch, waiter.wait(options.timeout));
        std::move(batch.documents.begin(), batch.documents.end(), std::back_inserter(all));
    }
    return all;
}

Result<store::UpdateResult> EmbeddedStore::update(const CollectionName& name,
                                                  std::vector<store::UpdateOp> ops, bool ordered,
                                                  const CallOptions& options) {
    WriteList list(ordered);
    const engine::Namespace ns = to_namespace(name);
    const auto parsed = [&](std::size_t i) { return to_write(ns, ops[i]); };
    ANGELIA_TRY_ASSIGN(engine::WriteResult done, write(list, ops.size(), parsed, ordered, options));
    store::UpdateResult result;
    result.effective.resize(ops.size());
    for (std::size_t i = 0; i < done.outcomes.size(); ++i) {
        auto& outcome = done.outcomes[i];
        const bool upserted = !outcome.upserted_id.is_missing();
        result.matched += outcome.matched;
        result.modified += outcome.modified;
        result.effective[list.position(i)] = outcome.modified > 0 || upserted;
        if (upserted)
            result.upserted.emplace_back(list.position(i), std::move(outcome.upserted_id));
    }
    result.errors = list.errors(done.outcomes);
    return result;
}

Result<store::DeleteResult> EmbeddedStore::remove(const CollectionName& name,
                                                  std::vector<store::DeleteOp> ops, bool ordered,
                                                  const CallOptions& options) {
    WriteList list(ordered);
    const engine::Namespace ns = to_namespace(name);
    const auto parsed = [&](std::size_t i) { return to_write(ns, ops[i]); };
    ANGELIA_TRY_ASSIGN(engine::WriteResult done, write(list, ops.size(), parsed, ordered, options));
    store::DeleteResult result;
    for (const auto& outcome : done.outcomes) result.deleted += outcome.matched;
    result.errors = list.errors(done.outcomes);
    return result;
}

Result<store::BulkResult> EmbeddedStore::bulk_write(std::vector<store::BulkOp> ops, bool ordered,
                                                    const CallOptions& options) {
    using Kind = store::BulkOp::Kind;
    WriteList list(ordered);
    const auto parsed = [&](std::size_t i) -> Result<ConditionalWrite> {
        const store::BulkOp& op = ops[i];
        const engine::Namespace ns = to_namespace(op.collection);
        if (op.kind == Kind::Update) return to_write(ns, op.update);
        if (op.kind == Kind::Delete) return to_write(ns, op.remove);
        return to_write(ns, op.document.view());
    };
    ANGELIA_TRY_ASSIGN(engine::WriteResult done, write(list, ops.size(), parsed, ordered, options));
    store::BulkResult result;
    result.effective.resize(ops.size());
    for (std::size_t i = 0; i < done.outcomes.size(); ++i) {
        const auto& outcome = done.outcomes[i];
        if (outcome.error || outcome.skipped) continue;
        const Kind kind = ops[list.position(i)].kind;
        result.effective[list.position(i)] =
            kind == Kind::Update ? outcome.modified > 0 || !outcome.upserted_id.is_missing()
                                 : outcome.matched > 0;
        if (kind == Kind::Insert) ++result.inserted;
        if (kind == Kind::Delete) result.deleted += outcome.matched;
        if (kind != Kind::Update) continue;
        result.matched += outcome.matched;
        result.modified += outcome.modified;
        result.upserted += outcome.upserted_id.is_missing() ? 0 : 1;
    }
    result.errors = list.errors(done.outcomes);
    return result;
}

Result<std::optional<bson::Document>> EmbeddedStore::find_and_modify(
    store::FindAndModifyRequest request, const CallOptions& options) {
    ANGELIA_TRY_ASSIGN(const auto target, engine());
    const engine::Namespace ns = to_namespace(request.collection);
    auto projection = query::Projection::parse(request.projection);
    if (!projection) return refused(options, std::move(projection).error());
    Result<ConditionalWrite> made =
        request.remove ? to_write(ns, store::DeleteOp{request.filter.copy(), false})
                       : to_write(ns, store::UpdateOp{request.filter.copy(), request.update.copy(),
                                                      false, request.upsert});
    if (!made) return refused(options, std::move(made).error());
    std::vector<ConditionalWrite> writes;
    writes.push_back(std::move(made).value());
    writes[0].sort = request.sort.copy();
    writes[0].image = request.return_new ? engine::ReturnImage::After : engine::ReturnImage::Before;
    ANGELIA_TRY_ASSIGN(engine::WriteResult done, write(*target, std::move(writes), true, options));
    engine::WriteOutcome& outcome = done.outcomes.front();
    if (outcome.error) return *std::move(outcome.error);
    if (!outcome.image) return std::optional<bson::Document>();
    return std::optional<bson::Document>(projection->apply(*outcome.image));
}

Result<std::int64_t> EmbeddedStore::count(const CollectionName& name, bson::DocumentView filter,
                                          const CallOptions& options) {
    ANGELIA_TRY_ASSIGN(const auto target, engine());
    ANGELIA_TRY_ASSIGN(Statement statement, this->statement(options));
    if (statement.in_transaction())
        return statement.end(count_in_transaction(*target, to_namespace(name), filter, statement));
    engine::CountSpec spec;
    spec.ns = to_namespace(name);
    spec.filter = bson::Document(filter);
    return target->count(spec);
}

Result<std::int64_t> EmbeddedStore::count_in_transaction(engine::Engine& target,
                                                         const engine::Namespace& ns,
                                                         bson::DocumentView filter,
                                                         const Statement& statement) {
    engine::AggregateSpec spec;
    statement.fill(spec);
    spec.ns = ns;
    spec.pipeline =
        bson::Document(bson::array(bson::make("$match", filter), bson::make("$count", "n")).view());
    ANGELIA_TRY_ASSIGN(const engine::CursorBatch counted, target.aggregate(spec));
    return counted.documents.empty() ? 0 : counted.documents[0]["n"].to_int64().value_or(0);
}

Result<void> EmbeddedStore::ensure_indexes(const CollectionName& name,
                                           std::vector<store::IndexDefinition> indexes,
                                           const CallOptions& options) {
    ANGELIA_TRY_ASSIGN(const auto target, engine());
    ANGELIA_TRY_ASSIGN(const Statement statement, this->statement(options));
    std::vector<engine::IndexSpec> specs;
    for (auto& index : indexes) {
        engine::IndexSpec spec;
        spec.name = std::move(index.name);
        spec.key = std::move(index.key);
        spec.unique = index.unique;
        spec.sparse = index.sparse;
        if (index.expire_after_seconds) spec.expire_after_seconds = *index.expire_after_seconds;
        specs.push_back(std::move(spec));
    }
    Waiter<engine::IndexBuild> waiter;
    target->create_indexes(to_namespace(name), std::move(specs), waiter.done(),
                           target->options().storage.clock->steady_now() + options.timeout);
    ANGELIA_TRY(waiter.wait(options.timeout));
    return {};
}

Result<void> EmbeddedStore::drop(const CollectionName& name, const CallOptions& options) {
    ANGELIA_TRY_ASSIGN(const auto target, engine());
    ANGELIA_TRY_ASSIGN(const Statement statement, this->statement(options));
    Waiter<std::int32_t> waiter;
    target->drop_collection(to_namespace(name), waiter.done(),
                            target->options().storage.clock->steady_now() + options.timeout);
    const auto dropped = waiter.wait(options.timeout);
    if (!dropped && dropped.error().code != ErrorCode::NamespaceNotFound) return dropped.error();
    return {};
}

Result<std::vector<std::string>> EmbeddedStore::list_collections(std::string_view db,
                                                                 const CallOptions& options) {
    ANGELIA_TRY_ASSIGN(const auto target, engine());
    ANGELIA_TRY_ASSIGN(const Statement statement, this->statement(options));
    std::vector<std::string> names;
    for (auto& info : target->list_collections(std::string(db)))
        names.push_back(std::move(info.name));
    std::sort(names.begin(), names.end());
    return names;
}

Result<std::unique_ptr<store::Watch>> EmbeddedStore::watch(store::WatchRequest request,
                                                           store::WatchEvents events) {
    ANGELIA_TRY_ASSIGN(const auto target, engine());
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return closed_error();
    if (lane_ == nullptr) {
        auto lane = std::make_shared<SerialExecutor>(SerialExecutorOptions{"watches", 0});
        ANGELIA_TRY(lane->start());
        lane_ = std::move(lane);
    }
    std::erase_if(watches_, [](const auto& w) { return w.expired(); });
    auto made =
        std::make_shared<EmbeddedWatch>(target, lane_, std::move(request), std::move(events));
    ANGELIA_TRY(made->start());
    watches_.push_back(made);
    return std::unique_ptr<store::Watch>(std::make_unique<EmbeddedWatchHandle>(std::move(made)));
}

Result<store::ServerTime> EmbeddedStore::server_time(const CallOptions&) {
    ANGELIA_TRY_ASSIGN(const auto target, engine());
    return store::ServerTime{bson::Date{target->options().storage.clock->system_millis()},
                             microseconds(0)};
}

Result<store::Capabilities> EmbeddedStore::capabilities() {
    ANGELIA_TRY(engine());
    store::Capabilities c;
    c.change_streams = c.start_after = c.batch_tokens = c.fills_timestamps = c.ttl_indexes = true;
    c.transactions = true;
    c.topology = "embedded";
    c.server_version = "7.0.0";  // whose rules the engine follows
    return c;
}

Result<std::unique_ptr<store::Session>> EmbeddedStore::start_session() {
    ANGELIA_TRY_ASSIGN(auto target, engine());
    return sessions_.add(std::make_shared<EmbeddedSession>(this, std::move(target), session_ids_));
}

std::unique_ptr<store::Diagnostics> EmbeddedStore::diagnostics() {
    const auto target = engine();
    if (!target) return nullptr;
    return make_diagnostics(*target);
}

Result<void> EmbeddedStore::close() {
    std::vector<std::weak_ptr<EmbeddedWatch>> watches;
    std::shared_ptr<SerialExecutor> lane;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (closed_) return {};
        closed_ = true;
        watches.swap(watches_);
        lane = std::move(lane_);
    }
    sessions_.end_all();
    for (const auto& weak : watches) {
        if (const auto watch = weak.lock()) watch->close();
    }
    if (lane != nullptr && lane->on_own_thread()) {
        std::thread([lane] {
            lane->stop(StopMode::Drop);
        }).detach();  // closed in a callback: the lane cannot wait for itself
    } else if (lane != nullptr) {
        lane->stop(StopMode::Drop);
    }
    return lease_.release();
}

store::Store open_embedded(std::shared_ptr<engine::Engine> engine, std::string database,
                           std::string description) {
    return store::Store(
        std::make_shared<EmbeddedStore>(EngineLease(std::move(engine)), std::move(description)),
        std::move(database));
}

Result<std::shared_ptr<store::StoreAdapter>> open_embedded(const store::StoreAddress& address,
                                                           const store::OpenOptions& options) {
    ANGELIA_TRY_ASSIGN(EngineLease lease, lease_engine(address, options));
    return std::shared_ptr<store::StoreAdapter>(
        std::make_shared<EmbeddedStore>(std::move(lease), address.describe()));
}

std::shared_ptr<engine::Engine> engine_of(const store::Store& store) {
    const auto adapter = std::dynamic_pointer_cast<EmbeddedStore>(store.adapter());
    if (adapter == nullptr) return nullptr;
    auto engine = adapter->engine();
    return engine ? *std::move(engine) : nullptr;
}

}  // namespace angelia::store_embedded
