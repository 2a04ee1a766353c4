// Helpers of the engine's own tests: an engine in memory or in a folder, and calls that wait for
// their answer.
#pragma once

#include "engine/changes/change_stream.h"
#include "engine/engine.h"

#include <angelia/bson/builder.h>
#include <angelia/bson/json.h>

#include <gtest/gtest.h>

#include <unistd.h>
#include <atomic>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

namespace angelia::engine::testing_support {

inline bson::Document doc(std::string_view json) { return bson::from_json(json).value_or_throw(); }
inline std::string text(const bson::Document& document) { return bson::to_json(document.view()); }

template <class T>
std::string code_of(const Result<T>& result) {
    return result ? "ok" : error_code_name(result.error().code);
}
inline std::string code_of(const WriteOutcome& outcome) {
    return outcome.error ? error_code_name(outcome.error->code) : "ok";
}

/// A folder of its own, removed at the end.
class TempFolder {
  public:
    TempFolder() {
        static std::atomic<int> counter{0};
        path_ = ::testing::TempDir() + "angelia_engine_" + std::to_string(::getpid()) + "_" +
                std::to_string(counter++);
        std::filesystem::remove_all(path_);
    }
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

/// The monitor's timer stays out of the way; tests call run_ttl_pass().
inline EngineOptions memory_options() {
    EngineOptions options;
    options.storage.memory = true;
    options.ttl_interval = milliseconds(3'600'000);
    return options;
}

inline EngineOptions folder_options(const std::string& path) {
    EngineOptions options;
    options.storage.path = path;
    options.ttl_interval = milliseconds(3'600'000);
    return options;
}

class TestEngine {
  public:
    explicit TestEngine(EngineOptions options = memory_options())
        : engine_(Engine::open(std::move(options)).value_or_throw()) {}
    Engine& operator*() { return *engine_; }
    Engine* operator->() { return engine_.get(); }
    void close() {
        engine_->close().value_or_throw();
        engine_.reset();
    }

    Result<WriteResult> write(WriteRequest request) {
        std::promise<Result<WriteResult>> answer;
        auto future = answer.get_future();
        engine_->write(std::move(request),
                       [&](Result<WriteResult> result) { answer.set_value(std::move(result)); });
        return future.get();
    }
    /// The outcome of a single write.
    WriteOutcome one(ConditionalWrite write) {
        WriteRequest request;
        request.writes.push_back(std::move(write));
        auto result = this->write(std::move(request));
        if (!result) {
            WriteOutcome failed;
            failed.error = result.error();
            return failed;
        }
        return std::move(result->outcomes.front());
    }
    WriteOutcome insert(const Namespace& ns, bson::Document document);
    WriteOutcome insert(const Namespace& ns, std::string_view json) {
        return insert(ns, doc(json));
    }
    WriteOutcome update(const Namespace& ns, std::string_view filter, std::string_view update,
                        bool multi = false, bool upsert = false);
    WriteOutcome remove(const Namespace& ns, std::string_view filter, bool multi = true);

    /// All documents as relaxed JSON, in the order of the answer.
    std::vector<std::string> find(const Namespace& ns, std::string_view filter = "{}",
                                  std::string_view sort = "{}", std::string_view projection = "{}",
                                  bson::Value hint = {});
    std::int64_t count(const Namespace& ns, std::string_view filter = "{}") {
        CountSpec spec;
        spec.ns = ns;
        spec.filter = doc(filter);
        return engine_->count(spec).value_or_throw();
    }
    Result<CursorBatch> get_more(const GetMoreSpec& spec) {
        std::promise<Result<CursorBatch>> answer;
        auto future = answer.get_future();
        engine_->get_more(spec,
                          [&](Result<CursorBatch> batch) { answer.set_value(std::move(batch)); });
        return future.get();
    }
    Result<IndexBuild> create_index(const Namespace& ns, IndexSpec spec) {
        std::vector<IndexSpec> specs;
        specs.push_back(std::move(spec));
        std::promise<Result<IndexBuild>> answer;
        auto future = answer.get_future();
        engine_->create_indexes(ns, std::move(specs), [&](Result<IndexBuild> result) {
            answer.set_value(std::move(result));
        });
        return future.get();
    }
    Result<std::int32_t> drop(const Namespace& ns) {
        std::promise<Result<std::int32_t>> answer;
        auto future = answer.get_future();
        engine_->drop_collection(
            ns, [&](Result<std::int32_t> result) { answer.set_value(std::move(result)); });
        return future.get();
    }
    Result<std::int32_t> drop_indexes(const Namespace& ns, bson::Value which) {
        std::promise<Result<std::int32_t>> answer;
        auto future = answer.get_future();
        engine_->drop_indexes(ns, std::move(which), [&](Result<std::int32_t> result) {
            answer.set_value(std::move(result));
        });
        return future.get();
    }
    Result<bson::Timestamp> drop_database(const std::string& db) {
        std::promise<Result<bson::Timestamp>> answer;
        auto future = answer.get_future();
        engine_->drop_database(
            db, [&](Result<bson::Timestamp> result) { answer.set_value(std::move(result)); });
        return future.get();
    }
    Result<bson::Timestamp> create(const Namespace& ns, bson::Document options = {}) {
        std::promise<Result<bson::Timestamp>> answer;
        auto future = answer.get_future();
        engine_->create_collection(ns, std::move(options), [&](Result<bson::Timestamp> result) {
            answer.set_value(std::move(result));
        });
        return future.get();
    }
    /// "valid", or the errors that validate found.
    std::string validate(const Namespace& ns);
    /// "i c d ...": the kinds of all oplog entries.
    std::string oplog_kinds();

