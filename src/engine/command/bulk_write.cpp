// bulkWrite: inserts, updates and deletes over several collections in one command, as drivers send
// it to servers from 8.0 on. Its statements run as those of insert, update and delete do.
#include "engine/command/arguments.h"
#include "engine/command/commands.h"
#include "engine/command/cursor_reply.h"
#include "engine/command/server_state.h"
#include "engine/command/write_reply.h"
#include "engine/command/write_statements.h"

#include "engine/query/sort.h"
#include "engine/session/session_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace angelia::engine::command {
namespace {

constexpr std::string_view kBulkWriteFields[] = {
    "ops", "nsInfo", "ordered", "errorsOnly", "bypassDocumentValidation", "let", "cursor"};
constexpr std::size_t kBulkNamespacesMax = 100'000;  // no more than there can be ops
constexpr std::string_view kBulkUnsupported[] = {"let"};
constexpr std::string_view kBulkCursorFields[] = {"batchSize"};
constexpr std::string_view kBulkNamespaceFields[] = {"ns", "collectionUUID",
                                                     "encryptionInformation"};
constexpr std::string_view kBulkNamespaceUnsupported[] = {"collectionUUID",
                                                          "encryptionInformation"};
constexpr std::string_view kBulkInsertFields[] = {"insert", "document"};
constexpr std::string_view kBulkUpdateFields[] = {
    "update",       "filter",    "updateMods", "multi",     "upsert", "upsertSupplied",
    "arrayFilters", "collation", "hint",       "constants", "sort"};
constexpr std::string_view kBulkUpdateUnsupported[] = {"constants"};
constexpr std::string_view kBulkDeleteFields[] = {"delete", "filter", "multi", "collation", "hint"};

/// What the reply says about one op besides its outcome.
struct BulkOp {
    WriteKind kind = WriteKind::Insert;
    std::optional<Error> parse_error;
    std::size_t write = 0;  ///< index among the writes, without a parse error
};

struct Bulk {
    StatementList statements;
    std::vector<BulkOp> ops;  ///< of the list's beginning: what stands behind an error of an
                              ///< ordered list is left out
    bool errors_only = false;
    std::int64_t batch_size = std::numeric_limits<std::int64_t>::max();
};

Result<std::vector<Namespace>> read_bulk_namespaces(const Call& call) {
    ANGELIA_TRY_ASSIGN(const auto documents, call.documents("nsInfo"));
    if (documents.empty() || documents.size() > kBulkNamespacesMax)
        return Error(ErrorCode::InvalidLength,
                     fmt::format("nsInfo holds between 1 and {} namespaces, got {}",
                                 kBulkNamespacesMax, documents.size()));
    std::vector<Namespace> namespaces;
    for (const auto& document : documents) {
        const Arguments arguments("bulkWrite.nsInfo", document);
        ANGELIA_TRY(arguments.only(kBulkNamespaceFields));
        ANGELIA_TRY(arguments.none_of(kBulkNamespaceUnsupported));
        ANGELIA_TRY(arguments.required("ns"));
        ANGELIA_TRY_ASSIGN(const auto full, arguments.string("ns"));
        const auto dot = full.value_or("").find('.');
        if (dot == std::string_view::npos)
            return Error(
                ErrorCode::InvalidNamespace,
                fmt::format("Invalid namespace specified for bulkWrite: '{}'", full.value_or("")));
        Namespace ns{std::string(full->substr(0, dot)), std::string(full->substr(dot + 1))};
        ANGELIA_TRY(check_namespace(ns));
        namespaces.push_back(std::move(ns));
    }
    return namespaces;
}

Result<UpdateStatement> read_bulk_update(const Arguments& op) {
    ANGELIA_TRY(op.only(kBulkUpdateFields));
    ANGELIA_TRY(op.none_of(kBulkUpdateUnsupported));
    ANGELIA_TRY(op.no_collation());
    UpdateStatement s;
    ANGELIA_TRY(op.required("filter"));
    ANGELIA_TRY_ASSIGN(s.filter, op.document("filter"));
    ANGELIA_TRY_ASSIGN(s.update, op.required("updateMods"));
    if (!s.update.is_container())
        return wrong_type("bulkWrite.ops.updateMods", s.update, "object or array");
    ANGELIA_TRY_ASSIGN(s.multi, op.boolean("multi", false));
    ANGELIA_TRY_ASSIGN(s.upsert, op.boolean("upsert", false));
    ANGELIA_TRY_ASSIGN(s.array_filters, op.array("arrayFilters"));
    ANGELIA_TRY_ASSIGN(s.sort, op.document("sort"));
    if (s.multi && !s.sort.empty())
        return Error(ErrorCode::FailedToParse, "Cannot specify sort with multi=true");
    s.hint = op.value("hint");
    return s;
}

Result<DeleteStatement> read_bulk_delete(const Arguments& op) {
    ANGELIA_TRY(op.only(kBulkDeleteFields));
    ANGELIA_TRY(op.no_collation());
    DeleteStatement s;
    ANGELIA_TRY(op.required("filter"));
    ANGELIA_TRY_ASSIGN(s.filter, op.document("filter"));
    ANGELIA_TRY_ASSIGN(s.multi, op.boolean("multi", false));
    s.hint = op.value("hint");
    return s;
}

/// The namespace that the op's first field points at.
Result<const Namespace*> op_namespace(const std::vector<Namespace>& namespaces, std::size_t i,
                                      bson::ValueView index) {
    if (!index.is_number()) return wrong_type(fmt::format("bulkWrite.ops.{}", i), index, "int");
    const auto at = index.to_int64();
    if (!at || *at < 0 || *at >= static_cast<std::int64_t>(namespaces.size()))
        return Error(ErrorCode::BadValue,
                     fmt::format("BulkWrite ops entry {} has an invalid nsInfo index.", i));
    return &namespaces[static_cast<std::size_t>(*at)];
}

/// A malformed op refuses the whole command, an op whose filter or update means nothing is an error
/// of its own, as in update and delete.
Result<Result<ConditionalWrite>> read_bulk_op(const Call& call,
                                              const std::vector<Namespace>& namespaces,
                                              std::size_t i, bson::DocumentView document) {
    const auto first = document.empty() ? bson::Element{} : *document.begin();
    const Arguments op("bulkWrite.ops", document);
    if (first.key != "insert" && first.key != "update" && first.key != "delete")
        return Error(ErrorCode::FailedToParse,
                     fmt::format("bulkWrite.ops.{} begins with '{}'; an op begins with insert, "
                                 "update or delete",
                                 i, first.key));
    ANGELIA_TRY_ASSIGN(const Namespace* ns, op_namespace(namespaces, i, first.value));
    if (first.key == "insert") {
        ANGELIA_TRY(op.only(kBulkInsertFields));
        ANGELIA_TRY(op.required("document"));
        ANGELIA_TRY_ASSIGN(const auto inserted, op.document("document"));
        return Result<ConditionalWrite>(make_insert(*ns, inserted));
    }
    const auto refuse_multi = [&call](bool multi) -> Result<void> {
        if (!multi || !call.is_retryable()) return {};
        return Error(ErrorCode::InvalidOptions, "Cannot use retryable writes with multi=true");
    };
    if (first.key == "update") {
        ANGELIA_TRY_ASSIGN(const auto s, read_bulk_update(op));
        ANGELIA_TRY(refuse_multi(s.multi));
        if (auto sort = query::SortSpec::parse(s.sort); !sort)
            return Result<ConditionalWrite>(std::move(sort).error());
        return make_write(*ns, s);
    }
    ANGELIA_TRY_ASSIGN(const auto s, read_bulk_delete(op));
    ANGELIA_TRY(refuse_multi(s.multi));
    return make_write(*ns, s);
}

Result<Bulk> parse_bulk(const Call& call) {
    const Arguments arguments("bulkWrite", call.body());
    ANGELIA_TRY(arguments.none_of(kBulkUnsupported));
    Bulk bulk;
    ANGELIA_TRY_ASSIGN(bulk.statements.request.ordered, arguments.boolean("ordered", true));
    ANGELIA_TRY_ASSIGN(bulk.errors_only, arguments.boolean("errorsOnly", false));
    ANGELIA_TRY_ASSIGN(const auto cursor, arguments.document("cursor"));
    const Arguments cursor_arguments("bulkWrite.cursor", cursor);
    ANGELIA_TRY(cursor_arguments.only(kBulkCursorFields));
    ANGELIA_TRY_ASSIGN(bulk.batch_size,
                       cursor_arguments.non_negative("batchSize", bulk.batch_size));
    ANGELIA_TRY_ASSIGN(const auto documents, call.documents("ops"));
    ANGELIA_TRY(check_statement_count(documents.size()));
    ANGELIA_TRY_ASSIGN(const auto namespaces, read_bulk_namespaces(call));
    bool stopped = false;
    for (std::size_t i = 0; i < documents.size(); ++i) {
        ANGELIA_TRY_ASSIGN(auto write, read_bulk_op(call, namespaces, i, documents[i]));
        if (stopped) continue;
        BulkOp op;
        const auto kind = (*documents[i].begin()).key;
        op.kind = kind == "insert"   ? WriteKind::Insert
                  : kind == "update" ? WriteKind::Update
                                     : WriteKind::Delete;
        if (write) {
            op.write = bulk.statements.request.writes.size();
            bulk.statements.request.writes.push_back(std::move(write).value());
            bulk.statements.positions.push_back(i);
        } else {
            op.parse_error = std::move(write).error();
            stopped = bulk.statements.request.ordered;
        }
        bulk.ops.push_back(std::move(op));
    }
    return bulk;
}

struct BulkCounts {
    std::int64_t errors = 0, inserted = 0, matched = 0, modified = 0, upserted = 0, deleted = 0;
};

bson::Document bulk_error_item(std::size_t index, const BulkOp& op, const Error& error) {
    bson::Builder b;
    b.add("ok", 0.0)
        .add("idx", static_cast<std::int32_t>(index))
        .add("code", static_cast<std::int32_t>(error.code))
        .add("codeName", error_code_name(error.code))
        .add("errmsg", error.message);
    if (!error.details_bson.empty()) b.add_all(bson::DocumentView(error.details_bson));
    b.add("n", std::int32_t{0});
    if (op.kind == WriteKind::Update) b.add("nModified", std::int32_t{0});
    return b.take();
}

bson::Document bulk_item(std::size_t index, const BulkOp& op, const WriteOutcome& outcome,
                         BulkCounts& counts) {
    const bool upserted = !outcome.upserted_id.is_missing();
    bson::Builder b;
    b.add("ok", 1.0)
        .add("idx", static_cast<std::int32_t>(index))
        .add("n", static_cast<std::int32_t>(outcome.matched + (upserted ? 1 : 0)));
    if (op.kind == WriteKind::Update)
        b.add("nModified", static_cast<std::int32_t>(outcome.modified));
    if (upserted) b.open("upserted").add("_id", outcome.upserted_id).close();
    if (op.kind == WriteKind::Insert) counts.inserted += outcome.matched;
    if (op.kind == WriteKind::Delete) counts.deleted += outcome.matched;
    if (op.kind == WriteKind::Update) {
        counts.matched += outcome.matched;
        counts.modified += outcome.modified;
        counts.upserted += upserted ? 1 : 0;
    }
    return b.take();
}

struct BulkReport {
    BulkCounts counts;
    std::vector<bson::Document> items;
    std::vector<std::int32_t> retried;
};

BulkReport report_bulk(const Call& call, const std::vector<BulkOp>& ops, bool errors_only,
                       bool ordered, const WriteResult& result) {
    BulkReport report;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        const BulkOp& op = ops[i];
        const WriteOutcome* outcome = op.parse_error ? nullptr : &result.outcomes[op.write];
        if (outcome != nullptr && outcome->skipped) continue;
        const Error* error = op.parse_error   ? &*op.parse_error
                             : outcome->error ? &*outcome->error
                                              : nullptr;
        if (error != nullptr) {
            ++report.counts.errors;
            report.items.push_back(bulk_error_item(i, op, *error));
            if (ordered) break;
            continue;
        }
        auto item = bulk_item(i, op, *outcome, report.counts);
        if (!errors_only) report.items.push_back(std::move(item));
        if (outcome->retried) report.retried.push_back(statement_id(call, i));
    }
    return report;
}

