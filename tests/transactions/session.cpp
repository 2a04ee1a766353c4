#include "transactions/session.h"

#include "engine/session/session_table.h"

#include <future>

namespace angelia::transactions {

using namespace engine;
using namespace engine::testing_support;

bson::Document filter_of(const ReadRequest& request) {
    if (request.path == Path::ById) return bson::make("_id", request.first);
    if (request.path == Path::ByOwnValue) return bson::make("values", request.value);
    return bson::make("k", bson::make("$gte", request.first, "$lte", request.last));
}

std::string hint_of(const ReadRequest& request) {
    if (request.path == Path::ById) return {};
    return request.path == Path::ByOwnValue ? "values_1" : "k_1";
}

void add_list(Lists& lists, bson::DocumentView document) {
    auto& list = lists[document["_id"].to_int64().value_or(-1)];
    const auto values = document["values"].get_array();
    if (!values) return;
    for (const auto& element : *values) list.push_back(element.value.to_int64().value_or(-1));
}

namespace {

ConditionalWrite append_write(ListKey key, ListValue value, bool by_index) {
    ConditionalWrite write;
    write.kind = WriteKind::Update;
    write.ns = kLists;
    const auto filter = by_index ? bson::make("k", key) : bson::make("_id", key);
    write.filter =
        std::make_shared<const query::Matcher>(query::Matcher::parse(filter).value_or_throw());
    const auto change = by_index ? bson::make("$push", bson::make("values", value), "$setOnInsert",
                                              bson::make("_id", key))
                                 : bson::make("$push", bson::make("values", value), "$setOnInsert",
                                              bson::make("k", key));
    query::UpdateOptions options;
    options.upsert = true;
    write.update = std::make_shared<const query::Update>(
        query::Update::parse(change.view(), options).value_or_throw());
    write.upsert = true;
    return write;
}

class EngineSession final : public Session {
  public:
    EngineSession(Engine& engine, std::int64_t session)
        : engine_(engine), session_(session), lsid_(bson::make("id", session)) {}
    ~EngineSession() override { engine_.end_session(lsid_.view()); }

    std::int64_t number() const override { return number_; }
    std::int64_t session() const override { return session_; }

    void begin() override {
        ++number_;
        started_ = false;
    }

    Result<Lists> read(const ReadRequest& request) override {
        ANGELIA_TRY_ASSIGN(auto statement, next_statement());
        auto lists = find(request, statement, false);
        if (!lists) statement->fail();
        statement->finish();
        return lists;
    }

    Result<void> append(ListKey key, ListValue value, bool by_index) override {
        ANGELIA_TRY_ASSIGN(auto statement, next_statement());
        WriteRequest request;
        request.writes.push_back(append_write(key, value, by_index));
        request.statement = statement;
        auto result = write(std::move(request));
        const bool failed = !result || result->outcomes[0].error;
        if (failed) statement->fail();
        statement->finish();
        if (!result) return std::move(result).error();
        if (failed) return std::move(*result->outcomes[0].error);
        return {};
    }

    Outcome commit() override {
        if (!started_) return Outcome::Committed;
        std::promise<Result<bson::Timestamp>> answer;
        auto future = answer.get_future();
        engine_.commit_transaction(
            key(), [&](Result<bson::Timestamp> result) { answer.set_value(std::move(result)); });
        const auto result = future.get();
        if (result) return Outcome::Committed;
        return result.error().code == ErrorCode::NoSuchTransaction ? Outcome::Aborted
                                                                   : Outcome::Unknown;
    }

    void abort() override {
        if (started_) static_cast<void>(engine_.abort_transaction(key()));
    }

    Result<Lists> plain_read(const ReadRequest& request, bool snapshot) override {
        return find(request, nullptr, snapshot);
    }

    Outcome plain_append(ListKey key, ListValue value) override {
        WriteRequest request;
        request.writes.push_back(append_write(key, value, false));
        const auto result = write(std::move(request));
        if (!result) return Outcome::Unknown;
        const auto& error = result->outcomes[0].error;
        if (!error) return Outcome::Committed;
        return error->code == ErrorCode::DuplicateKey ? Outcome::Aborted : Outcome::Unknown;
    }

  private:
    RetryKey key() const { return RetryKey{lsid_.copy(), number_}; }

    Result<StatementPtr> next_statement() {
        const bool start = !std::exchange(started_, true);
        return engine_.begin_statement(key(), start);
    }

    Result<Lists> find(const ReadRequest& request, StatementPtr statement, bool snapshot) {
        FindSpec spec;
        spec.ns = kLists;
        spec.filter = filter_of(request);
        if (const auto hint = hint_of(request); !hint.empty()) spec.hint = bson::value(hint);
        spec.batch_size = 10'000;
        spec.statement = std::move(statement);
        spec.snapshot.wanted = snapshot;
        ANGELIA_TRY_ASSIGN(const auto batch, engine_.find(spec));
        Lists lists;
        for (const auto& document : batch.documents) add_list(lists, document.view());
        return lists;
    }

    Result<WriteResult> write(WriteRequest request) {
        std::promise<Result<WriteResult>> answer;
        auto future = answer.get_future();
        engine_.write(std::move(request),
                      [&](Result<WriteResult> result) { answer.set_value(std::move(result)); });
        return future.get();
    }

    Engine& engine_;
    const std::int64_t session_;
    const bson::Document lsid_;
    std::int64_t number_ = 0;
    bool started_ = false;
};

}  // namespace

Outcome commit_again(Engine& engine, std::int64_t session, std::int64_t number) {
    std::promise<Result<bson::Timestamp>> answer;
    auto future = answer.get_future();
    engine.commit_transaction(
        RetryKey{bson::make("id", session), number},
        [&](Result<bson::Timestamp> result) { answer.set_value(std::move(result)); });
    const auto result = future.get();
    if (result) return Outcome::Committed;
    return result.error().code == ErrorCode::NoSuchTransaction ? Outcome::Aborted
                                                               : Outcome::Unknown;
}

void make_lists(TestEngine& engine) {
    engine.create_index(kLists, index_spec("k_1", R"({"k": 1})")).value_or_throw();
    engine.create_index(kLists, index_spec("values_1", R"({"values": 1})")).value_or_throw();
}

std::unique_ptr<Session> engine_session(Engine& engine, std::int64_t number) {
    return std::make_unique<EngineSession>(engine, number);
}

Lists all_lists(TestEngine& engine) {
    Lists lists;
    for (const auto& json : engine.find(kLists)) {
        const auto document = doc(json);
        add_list(lists, document.view());
    }
    return lists;
}

}  // namespace angelia::transactions
