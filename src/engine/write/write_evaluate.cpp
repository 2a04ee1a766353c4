// One write inside the apply section: nobody else writes meanwhile, so what is read here stays
// true. That is why racing upserts need no second try (contract 3.4): the loser finds the winner's
// document in its own search.
#include "engine/write/write_run.h"

#include <fmt/format.h>

namespace angelia::engine {

Result<WriteRun::Step> WriteRun::evaluate(WriteScope& scope, std::size_t i,
                                          PendingStatements& statements) {
    const auto& write = request_.writes[i];
    auto& outcome = outcomes_[i];
    if ((write.only_if && !took_effect(*write.only_if)) ||
        (write.unless && took_effect(*write.unless))) {
        outcome.skipped = true;
        return Step::Finished;
    }
    if (request_.retry) {
        ANGELIA_TRY_ASSIGN(bool answered, answer_from_record(scope.reader(), i));
        if (answered) return Step::Finished;
    }
    if (write.kind == WriteKind::Insert) {
        ANGELIA_TRY(evaluate_insert(scope, i));
    } else {
        ANGELIA_TRY_ASSIGN(Step step, evaluate_filtered(scope, i));
        if (step != Step::Finished) return step;
    }
    if (request_.retry && took_effect(i)) {
        if (request_.before_commit)
            if (auto refused = request_.before_commit()) return std::move(*refused);
        remember(i, statements);
    }
    return Step::Finished;
}

Result<bool> WriteRun::answer_from_record(const storage::Reader& reader, std::size_t i) {
    ANGELIA_TRY_ASSIGN(const StatementResult* found,
                       core_.retries.find(reader, *request_.retry, stmt_id(i)));
    if (!found) return false;
    auto& outcome = outcomes_[i];
    outcome.matched = found->matched;
    outcome.modified = found->modified;
    outcome.upserted_id = found->upserted_id;
    outcome.retried = true;
    if (found->has_image) {
        ANGELIA_TRY_ASSIGN(outcome.image, core_.retries.image(reader, *request_.retry, stmt_id(i)));
    }
    ++core_.counters.retried_statements;
    return true;
}

void WriteRun::remember(std::size_t i, PendingStatements& statements) {
    const auto& outcome = outcomes_[i];
    StatementResult result;
    result.stmt_id = stmt_id(i);
    result.matched = outcome.matched;
    result.modified = outcome.modified;
    result.upserted_id = outcome.upserted_id;
    result.has_image = outcome.image.has_value();
    if (outcome.image) statements.images.emplace_back(result.stmt_id, outcome.image->copy());
    statements.results.push_back(std::move(result));
}

Result<void> WriteRun::need_collection(WriteScope& scope, const Namespace& ns) {
    if (scope.collection(ns)) return {};
    if (!request_.create_collections)
        return Error(ErrorCode::NamespaceNotFound, fmt::format("ns does not exist: {}", ns.full()));
    ANGELIA_TRY(scope.create_collection(ns, bson::Document()));
    return {};
}

Result<void> WriteRun::evaluate_insert(WriteScope& scope, std::size_t i) {
    auto& write = request_.writes[i];
    auto& prepared = prepared_[i];
    if (prepared.error) return *prepared.error;
    ANGELIA_TRY(need_collection(scope, write.ns));
    ANGELIA_TRY(insert_record(scope, write.ns, write.document, &prepared.keys, retry_reference(i)));
    outcomes_[i].matched = 1;
    ++applied_in_batch_;
    ++core_.counters.inserted;
    return {};
}

bool WriteRun::usable(const Targets& targets, const Collection& collection,
                      const ConditionalWrite& write) const {
    if (request_.statement && targets.collection == collection.id) return true;  // nobody else's
    if (targets.collection != collection.id ||
        targets.index_generation != collection.index_generation)
        return false;
    if (targets.version == collection.live->version.load()) return true;
    // Others wrote meanwhile. What was found is checked again one by one; what was not found may be
    // there now.
    if (targets.records.empty()) return !write.upsert;
    return write.multi || write.sort.empty();
}

Result<WriteRun::Step> WriteRun::find_targets(WriteScope& scope, const CollectionPtr& collection,
                                              std::size_t i) {
    const auto& write = request_.writes[i];
    if (auto it = outside_.find(i); it != outside_.end()) {
        if (usable(it->second, *collection, write)) {
            // An atomic list may begin again: it keeps what was found.
            progress_ = Progress{it->second, 0};
            if (!request_.atomic) outside_.erase(it);
            return Step::Finished;
        }
        outside_.erase(it);
    }
    const bool inside = searches_ >= kSearchesOutsideMax;
    auto view = scope.changed() ? SearchView::ChangedSection : SearchView::Section;
    if (scope.sees_private_state()) view = SearchView::Snapshot;
    ANGELIA_TRY_ASSIGN(auto targets,
                       search_targets(core_, scope.reader(), view, collection, write,
                                      inside ? 0 : kExaminedInsideMax, request_.deadline));
    if (targets.gave_up) return Step::SearchOutside;
    progress_ = Progress{std::move(targets), 0};
    return Step::Finished;
}

Result<WriteRun::Step> WriteRun::evaluate_filtered(WriteScope& scope, std::size_t i) {
    const auto& write = request_.writes[i];
    auto& outcome = outcomes_[i];
    auto collection = scope.collection(write.ns);
    if (!collection) {
        if (write.kind == WriteKind::Update && write.upsert && outcome.matched == 0)
            ANGELIA_TRY(upsert(scope, i));
        return Step::Finished;
    }
    if (!progress_) {
        ANGELIA_TRY_ASSIGN(Step step, find_targets(scope, collection, i));
        if (step != Step::Finished) return step;
    }
    auto& records = progress_->targets.records;
    if (progress_->targets.collection != collection->id)
        records.clear();  // dropped and made again between two batches
    while (progress_->at < records.size()) {
        if (!request_.atomic &&
            (applied_in_batch_ >= kBatchWritesMax || scope.bytes() >= kBatchBytesMax))
            return Step::BatchFull;
        const auto record = records[progress_->at++];
        ANGELIA_TRY_ASSIGN(bool there,
                           read_record(scope.reader(), collection->id, record, record_value_));
        const bool matches =
            there &&
            write.filter->matches(bson::DocumentView(storage::record_document(record_value_)));
        if (!matches) {
            if (write.multi) continue;
            // Only a search outside can be overtaken; another document may match now.
            progress_.reset();
            outside_.erase(i);
            return Step::SearchOutside;
        }
        if (skip_held_ && !core_.intents.free_for(record_intent(collection->id, record), 0))
            continue;
        const std::string value = record_value_;
        const bson::DocumentView before(storage::record_document(value));
        if (write.kind == WriteKind::Delete)
            ANGELIA_TRY(apply_delete(scope, i, record, before));
        else
            ANGELIA_TRY(apply_update(scope, i, record, before));
        ++applied_in_batch_;
    }
    if (write.kind == WriteKind::Update && write.upsert && outcome.matched == 0)
        ANGELIA_TRY(upsert(scope, i));
    return Step::Finished;
}

Result<void> WriteRun::apply_update(WriteScope& scope, std::size_t i, storage::RecordId record,
                                    bson::DocumentView before) {
    const auto& write = request_.writes[i];
    auto& outcome = outcomes_[i];
    query::ApplyContext context;
    context.now = scope.wall();
    context.timestamp = scope.stamp();
    context.query = write.filter.get();
    ANGELIA_TRY_ASSIGN(auto result, write.update->apply(before, context));
    ++outcome.matched;
    if (result.modified) {
        if (result.document.size_bytes() > bson::kDocumentBytesInternalMax)
            return Error(ErrorCode::BSONObjectTooLarge,
                         fmt::format("Resulting document after update is larger than {}",
                                     bson::kDocumentBytesMax));
        const auto* description = write.update->is_replacement() ? nullptr : &result.description;
        ANGELIA_TRY(replace_record(scope, write.ns, record, before, result.document, description,
                                   retry_reference(i)));
        ++outcome.modified;
        ++core_.counters.updated;
    }
    if (write.image == ReturnImage::Before) outcome.image = bson::Document(before);
    if (write.image == ReturnImage::After) outcome.image = std::move(result.document);
    return {};
}

Result<void> WriteRun::apply_delete(WriteScope& scope, std::size_t i, storage::RecordId record,
                                    bson::DocumentView before) {
    const auto& write = request_.writes[i];
    auto& outcome = outcomes_[i];
    ANGELIA_TRY(remove_record(scope, write.ns, record, before, retry_reference(i)));
    ++outcome.matched;
    if (write.image != ReturnImage::None) outcome.image = bson::Document(before);
    ++core_.counters.deleted;
    return {};
}

Result<void> WriteRun::upsert(WriteScope& scope, std::size_t i) {
    const auto& write = request_.writes[i];
    auto& outcome = outcomes_[i];
    query::ApplyContext context;
    context.is_insert = true;
    context.now = scope.wall();
    context.timestamp = scope.stamp();
    ANGELIA_TRY_ASSIGN(auto made, write.update->make_upsert(*write.filter, context));
    ANGELIA_TRY_ASSIGN(auto document, prepare_insert(std::move(made)));
    ANGELIA_TRY(need_collection(scope, write.ns));
    ANGELIA_TRY(insert_record(scope, write.ns, document, nullptr, retry_reference(i)));
    outcome.upserted_id = bson::Value(document.view()["_id"]);
    if (write.image == ReturnImage::After) outcome.image = std::move(document);
    ++applied_in_batch_;
    ++core_.counters.inserted;
    return {};
}

}  // namespace angelia::engine
