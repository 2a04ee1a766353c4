// The handle applications hold: arguments are checked here, once, so that adapters may trust them.
#include <angelia/store/store.h>

#include <fmt/format.h>

namespace angelia::store {
namespace {

constexpr std::size_t kBatchMax = 100'000;       // MongoDB limit, "Write Command Batch Limit Size"
constexpr std::size_t kDatabaseBytesMax = 63;    // MongoDB limit, "Database Name Length"
constexpr std::size_t kNamespaceBytesMax = 255;  // MongoDB limit, "Namespace Length"

Result<void> check_database_name(std::string_view db) {
    const bool bad = db.empty() || db.size() > kDatabaseBytesMax ||
                     db.find_first_of(std::string_view("/\\. \"$\0", 7)) != std::string_view::npos;
    if (bad)
        return {ErrorCode::InvalidNamespace,
                fmt::format(
                    "database name '{}' is not allowed: 1 to {} bytes without / \\ . space \" $",
                    db, kDatabaseBytesMax)};
    return {};
}

Result<void> check_name(const CollectionName& name) {
    ANGELIA_TRY(check_database_name(name.db));
    const std::string_view c = name.collection;
    if (c.empty())
        return {ErrorCode::InvalidNamespace,
                fmt::format("the collection name in '{}' is empty", name.full())};
    if (c.front() == '.' || c.back() == '.' ||
        c.find_first_of(std::string_view("$\0", 2)) != std::string_view::npos) {
        return {ErrorCode::InvalidNamespace,
                fmt::format(
                    "collection name '{}' is not allowed: no $, no zero byte, no dot at either end",
                    c)};
    }
    if (name.db.size() + 1 + c.size() > kNamespaceBytesMax) {
        return {ErrorCode::InvalidNamespace,
                fmt::format("'{}' is {} bytes long; a namespace has at most {}", name.full(),
                            name.db.size() + 1 + c.size(), kNamespaceBytesMax)};
    }
    return {};
}

Result<void> check_batch(std::size_t size, std::string_view verb) {
    if (size > kBatchMax)
        return {ErrorCode::InvalidLength,
                fmt::format("{} of {} operations; a batch has at most {}", verb, size, kBatchMax)};
    return {};
}

Result<void> check_size(bson::DocumentView document, std::string_view what, std::size_t index) {
    if (document.size_bytes() > bson::kDocumentBytesMax) {
        return {ErrorCode::BSONObjectTooLarge,
                fmt::format("{} {} is {} bytes long; a document has at most {}", what, index,
                            document.size_bytes(), bson::kDocumentBytesMax)};
    }
    return {};
}

Result<void> check_options(const CallOptions& options) {
    if (options.timeout <= milliseconds::zero()) {
        return {ErrorCode::BadValue, fmt::format("a timeout of {} ms is not allowed: at least 1 ms",
                                                 options.timeout.count())};
    }
    if (options.session == nullptr) return {};
    if (options.acknowledge == Acknowledge::None)
        return {ErrorCode::InvalidOptions, "writes in a session cannot go unacknowledged"};
    if (options.acknowledge != Acknowledge::Default && options.session->in_transaction()) {
        return {ErrorCode::InvalidOptions,
                "writes of a transaction are acknowledged by its commit: say how in the options of "
                "the transaction"};
    }
    return {};
}

bool in_transaction(const CallOptions& options) {
    return options.session != nullptr && options.session->in_transaction();
}

/// For verbs that no transaction can have; refused here, the server does not end the transaction.
Result<void> refuse_in_transaction(const CallOptions& options, std::string_view verb,
                                   std::string_view instead) {
    if (!in_transaction(options)) return {};
    return {ErrorCode::OperationNotSupportedInTransaction,
            fmt::format("{} is not possible in a transaction: {}", verb, instead)};
}

/// In a transaction one failed write ends it, and nothing of the batch remains: then that error is
/// the verb's.
template <class T>
Result<T> whole_or_error(bool transaction, Result<T> result) {
    if (transaction && result && !result->errors.empty())
        return std::move(result->errors.front().error);
    return result;
}

Result<void> check_update(const UpdateOp& op, std::size_t index) {
    ANGELIA_TRY(check_size(op.filter, "filter", index));
    ANGELIA_TRY(check_size(op.update, "update", index));
    const auto first = op.update.view().begin();
    const bool operators =
        first != op.update.view().end() && !first->key.empty() && first->key.front() == '$';
    if (op.multi && !operators) {
        return {
            ErrorCode::FailedToParse,
            fmt::format(
                "update {}: a replacement changes one document, so multi is not allowed with it",
                index)};
    }
    return {};
}

Error not_open() {
    return {ErrorCode::ShutdownInProgress, "this store handle is not connected to a store"};
}

}  // namespace

// Every verb starts so: an empty handle and bad options answer before the adapter is asked.
#define ANGELIA_STORE_CHECK_CALL(options)       \
    if (adapter_ == nullptr) return not_open(); \
    ANGELIA_TRY(check_options(options))

Result<InsertResult> Store::insert(const CollectionName& name,
                                   std::span<const bson::DocumentView> documents, bool ordered,
                                   const CallOptions& options) {
    ANGELIA_STORE_CHECK_CALL(options);
    ANGELIA_TRY(check_name(name));
    ANGELIA_TRY(check_batch(documents.size(), "insert"));
    for (std::size_t i = 0; i < documents.size(); ++i)
        ANGELIA_TRY(check_size(documents[i], "document", i));
    if (documents.empty()) return InsertResult{};
    return whole_or_error(in_transaction(options),
                          adapter_->insert(name, documents, ordered, options));
}

Result<InsertResult> Store::insert(const CollectionName& name, bson::DocumentView document,
                                   const CallOptions& options) {
    return insert(name, std::span<const bson::DocumentView>(&document, 1), true, options);
}

Result<std::vector<bson::Document>> Store::find(const FindRequest& request,
                                                const CallOptions& options) {
    ANGELIA_STORE_CHECK_CALL(options);
    ANGELIA_TRY(check_name(request.collection));
    if (request.skip < 0 || request.limit < 0) {
        return {ErrorCode::BadValue, fmt::format("skip {} and limit {} may not be negative",
                                                 request.skip, request.limit)};
    }
    return adapter_->find(request, options);
}

Result<UpdateResult> Store::update(const CollectionName& name, std::vector<UpdateOp> ops,
                                   bool ordered, const CallOptions& options) {
    ANGELIA_STORE_CHECK_CALL(options);
    ANGELIA_TRY(check_name(name));
    ANGELIA_TRY(check_batch(ops.size(), "update"));
    for (std::size_t i = 0; i < ops.size(); ++i) ANGELIA_TRY(check_update(ops[i], i));
    if (ops.empty()) return UpdateResult{};
    return whole_or_error(in_transaction(options),
                          adapter_->update(name, std::move(ops), ordered, options));
}

Result<UpdateResult> Store::update_one(const CollectionName& name, bson::DocumentView filter,
                                       bson::DocumentView change, bool upsert,
                                       const CallOptions& options) {
    std::vector<UpdateOp> ops(1);
    ops[0].filter = bson::Document(filter);
    ops[0].update = bson::Document(change);
    ops[0].upsert = upsert;
    return update(name, std::move(ops), true, options);
}

Result<std::optional<bson::Document>> Store::find_and_modify(FindAndModifyRequest request,
                                                             const CallOptions& options) {
    ANGELIA_STORE_CHECK_CALL(options);
    ANGELIA_TRY(check_name(request.collection));
    if (request.remove && (request.upsert || request.return_new)) {
        return {ErrorCode::FailedToParse,
                "find_and_modify that removes can neither upsert nor return the new document"};
    }
    return adapter_->find_and_modify(std::move(request), options);
}

Result<DeleteResult> Store::remove(const CollectionName& name, std::vector<DeleteOp> ops,
                                   bool ordered, const CallOptions& options) {
    ANGELIA_STORE_CHECK_CALL(options);
    ANGELIA_TRY(check_name(name));
    ANGELIA_TRY(check_batch(ops.size(), "remove"));
    for (std::size_t i = 0; i < ops.size(); ++i)
        ANGELIA_TRY(check_size(ops[i].filter, "filter", i));
    if (ops.empty()) return DeleteResult{};
    return whole_or_error(in_transaction(options),
                          adapter_->remove(name, std::move(ops), ordered, options));
}

Result<BulkResult> Store::bulk_write(std::vector<BulkOp> ops, bool ordered,
                                     const CallOptions& options) {
    ANGELIA_STORE_CHECK_CALL(options);
    ANGELIA_TRY(check_batch(ops.size(), "bulk_write"));
    for (std::size_t i = 0; i < ops.size(); ++i) {
        ANGELIA_TRY(check_name(ops[i].collection));
        ANGELIA_TRY(check_size(ops[i].document, "document", i));
        ANGELIA_TRY(check_update(ops[i].update, i));
        ANGELIA_TRY(check_size(ops[i].remove.filter, "filter", i));
    }
    if (ops.empty()) return BulkResult{};
    return whole_or_error(in_transaction(options),
                          adapter_->bulk_write(std::move(ops), ordered, options));
}

Result<ClaimResult> Store::claim(ClaimRequest request, const CallOptions& options) {
    ANGELIA_STORE_CHECK_CALL(options);
    ANGELIA_TRY(refuse_in_transaction(
        options, "claim",
        "a lock that somebody else holds would end it; use find_and_modify, or claim outside"));
    ANGELIA_TRY(check_name(request.locks));
    ANGELIA_TRY(check_name(request.documents));
    ANGELIA_TRY(check_batch(request.candidates.size(), "claim"));
    for (std::size_t i = 0; i < request.candidates.size(); ++i) {
        const auto& c = request.candidates[i];
        const bool complete = c.lock.has("_id") && c.condition.has("_id") &&
                              (!c.take_over || c.take_over->has("_id"));
        if (!complete)
            return {ErrorCode::BadValue,
                    fmt::format("candidate {}: lock, condition and take_over need an _id", i)};
        const auto first = c.update.view().begin();
        if (first == c.update.view().end() || first->key.empty() || first->key.front() != '$') {
            return {ErrorCode::BadValue,
                    fmt::format("candidate {}: the update must consist of operators", i)};
        }
        ANGELIA_TRY(check_size(c.lock, "lock", i));
    }
    if (request.candidates.empty()) return ClaimResult{};
    return adapter_->claim(std::move(request), options);
}

Result<std::int64_t> Store::count(const CollectionName& name, bson::DocumentView filter,
                                  const CallOptions& options) {
    ANGELIA_STORE_CHECK_CALL(options);
    ANGELIA_TRY(check_name(name));
    return adapter_->count(name, filter, options);
}

Result<void> Store::ensure_indexes(const CollectionName& name, std::vector<IndexDefinition> indexes,
                                   const CallOptions& options) {
    ANGELIA_STORE_CHECK_CALL(options);
    ANGELIA_TRY(refuse_in_transaction(options, "ensure_indexes", "call it before"));
    ANGELIA_TRY(check_name(name));
    for (const auto& index : indexes) {
        if (index.name.empty() || index.key.empty())
            return {ErrorCode::CannotCreateIndex,
                    fmt::format("an index on {} needs a name and a key", name.full())};
    }
    if (indexes.empty()) return {};
    return adapter_->ensure_indexes(name, std::move(indexes), options);
}

Result<void> Store::drop(const CollectionName& name, const CallOptions& options) {
    ANGELIA_STORE_CHECK_CALL(options);
    ANGELIA_TRY(refuse_in_transaction(options, "drop", "remove the documents, or drop outside"));
    ANGELIA_TRY(check_name(name));
    return adapter_->drop(name, options);
}

Result<std::vector<std::string>> Store::list_collections(const CallOptions& options) {
    ANGELIA_STORE_CHECK_CALL(options);
    ANGELIA_TRY(refuse_in_transaction(options, "list_collections", "call it outside"));
    ANGELIA_TRY(check_database_name(database_));
    return adapter_->list_collections(database_, options);
}

Result<std::unique_ptr<Watch>> Store::watch(WatchRequest request, WatchEvents events) {
    if (adapter_ == nullptr) return not_open();
    ANGELIA_TRY(check_name(request.collection));
    if (!events.on_batch) return {ErrorCode::BadValue, "a watch needs on_batch"};
    if (!events.on_started) events.on_started = [](bool) {};
    if (!events.on_error) events.on_error = [](const Error&, bool) {};
    if (request.batch_size < 1)
        return {ErrorCode::BadValue,
                fmt::format("batch_size {} is not allowed: at least 1", request.batch_size)};
    if (request.max_wait < milliseconds(1))
        return {ErrorCode::BadValue, fmt::format("max_wait {} ms is not allowed: at least 1 ms",
                                                 request.max_wait.count())};
    if (request.resume_after && request.start_at)
        return {ErrorCode::BadValue, "a watch starts after a token or at a time, not both"};
    return adapter_->watch(std::move(request), std::move(events));
}

Result<ServerTime> Store::server_time(const CallOptions& options) {
    ANGELIA_STORE_CHECK_CALL(options);
    CallOptions alone = options;
    alone.session = nullptr;  // no part of a session, and no statement of its transaction
    return adapter_->server_time(alone);
}

Result<Capabilities> Store::capabilities() {
    if (adapter_ == nullptr) return not_open();
    return adapter_->capabilities();
}

Result<std::unique_ptr<Session>> Store::start_session() {
    if (adapter_ == nullptr) return not_open();
    return adapter_->start_session();
}

std::unique_ptr<Diagnostics> Store::diagnostics() {
    return adapter_ == nullptr ? nullptr : adapter_->diagnostics();
}

std::string Store::describe() const {
    return adapter_ == nullptr ? "no store" : adapter_->describe();
}

Result<void> Store::close() {
    if (adapter_ == nullptr) return {};
    return adapter_->close();
}

#undef ANGELIA_STORE_CHECK_CALL

}  // namespace angelia::store
