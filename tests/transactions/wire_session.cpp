#include "transactions/wire_session.h"

#include "wire/test_client.h"

#include <thread>

namespace angelia::transactions {

namespace {

constexpr auto kServerComesBack = std::chrono::seconds(30);

/// A connection that is made again after it was lost.
class Line {
  public:
    explicit Line(std::uint16_t port) : port_(port) {}

    /// Errors: HostUnreachable when there was no answer (it may have been done or not; a server is
    /// there again), else the server's.
    Result<bson::Document> call(const bson::Document& command) {
        if (!client_) connect();
        if (client_) {
            client_->send_command(command);
            if (auto reply = client_->receive()) return answer(std::move(reply->body));
        }
        client_.reset();
        connect();
        return Error(ErrorCode::HostUnreachable, "no answer");
    }

  private:
    void connect() {
        const auto deadline = std::chrono::steady_clock::now() + kServerComesBack;
        while (std::chrono::steady_clock::now() < deadline) {
            client_ = std::make_unique<wire::test::Client>(port_);
            if (client_->connected()) return;
            client_.reset();
            std::this_thread::sleep_for(milliseconds(2));
        }
    }
    static Result<bson::Document> answer(bson::Document body) {
        const auto view = body.view();
        auto failure = view["ok"].truthy() ? view.find_path("writeErrors.0") : bson::ValueView();
        const auto fields = view["ok"].truthy() ? failure.get_document() : view;
        if (fields)
            return Error(static_cast<ErrorCode>((*fields)["code"].to_int64().value_or(1)),
                         std::string((*fields)["errmsg"].get_string().value_or("")));
        return body;
    }

    const std::uint16_t port_;
    std::unique_ptr<wire::test::Client> client_;
};

bson::Document session_id(std::int64_t number, char kind) {
    std::string uuid(16, kind);
    for (std::size_t i = 0; i < 8; ++i)
        uuid[15 - i] = static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i));
    return bson::make("id", bson::BinaryView{4, uuid});
}

bson::Builder find_command(const ReadRequest& request) {
    bson::Builder b;
    b.add("find", kLists.collection).add("filter", filter_of(request));
    b.add("batchSize", std::int32_t{10'000});
    if (const auto hint = hint_of(request); !hint.empty()) b.add("hint", hint);
    return b;
}

bson::Builder append_command(ListKey key, ListValue value, bool by_index) {
    bson::Builder b;
    b.add("update", kLists.collection).open_array("updates");
    b.push_document()
        .add("q", bson::make(by_index ? "k" : "_id", key))
        .add("u", bson::make("$push", bson::make("values", value), "$setOnInsert",
                             bson::make(by_index ? "_id" : "k", key)))
        .add("upsert", true)
        .close()
        .close();
    return b;
}

Lists lists_of(const bson::Document& reply) {
    Lists lists;
    const auto batch = reply.view().find_path("cursor.firstBatch").get_array();
    if (!batch) return lists;
    for (const auto& element : *batch)
        if (const auto document = element.value.get_document()) add_list(lists, *document);
    return lists;
}

class WireSession final : public Session {
  public:
    WireSession(std::uint16_t port, std::int64_t session, WireCounts& counts)
        : line_(port), session_(session), counts_(counts) {}

    void begin() override {
        ++number_;
        started_ = false;
    }
    std::int64_t number() const override { return number_; }
    std::int64_t session() const override { return session_; }

    Result<Lists> read(const ReadRequest& request) override {
        ANGELIA_TRY_ASSIGN(const auto reply, line_.call(statement(find_command(request))));
        return lists_of(reply);
    }
    Result<void> append(ListKey key, ListValue value, bool by_index) override {
        ANGELIA_TRY(line_.call(statement(append_command(key, value, by_index))));
        return {};
    }

    Outcome commit() override {
        if (!started_) return Outcome::Committed;
        for (int attempt = 0; attempt < 20; ++attempt) {
            bson::Builder b;
            b.add("commitTransaction", std::int32_t{1});
            const auto reply = line_.call(in_transaction(std::move(b), "admin"));
            if (!reply && reply.error().code == ErrorCode::HostUnreachable) {
                counts_.commits_retried += attempt == 0 ? 1 : 0;
                continue;
            }
            const bool none = !reply && reply.error().code == ErrorCode::NoSuchTransaction;
            if (attempt > 0)
                ++(reply ? counts_.retried_and_committed : counts_.retried_and_aborted);
            EXPECT_TRUE(reply || none) << (reply ? "" : reply.error().message);
            return reply ? Outcome::Committed : none ? Outcome::Aborted : Outcome::Unknown;
        }
        return Outcome::Unknown;
    }

    void abort() override {
        if (!started_) return;
        bson::Builder b;
        b.add("abortTransaction", std::int32_t{1});
        static_cast<void>(line_.call(in_transaction(std::move(b), "admin")));
    }

    Result<Lists> plain_read(const ReadRequest& request, bool snapshot) override {
        auto b = find_command(request);
        if (snapshot) b.add("readConcern", bson::make("level", "snapshot"));
        b.add("$db", kLists.db);
        ANGELIA_TRY_ASSIGN(const auto reply, line_.call(b.take()));
        return lists_of(reply);
    }

    /// A retryable write: sent again it happens once.
    Outcome plain_append(ListKey key, ListValue value) override {
        auto b = append_command(key, value, false);
        b.add("lsid", session_id(session_, 'w')).add("txnNumber", ++plain_number_);
        b.add("$db", kLists.db);
        const auto command = b.take();
        for (int attempt = 0; attempt < 20; ++attempt) {
            const auto reply = line_.call(command);
            if (reply) return Outcome::Committed;
            if (reply.error().code == ErrorCode::HostUnreachable) continue;
            return reply.error().code == ErrorCode::DuplicateKey ? Outcome::Aborted
                                                                 : Outcome::Unknown;
        }
        return Outcome::Unknown;
    }

  private:
    bson::Document statement(bson::Builder b) {
        if (!std::exchange(started_, true)) b.add("startTransaction", true);
        return in_transaction(std::move(b), kLists.db);
    }
    bson::Document in_transaction(bson::Builder b, const std::string& db) {
        b.add("lsid", session_id(session_, 't')).add("txnNumber", number_).add("autocommit", false);
        b.add("$db", db);
        return b.take();
    }

    Line line_;
    const std::int64_t session_;
    WireCounts& counts_;
    std::int64_t number_ = 0;
    std::int64_t plain_number_ = 0;
    bool started_ = false;
};

}  // namespace

std::unique_ptr<Session> wire_session(std::uint16_t port, std::int64_t number, WireCounts& counts) {
    return std::make_unique<WireSession>(port, number, counts);
}

Result<bson::Document> wire_command(std::uint16_t port, const bson::Document& command) {
    return Line(port).call(command);
}

}  // namespace angelia::transactions