void reply_to_bulk(Call& call, BulkReport report, std::int64_t batch_size, bool wrote,
                   bson::Timestamp time) {
    ResultCursorSpec spec;
    spec.ns = Namespace{"admin", "$cmd.bulkWrite"};
    spec.documents = std::move(report.items);
    spec.batch_size = batch_size;
    spec.lsid = call.generic().lsid.copy();
    spec.statement = call.statement();
    auto batch = call.engine().open_result_cursor(std::move(spec));
    if (call.failed(batch)) return;
    bson::Builder b = cursor_reply(*batch, true);
    const auto count = [&b](std::string_view name, std::int64_t n) {
        b.add(name, static_cast<std::int32_t>(n));
    };
    count("nErrors", report.counts.errors);
    count("nInserted", report.counts.inserted);
    count("nMatched", report.counts.matched);
    count("nModified", report.counts.modified);
    count("nUpserted", report.counts.upserted);
    count("nDeleted", report.counts.deleted);
    if (!report.retried.empty()) {
        b.open_array("retriedStmtIds");
        for (const auto id : report.retried) b.push(id);
        b.close();
    }
    // Any error ends a transaction, also of an operation that the engine never saw.
    if (report.counts.errors > 0 && call.statement()) call.statement()->fail();
    call.succeed(std::move(b), wrote ? std::optional(time) : std::nullopt);
}

