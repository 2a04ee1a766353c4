// Change streams over the real oplog: what tokens promise across closing and opening a data folder.
#include "engine/changes/testing/fake_oplog.h"
#include "engine/storage/storage.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>

namespace angelia::engine::changes {
namespace {

using test::kNoLimit;
using test::poll;
using test::text_of;
using test::token_of;

/// A data folder with streams over it; gone at the end.
class StoredStreams : public ::testing::Test {
  protected:
    StoredStreams()
        : path_(std::filesystem::path(::testing::TempDir()) /
                ("angelia_streams_" + bson::ObjectId::generate().to_hex())) {
        open();
    }
    ~StoredStreams() override {
        close();
        std::filesystem::remove_all(path_);
    }
    void open() {
        storage::Options options;
        options.path = path_.string();
        options.tail_bytes_max = 4096;  // so that older entries are read from the store
        storage_ = storage::Storage::open(options).value_or_throw();
        oplog_ = Oplog::attach(*storage_);
        streams_ = std::make_unique<ChangeStreams>(
            *oplog_,
            ChangeStreamHooks{[](const OplogEntry&) -> Result<std::optional<bson::Document>> {
                                  return std::optional<bson::Document>();
                              },
                              [this] { return storage_->store_id(); }});
    }
    void close() {
        streams_.reset();
        oplog_.reset();
        storage_->close().value_or_throw();
        storage_.reset();
    }
    void reopen() {
        close();
        open();
    }
    /// Inserts documents with these ids in one commit, all at one time, and waits until they are
    /// durable.
    bson::Timestamp insert(std::string_view collection, const std::vector<std::int32_t>& ids) {
        auto section = storage_->begin_apply();
        const bson::Timestamp time = section->next_timestamp();
        std::uint32_t sub = 0;
        for (const std::int32_t id : ids) {
            const bson::Value key = bson::value(id);
            const bson::Document document = bson::make("_id", id, "text", std::string(200, 'x'));
            OplogFields fields;
            fields.kind = OpKind::Insert;
            fields.db = "d";
            fields.collection = collection;
            fields.id = key.view();
            fields.payload = document.view();
            section->append_oplog(time, sub++, OplogEntry::encode(fields));
        }
        const auto position = section->commit().value_or_throw();
        section.reset();
        storage_->wait_durable(position).value_or_throw();
        return time;
    }
    Result<std::shared_ptr<ChangeStream>> try_watch(const bson::Document& options) {
        WatchSpec spec;
        spec.ns = {"d", "c"};
        spec.options = options.copy();
        return streams_->open(spec);
    }
    std::shared_ptr<ChangeStream> watch(const bson::Document& options = {}) {
        return try_watch(options).value_or_throw();
    }

    const std::filesystem::path path_;
    std::unique_ptr<storage::Storage> storage_;
    std::unique_ptr<Oplog> oplog_;
    std::unique_ptr<ChangeStreams> streams_;
};

TEST_F(StoredStreams, ShowWhatWasCommitted) {
    const auto stream = watch();
    insert("c", {1, 2});
    insert("other", {3});
    insert("c", {4});
    EXPECT_EQ(text_of(*stream), "insert d.c 1, insert d.c 2, insert d.c 4");
}

TEST_F(StoredStreams, TokensHoldAfterReopening) {
    const auto fresh = poll(*watch()).resume_token;  // of a store that has no entry yet
    auto stream = watch();
    insert("c", {1, 2, 3});
    insert("c", {4});
    const auto batch = poll(*stream, 2);
    stream.reset();
    reopen();
    EXPECT_EQ(text_of(*watch(bson::make("resumeAfter", batch.resume_token))),
              "insert d.c 3, insert d.c 4");
    EXPECT_EQ(text_of(*watch(bson::make("resumeAfter", token_of(batch.events[0].view())))),
              "insert d.c 2, insert d.c 3, insert d.c 4");
    EXPECT_EQ(text_of(*watch(bson::make("startAfter", fresh))),
              "insert d.c 1, insert d.c 2, insert d.c 3, insert d.c 4");
    insert("c", {5});
    EXPECT_EQ(text_of(*watch(bson::make("resumeAfter", batch.resume_token))),
              "insert d.c 3, insert d.c 4, insert d.c 5");
}

TEST_F(StoredStreams, ANewStreamAfterReopeningStartsAtNow) {
    insert("c", {1});
    reopen();
    const auto stream = watch();
    EXPECT_EQ(text_of(*stream), "");
    insert("c", {2});
    EXPECT_EQ(text_of(*stream), "insert d.c 2");
}

TEST_F(StoredStreams, ReadWhatHasLeftTheTail) {
    const auto first = insert("c", {0});
    std::string expected = "insert d.c 0";
    for (std::int32_t i = 1; i < 200; ++i) {
        insert(i % 2 == 0 ? "c" : "other", {i});
        expected += i % 2 == 0 ? ", insert d.c " + std::to_string(i) : "";
    }
    EXPECT_EQ(text_of(*watch(bson::make("startAtOperationTime", first))), expected);
}

TEST_F(StoredStreams, SayWhenHistoryIsGone) {
    auto stream = watch();
    insert("c", {1});
    const auto second = insert("c", {2});
    const auto third = insert("c", {3});
    const auto batch = poll(*stream);
    const auto behind = watch(bson::make("startAtOperationTime", second));
    oplog_->trim_before(third).value_or_throw();
    EXPECT_EQ(behind->poll(kNoLimit, kNoLimit).error().code, ErrorCode::ChangeStreamHistoryLost);
    EXPECT_EQ(behind->poll(kNoLimit, kNoLimit).error().code, ErrorCode::ChangeStreamHistoryLost);
    const auto code = [this](const bson::Document& options) {
        const auto opened = try_watch(options);
        return opened ? ErrorCode::Ok : opened.error().code;
    };
    const auto token = [&](std::size_t i) {
        return bson::make("resumeAfter", token_of(batch.events[i].view()));
    };
    EXPECT_EQ(code(token(1)), ErrorCode::ChangeStreamHistoryLost);
    EXPECT_EQ(code(token(2)), ErrorCode::Ok);
    EXPECT_EQ(code(bson::make("startAtOperationTime", second)), ErrorCode::ChangeStreamHistoryLost);
    EXPECT_EQ(code(bson::make("startAtOperationTime", third)), ErrorCode::Ok);
    EXPECT_EQ(text_of(*stream), "");
    reopen();
    EXPECT_EQ(code(token(1)), ErrorCode::ChangeStreamHistoryLost);
    EXPECT_EQ(code(token(2)), ErrorCode::Ok);
}

TEST_F(StoredStreams, WakeBeforeTheWriterIsAnswered) {
    const auto stream = watch();
    test::Bell bell;
    bell.hang(*stream);
    auto section = storage_->begin_apply();
    const bson::Value key = bson::value(std::int32_t{1});
    const bson::Document document = bson::make("_id", std::int32_t{1});
    OplogFields fields;
    fields.kind = OpKind::Insert;
    fields.db = "d";
    fields.collection = "c";
    fields.id = key.view();
    fields.payload = document.view();
    section->append_oplog(section->next_timestamp(), 0, OplogEntry::encode(fields));
    const auto position = section->commit().value_or_throw();
    section.reset();
    std::promise<int> rung_at_answer;
    storage_->on_durable(position, [&](Result<void>) { rung_at_answer.set_value(bell.rung()); });
    EXPECT_EQ(rung_at_answer.get_future().get(), 1);
    EXPECT_EQ(text_of(*stream), "insert d.c 1");
}

}  // namespace
}  // namespace angelia::engine::changes
