// A transaction for the engine's own tests, statement by statement.
#pragma once

#include "engine/session/session_table.h"
#include "engine/testing/test_engine.h"

namespace angelia::engine::testing_support {

/// Numbers of one session must rise. The transaction stays open when this object goes.
class TestTransaction {
  public:
    TestTransaction(TestEngine& engine, std::int64_t session, std::int64_t number = 1,
                    bool started = false)
        : engine_(engine), key_{bson::make("id", session), number}, started_(started) {}

    Result<StatementPtr> statement() {
        const bool start = !std::exchange(started_, true);
        return engine_->begin_statement(key_, start);
    }
    /// "ok", or the name of what went wrong.
    std::string write(ConditionalWrite write) {
        auto statement = this->statement();
        if (!statement) return code_of(statement);
        return write_in(*statement, std::move(write));
    }
    std::string write_in(const StatementPtr& statement, ConditionalWrite write) {
        WriteRequest request;
        request.writes.push_back(std::move(write));
        request.statement = statement;
        const auto result = engine_.write(std::move(request));
        const auto code = result ? code_of(result->outcomes[0]) : code_of(result);
        if (code != "ok") statement->fail();
        statement->finish();
        return code;
    }
    std::string insert(const Namespace& ns, std::string_view json) {
        return write(insert_write(ns, doc(json)));
    }
    std::string update(const Namespace& ns, std::string_view filter, std::string_view update) {
        return write(update_write(ns, filter, update));
    }
    std::string remove(const Namespace& ns, std::string_view filter) {
        return write(delete_write(ns, filter, true));
    }
    /// The documents, or the name of what went wrong.
    std::vector<std::string> find(const Namespace& ns, std::string_view filter = "{}",
                                  std::string_view sort = "{}", bson::Value hint = {}) {
        auto statement = this->statement();
        if (!statement) return {code_of(statement)};
        FindSpec spec;
        spec.ns = ns;
        spec.filter = doc(filter);
        spec.sort = doc(sort);
        spec.hint = std::move(hint);
        spec.statement = *statement;
        const auto batch = engine_->find(spec);
        if (!batch) (*statement)->fail();
        (*statement)->finish();
        if (!batch) return {code_of(batch)};
        std::vector<std::string> found;
        for (const auto& document : batch->documents) found.push_back(text(document));
        return found;
    }
    std::string commit() {
        std::promise<Result<bson::Timestamp>> answer;
        auto future = answer.get_future();
        engine_->commit_transaction(
            key_, [&](Result<bson::Timestamp> result) { answer.set_value(std::move(result)); });
        return code_of(future.get());
    }
    std::string abort() { return code_of(engine_->abort_transaction(key_)); }

  private:
    TestEngine& engine_;
    const RetryKey key_;
    bool started_;
};

}  // namespace angelia::engine::testing_support