void count_bulk(const Call& call, const std::vector<BulkOp>& ops) {
    auto& counters = call.state().operations;
    for (const auto& op : ops) {
        auto& counter = op.kind == WriteKind::Insert   ? counters.insert
                        : op.kind == WriteKind::Update ? counters.update
                                                       : counters.remove;
        counter.fetch_add(1, std::memory_order_relaxed);
    }
}

Result<void> bulk_write(const CallPtr& call) {
    if ((*call->body().begin()).value.to_int64() != 1)
        return Error(ErrorCode::FailedToParse, "the value of 'bulkWrite' has to be 1");
    ANGELIA_TRY_ASSIGN(auto parsed, parse_bulk(*call));
    auto bulk = std::make_shared<Bulk>(std::move(parsed));
    prepare_request(*call, bulk->statements);
    call->release_request();
    count_bulk(*call, bulk->ops);
    const bool ordered = bulk->statements.request.ordered;
    const auto answer = [call, bulk, ordered](const WriteResult& result, bool wrote) {
        reply_to_bulk(*call, report_bulk(*call, bulk->ops, bulk->errors_only, ordered, result),
                      bulk->batch_size, wrote, result.operation_time);
    };
    if (bulk->statements.request.writes.empty()) {
        answer({}, false);
        return {};
    }
    run_write(call, std::move(bulk->statements.request),
              [call, answer](Result<WriteResult> result) {
                  if (!call->failed(result)) answer(*result, true);
              });
    return {};
}

}  // namespace

extern const CommandEntry kBulkWriteCommand{
    .name = "bulkWrite",
    .handler = bulk_write,
    .fields = kBulkWriteFields,
    .flags = kAdminOnly | kWrites | kRetryable | kApiVersion1 | kInTransaction,
    .help = "inserts, updates and deletes over several collections"};

}  // namespace angelia::engine::command