  private:
    std::unique_ptr<Engine> engine_;
};

inline std::shared_ptr<const query::Matcher> matcher(std::string_view json) {
    return std::make_shared<const query::Matcher>(
        query::Matcher::parse(doc(json)).value_or_throw());
}

inline ConditionalWrite insert_write(const Namespace& ns, bson::Document document) {
    ConditionalWrite write;
    write.kind = WriteKind::Insert;
    write.ns = ns;
    write.document = std::move(document);
    return write;
}

inline ConditionalWrite update_write(const Namespace& ns, std::string_view filter,
                                     std::string_view update, bool multi = false,
                                     bool upsert = false) {
    ConditionalWrite write;
    write.kind = WriteKind::Update;
    write.ns = ns;
    write.filter = matcher(filter);
    query::UpdateOptions options;
    options.multi = multi;
    options.upsert = upsert;
    const auto parsed = doc(update);
    write.update = std::make_shared<const query::Update>(
        query::Update::parse(parsed.view(), options).value_or_throw());
    write.multi = multi;
    write.upsert = upsert;
    return write;
}

inline ConditionalWrite delete_write(const Namespace& ns, std::string_view filter,
                                     bool multi = false) {
    ConditionalWrite write;
    write.kind = WriteKind::Delete;
    write.ns = ns;
    write.filter = matcher(filter);
    write.multi = multi;
    return write;
}

inline WriteOutcome TestEngine::insert(const Namespace& ns, bson::Document document) {
    return one(insert_write(ns, std::move(document)));
}
inline WriteOutcome TestEngine::update(const Namespace& ns, std::string_view filter,
                                       std::string_view update, bool multi, bool upsert) {
    return one(update_write(ns, filter, update, multi, upsert));
}
inline WriteOutcome TestEngine::remove(const Namespace& ns, std::string_view filter, bool multi) {
    return one(delete_write(ns, filter, multi));
}

inline std::vector<std::string> TestEngine::find(const Namespace& ns, std::string_view filter,
                                                 std::string_view sort, std::string_view projection,
                                                 bson::Value hint) {
    FindSpec spec;
    spec.ns = ns;
    spec.filter = doc(filter);
    spec.sort = doc(sort);
    spec.projection = doc(projection);
    spec.hint = std::move(hint);
    std::vector<std::string> found;
    auto batch = engine_->find(spec).value_or_throw();
    for (;;) {
        for (const auto& document : batch.documents) found.push_back(text(document));
        if (batch.cursor_id == 0) return found;
        GetMoreSpec more;
        more.cursor_id = batch.cursor_id;
        more.ns = ns;
        batch = get_more(more).value_or_throw();
    }
}

inline std::string TestEngine::validate(const Namespace& ns) {
    auto report = engine_->validate(ns).value_or_throw();
    if (report.view()["valid"].truthy()) return "valid";
    return bson::to_json(report.view()["errors"]);
}

inline std::string TestEngine::oplog_kinds() {
    std::string kinds;
    const auto oldest = engine_->oplog().oldest().as_uint64();
    auto entries = engine_->oplog()
                       .read({bson::Timestamp::from_uint64(oldest == 0 ? 0 : oldest - 1)}, 100'000,
                             std::size_t{1} << 30)
                       .value_or_throw();
    for (const auto& entry : entries) kinds += static_cast<char>(entry->kind());
    return kinds;
}

inline IndexSpec index_spec(std::string name, std::string_view key) {
    IndexSpec spec;
    spec.name = std::move(name);
    spec.key = doc(key);
    return spec;
}

inline IndexSpec copy_of(const IndexSpec& spec) {
    IndexSpec copy = index_spec(spec.name, text(spec.key));
    copy.unique = spec.unique;
    copy.sparse = spec.sparse;
    copy.expire_after_seconds = spec.expire_after_seconds;
    copy.partial_filter = spec.partial_filter.copy();
    return copy;
}

}  // namespace angelia::engine::testing_support
