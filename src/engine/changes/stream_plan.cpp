#include "engine/changes/stream_plan.h"

#include "engine/query/key_encoding.h"

#include <angelia/bson/builder.h>

#include <algorithm>

namespace angelia::engine::changes {
namespace {

/// Databases whose collections belong to the server, not to applications.
constexpr std::string_view kInternalDatabases[] = {"admin", "config", "local"};

/// Stages that look at one event at a time and keep its identity. Source: MongoDB manual, "Modify
/// Change Stream Output".
constexpr std::string_view kPermittedStages[] = {
    "$match",       "$project", "$addFields",
    "$set",         "$unset",   "$replaceRoot",
    "$replaceWith", "$redact",  "$changeStreamSplitLargeEvent",
};
/// Stages that MongoDB has but does not permit here. Source: MongoDB manual, "Aggregation Stages".
constexpr std::string_view kForbiddenStages[] = {
    "$bucket",       "$bucketAuto",     "$collStats",
    "$count",        "$currentOp",      "$densify",
    "$documents",    "$facet",          "$fill",
    "$geoNear",      "$graphLookup",    "$group",
    "$indexStats",   "$limit",          "$listLocalSessions",
    "$listSessions", "$lookup",         "$merge",
    "$out",          "$planCacheStats", "$sample",
    "$search",       "$searchMeta",     "$setWindowFields",
    "$skip",         "$sort",           "$sortByCount",
    "$unionWith",    "$unwind",
};

template <std::size_t N>
bool listed(const std::string_view (&list)[N], std::string_view name) {
    return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool is_internal_database(std::string_view db) { return listed(kInternalDatabases, db); }
bool is_internal_collection(std::string_view collection) {
    return collection.substr(0, 7) == "system.";
}

Error wrong_type(std::string_view option, std::string_view expected, bson::ValueView value) {
    return Error(ErrorCode::TypeMismatch, "$changeStream option '" + std::string(option) +
                                              "' must be " + std::string(expected) + ", not " +
                                              std::string(bson::type_alias(value.type())));
}

Result<std::string_view> text_option(std::string_view option, bson::ValueView value) {
    const auto text = value.get_string();
    if (!text) return wrong_type(option, "a string", value);
    return *text;
}

Result<bool> flag_option(std::string_view option, bson::ValueView value) {
    const auto flag = value.get_bool();
    if (!flag) return wrong_type(option, "a boolean", value);
    return *flag;
}

Result<AfterImage> parse_after_image(bson::ValueView value) {
    ANGELIA_TRY_ASSIGN(const std::string_view text, text_option("fullDocument", value));
    if (text == "default") return AfterImage::Default;
    if (text == "updateLookup") return AfterImage::UpdateLookup;
    if (text == "whenAvailable") return AfterImage::WhenAvailable;
    if (text == "required") return AfterImage::Required;
    return Error(ErrorCode::BadValue,
                 "$changeStream option 'fullDocument' is '" + std::string(text) +
                     "'; allowed: default, updateLookup, whenAvailable, required");
}

Result<BeforeImage> parse_before_image(bson::ValueView value) {
    ANGELIA_TRY_ASSIGN(const std::string_view text, text_option("fullDocumentBeforeChange", value));
    if (text == "off") return BeforeImage::Off;
    if (text == "whenAvailable") return BeforeImage::WhenAvailable;
    if (text == "required") return BeforeImage::Required;
    return Error(ErrorCode::BadValue, "$changeStream option 'fullDocumentBeforeChange' is '" +
                                          std::string(text) +
                                          "'; allowed: off, whenAvailable, required");
}

Result<void> check_stage(std::string_view name) {
    if (name == "$changeStream")
        return Error(ErrorCode::Location40602,
                     "$changeStream is only valid as the first stage in a pipeline");
    if (listed(kForbiddenStages, name)) {
        return Error(ErrorCode::IllegalOperation,
                     std::string(name) + " is not permitted in a $changeStream pipeline");
    }
    return {};
}

}  // namespace

Error non_resumable(ErrorCode code, std::string message) {
    Error error(code, std::move(message));
    error.labels.emplace_back("NonResumableChangeStreamError");
    return error;
}

Result<StreamPlan> StreamPlan::parse(const WatchSpec& spec, const StoreId& store) {
    StreamPlan plan;
    plan.scope_ = spec.scope;
    plan.ns_ = spec.ns;
    ANGELIA_TRY(plan.parse_options(spec.options.view(), store));
    ANGELIA_TRY_ASSIGN(const bson::Document stages, plan.take_split_stage(spec.stages.view()));
    ANGELIA_TRY(plan.parse_stages(stages.view()));
    if (plan.start_.kind == StartPoint::Kind::After && plan.start_.token.fragment != 0 &&
        !plan.splits_events_)
        return non_resumable(ErrorCode::ChangeStreamFatalError,
                             "To resume from a split event, the $changeStream pipeline must "
                             "include a $changeStreamSplitLargeEvent stage");
    plan.shape_.after_image =
        plan.after_image_ == AfterImage::WhenAvailable || plan.after_image_ == AfterImage::Required;
    plan.shape_.before_image = plan.before_image_ != BeforeImage::Off;
    if (plan.scope_ == WatchSpec::Scope::Collection) {
        for (std::size_t i = 0; i < kOperationCount; ++i) {
            plan.collection_verdicts_[i] =
                plan.filter_.judge(static_cast<Operation>(i), {plan.ns_.db, plan.ns_.collection});
        }
    }
    plan.interests_ = plan.find_interests();
    return plan;
}

std::vector<Interest> StreamPlan::find_interests() const {
    Operations wanted = 0, always = 0;
    for (std::size_t i = 0; i < kOperationCount; ++i) {
        const auto operation = static_cast<Operation>(i);
        if (operation == Operation::None || operation == Operation::Invalidate) continue;
        if (invalidated_by(operation)) {
            always |= operation_bit(operation);
            continue;
        }
        if (is_expanded_only(operation) && !shape_.expanded) continue;
        const Verdict verdict = scope_ == WatchSpec::Scope::Collection
                                    ? judge({ns_.db, ns_.collection}, operation)
                                    : filter_.judge(operation);
        if (verdict != Verdict::No) wanted |= operation_bit(operation);
    }
    const auto pin =
        filter_.pin([](std::string_view path) { return pinned_operations(path) != 0; });
    std::vector<Interest> interests;
    if (pin) {
        Interest pinned;
        pinned.operations = wanted & pinned_operations(pin->path);
        pinned.path = pin->path;
        for (const bson::ValueView value : pin->values) {
            std::string key;
            query::append_key(key, value);
            pinned.keys.push_back(std::move(key));
        }
        std::sort(pinned.keys.begin(), pinned.keys.end());
        pinned.keys.erase(std::unique(pinned.keys.begin(), pinned.keys.end()), pinned.keys.end());
        if (pinned.operations != 0) interests.push_back(std::move(pinned));
        // In other events the path is absent and the filter says no, unless the document is not in
        // the entry itself.
        const bool may_hold =
            pin->path.starts_with("fullDocument.") && after_image_ != AfterImage::Default;
        wanted = may_hold ? wanted & operation_bit(Operation::Update) : 0;
    }
    if ((wanted | always) != 0) interests.push_back({wanted | always, {}, {}});
    return interests;
}

Result<void> StreamPlan::parse_options(bson::DocumentView options, const StoreId& store) {
    bool all_changes_for_cluster = false;
    for (const bson::Element& option : options) {
        const bson::ValueView value = option.value;
        const bool known_only = option.key == "showSystemEvents" ||
                                option.key == "allowToRunOnConfigDB" ||
                                option.key == "showMigrationEvents";
        if (value.is_null() || value.is(bson::Type::Undefined)) {
            // As in MongoDB: the option is not given. An unknown one is refused below all the same.
            constexpr std::string_view kNames[] = {
                "fullDocument",      "fullDocumentBeforeChange", "resumeAfter",
                "startAfter",        "startAtOperationTime",     "allChangesForCluster",
                "showExpandedEvents"};
            if (known_only || listed(kNames, option.key)) continue;
        }
        if (option.key == "fullDocument") {
            ANGELIA_TRY_ASSIGN(after_image_, parse_after_image(value));
        } else if (option.key == "fullDocumentBeforeChange") {
            ANGELIA_TRY_ASSIGN(before_image_, parse_before_image(value));
        } else if (option.key == "resumeAfter" || option.key == "startAfter" ||
                   option.key == "startAtOperationTime") {
            ANGELIA_TRY(parse_start(option.key, value, store));
        } else if (option.key == "allChangesForCluster") {
            ANGELIA_TRY_ASSIGN(all_changes_for_cluster, flag_option(option.key, value));
        } else if (option.key == "showExpandedEvents") {
            ANGELIA_TRY_ASSIGN(shape_.expanded, flag_option(option.key, value));
        } else if (known_only) {
            ANGELIA_TRY(flag_option(option.key, value));
        } else {
            return Error(
                ErrorCode::Location40415,
                "BSON field '$changeStream." + std::string(option.key) + "' is an unknown field.");
        }
    }
    return check_scope(all_changes_for_cluster);
}

Result<void> StreamPlan::parse_start(std::string_view name, bson::ValueView value,
                                     const StoreId& store) {
    if (start_.kind != StartPoint::Kind::Now) {
        return Error(ErrorCode::Location40674,
                     "Only one of the $changeStream options 'resumeAfter', 'startAfter' and "
                     "'startAtOperationTime' may be given");
    }
    if (name == "startAtOperationTime") {
        const auto time = value.get_timestamp();
        if (!time) return wrong_type(name, "a timestamp", value);
        start_.kind = StartPoint::Kind::AtTime;
        start_.time = *time;
        return {};
    }
    const auto document = value.get_document();
    if (!document) return wrong_type(name, "a document", value);
    ANGELIA_TRY_ASSIGN(start_.token, ResumeToken::parse(*document));
    if (start_.token.store != store) {
        return non_resumable(ErrorCode::ChangeStreamHistoryLost,
                             "Resume of change stream was not possible, as the resume point may no "
                             "longer be in the oplog. "
                             "(The token was issued by another store.)");
    }
    if (start_.token.from_invalidate && name == "resumeAfter") {
        return Error(ErrorCode::InvalidResumeToken,
                     "The token of an invalidate cannot be used with 'resumeAfter': use "
                     "'startAfter' to open a new stream behind it");
    }
    start_.kind = StartPoint::Kind::After;
    return {};
}

Result<void> StreamPlan::check_scope(bool all_changes_for_cluster) {
    if (all_changes_for_cluster) {
        if (ns_.db != "admin" || scope_ == WatchSpec::Scope::Collection) {
            return Error(ErrorCode::InvalidNamespace,
                         "$changeStream with 'allChangesForCluster' may only be opened on the "
                         "'admin' database, "
                         "with {aggregate: 1}, not on '" +
                             ns_.full() + "'");
        }
        scope_ = WatchSpec::Scope::Deployment;
    }
    if (scope_ == WatchSpec::Scope::Deployment) return {};
    if (is_internal_database(ns_.db)) {
        return Error(ErrorCode::InvalidNamespace,
                     "$changeStream may not be opened on the internal database '" + ns_.db + "'");
    }
    if (scope_ == WatchSpec::Scope::Collection && is_internal_collection(ns_.collection)) {
        return Error(
            ErrorCode::InvalidNamespace,
            "$changeStream may not be opened on the internal collection '" + ns_.full() + "'");
    }
    return {};
}

Result<bson::Document> StreamPlan::take_split_stage(bson::DocumentView stages) {
    bson::Builder others;
    for (const bson::Element& stage : stages) {
        if (splits_events_)
            return Error(ErrorCode::Location7182802,
                         "$changeStreamSplitLargeEvent must be the last stage in the pipeline");
        const auto document = stage.value.get_document();
        const bool splits = document && document->count() == 1 &&
                            document->begin()->key == "$changeStreamSplitLargeEvent";
        if (!splits) {
            others.add(stage.key, stage.value);
            continue;
        }
        const auto specification = document->begin()->value.get_document();
        if (!specification || !specification->empty())
            return Error(ErrorCode::Location7182800,
                         "$changeStreamSplitLargeEvent spec should be an empty object");
        splits_events_ = true;
    }
    return others.take();
}

Result<void> StreamPlan::parse_stages(bson::DocumentView stages) {
    for (const bson::Element& stage : stages) {
        const auto document = stage.value.get_document();
        if (document && document->count() == 1) ANGELIA_TRY(check_stage(document->begin()->key));
    }
    auto whole = aggregation::Pipeline::parse(stages);
    if (!whole) {
        Error error = std::move(whole).error();
        for (const bson::Element& stage : stages) {
            const auto document = stage.value.get_document();
            if (error.code == ErrorCode::Location40324 && document && !document->empty() &&
                listed(kPermittedStages, document->begin()->key)) {
                error.message +=
                    " (MongoDB permits it in a $changeStream pipeline; this server does not have "
                    "it yet)";
                break;
            }
        }
        return error;
    }
    if (!whole->is_per_document()) {
        return Error(
            ErrorCode::IllegalOperation,
            "A $changeStream pipeline may only hold stages that look at one event at a time");
    }
    // All leading filters become one that is asked before anything is encoded.
    bson::Builder conjunction, rest;
    conjunction.open_array("$and");
    rest.open_array("stages");
    std::size_t filters = 0, others = 0;
    for (const bson::Element& stage : stages) {
        const bson::Element head = *stage.value.as_document().begin();
        if (others == 0 && head.key == "$match") {
            conjunction.push(head.value);
            ++filters;
        } else {
            rest.push(stage.value);
            ++others;
        }
    }
    const bson::Document all_filters = conjunction.close().take();
    if (filters > 0) {
        ANGELIA_TRY_ASSIGN(filter_, EventFilter::parse(all_filters.view()));
    }
    const bson::Document rest_stages = rest.close().take();
    if (others > 0) {
        ANGELIA_TRY_ASSIGN(stages_,
                           aggregation::Pipeline::parse(rest_stages["stages"].as_document()));
    }
    return {};
}

bool StreamPlan::in_scope(const EventNamespace& ns, Operation operation) const {
    switch (scope_) {
        case WatchSpec::Scope::Collection:
            // dropDatabase is not for a collection's stream: the drop before it has ended the
            // stream already.
            return operation != Operation::DropDatabase &&
                   ((ns.collection == ns_.collection && ns.db == ns_.db) ||
                    (ns.to_collection == ns_.collection && ns.to_db == ns_.db));
        case WatchSpec::Scope::Database:
            return (ns.db == ns_.db && !is_internal_collection(ns.collection)) ||
                   ns.to_db == ns_.db;
        case WatchSpec::Scope::Deployment:
            return !is_internal_database(ns.db) && !is_internal_collection(ns.collection);
    }
    return false;
}

bool StreamPlan::invalidated_by(Operation operation) const {
    switch (scope_) {
        case WatchSpec::Scope::Collection:
            return operation == Operation::Drop || operation == Operation::Rename;
        case WatchSpec::Scope::Database:
            return operation == Operation::DropDatabase;
        case WatchSpec::Scope::Deployment:
            return false;
    }
    return false;
}

bool StreamPlan::needs_lookup(Operation operation) const {
    return operation == Operation::Update && after_image_ == AfterImage::UpdateLookup;
}

std::optional<Error> StreamPlan::missing_image(const OplogEntry& entry, Operation operation) const {
    const bool changes_document = operation == Operation::Update ||
                                  operation == Operation::Replace || operation == Operation::Delete;
    const auto missing = [&](std::string_view which, std::string_view events) {
        return Error(ErrorCode::NoMatchingDocument,
                     "Change stream was configured to require a " + std::string(which) +
                         " for all " + std::string(events) + " events, but the " +
                         std::string(which) + " was not found for event: {operationType: " +
                         std::string(operation_name(operation)) + ", ns: " +
                         std::string(entry.db()) + "." + std::string(entry.collection()) + "}");
    };
    if (changes_document && before_image_ == BeforeImage::Required && entry.before_image().empty())
        return missing("pre-image", "update, delete and replace");
    if (operation == Operation::Update && after_image_ == AfterImage::Required &&
        entry.after_image().empty())
        return missing("post-image", "update");
    return std::nullopt;
}

Verdict StreamPlan::judge(const EventNamespace& ns, Operation operation) const {
    if (scope_ == WatchSpec::Scope::Collection && operation != Operation::Rename)
        return collection_verdicts_[static_cast<std::size_t>(operation)];
    return filter_.judge(operation, ns);
}

Verdict StreamPlan::concern(const EventNamespace& ns, Operation operation) const {
    if (operation == Operation::None) return Verdict::No;
    if (is_expanded_only(operation) && !shape_.expanded) return Verdict::No;
    if (invalidated_by(operation)) return Verdict::Yes;
    return judge(ns, operation);
}

}  // namespace angelia::engine::changes
