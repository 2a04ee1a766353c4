#include "engine/command/arguments.h"
#include "engine/command/commands.h"

#include "engine/query/field_path.h"

#include <angelia/bson/compare.h>

#include <set>

namespace angelia::engine::command {
namespace {

constexpr std::string_view kDistinctFields[] = {"key", "query", "collation"};
constexpr std::int64_t kDistinctBatch = 1000;

struct ValueLess {
    bool operator()(const bson::Value& a, const bson::Value& b) const {
        return bson::compare(a.view(), b.view()) < 0;
    }
};

/// Values at one dotted path, each once, in the order in which they were first met.
class DistinctValues {
  public:
    explicit DistinctValues(query::FieldPath path) : path_(std::move(path)) {}

    /// Errors: Location17217 (more than fits into a reply).
    Result<void> add(bson::DocumentView document) {
        walk(document.find(path_.front()), 1);
        if (bytes_ <= bson::kDocumentBytesMax) return {};
        return Error(ErrorCode::Location17217, "distinct too big, 16mb cap");
    }
    bson::Builder reply() const {
        bson::Builder b;
        b.open_array("values");
        for (const auto* value : order_) b.push(*value);
        b.close();
        return b;
    }

  private:
    void walk(bson::ValueView value, std::size_t part) {
        if (part == path_.size()) {
            if (!value.is(bson::Type::Array)) return keep(value);
            for (const auto& element : value.as_document()) keep(element.value);
        } else if (value.is(bson::Type::Document)) {
            walk(value.as_document().find(path_[part]), part + 1);
        } else if (value.is(bson::Type::Array)) {
            if (query::array_index_of(path_[part]))
                walk(value.as_document().find(path_[part]), part + 1);
            for (const auto& element : value.as_document())
                if (element.value.is(bson::Type::Document))
                    walk(element.value.as_document().find(path_[part]), part + 1);
        }
    }
    void keep(bson::ValueView value) {
        if (value.is_missing()) return;
        const auto [at, fresh] = seen_.insert(bson::Value(value));
        if (!fresh) return;
        order_.push_back(&*at);
        bytes_ += value.bytes().size() + 8;
    }

    query::FieldPath path_;
    std::set<bson::Value, ValueLess> seen_;
    std::vector<const bson::Value*> order_;
    std::size_t bytes_ = 0;
};

Result<bson::Builder> find_distinct(Engine& engine, const FindSpec& spec,
                                    const query::FieldPath& path) {
    DistinctValues values(path);
    ANGELIA_TRY_ASSIGN(auto batch, engine.find(spec));
    const auto at_cluster_time = batch.at_cluster_time;
    for (;;) {
        for (const auto& document : batch.documents) {
            if (auto added = values.add(document); !added) {
                engine.kill_cursors(spec.ns,
                                    std::span(&batch.cursor_id, batch.cursor_id == 0 ? 0 : 1));
                return std::move(added).error();
            }
        }
        if (batch.cursor_id == 0) {
            auto reply = values.reply();
            if (at_cluster_time) reply.add("atClusterTime", *at_cluster_time);
            return reply;
        }
        GetMoreSpec more;
        more.cursor_id = batch.cursor_id;
        more.ns = spec.ns;
        more.lsid = spec.lsid.copy();
        more.statement = spec.statement;
        Result<CursorBatch> next =
            Error(ErrorCode::InternalError, "a plain cursor did not answer at once");
        engine.get_more(more, [&next](Result<CursorBatch> b) {
            next = std::move(b);
        });  // answers before it returns: not a change stream
        if (!next) return std::move(next).error();
        batch = std::move(next).value();
    }
}

Result<void> distinct(const CallPtr& call) {
    const Arguments arguments("distinct", call->body());
    auto spec = std::make_shared<FindSpec>();
    ANGELIA_TRY_ASSIGN(spec->ns, call->collection());
    ANGELIA_TRY(arguments.required("key"));
    ANGELIA_TRY_ASSIGN(const auto key, arguments.string("key"));
    if (!key || key->empty())
        return Error(ErrorCode::BadValue, "distinct needs the name of a field in 'key'");
    ANGELIA_TRY_ASSIGN(const auto path, query::FieldPath::parse(*key));
    ANGELIA_TRY_ASSIGN(const auto query, arguments.document("query"));
    ANGELIA_TRY(arguments.no_collation());
    spec->filter = bson::Document(query);
    spec->batch_size = kDistinctBatch;
    call->fill_read(*spec);
    call->engine().workers().post([call, spec, path] {
        auto reply = find_distinct(call->engine(), *spec, path);
        if (!call->failed(reply)) call->succeed(std::move(reply).value());
    });
    return {};
}

}  // namespace

extern const CommandEntry kDistinctCommand{.name = "distinct",
                                           .handler = distinct,
                                           .fields = kDistinctFields,
                                           .flags = kReads | kInTransaction | kSnapshotReads,
                                           .help = "the different values of a field"};

}  // namespace angelia::engine::command
