// A copy of a collection that is kept up to date by its change stream alone must be the collection,
// whatever is written and wherever the reader stops and goes on.
#include "engine/testing/test_engine.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace angelia::engine {
namespace {

using namespace testing_support;
const Namespace kSource{"test", "source"};

/// Applies events to documents by _id.
class Replica {
  public:
    void apply(const bson::Document& event) {
        const std::string id =
            bson::to_json(event.view().find_path("documentKey._id"), bson::JsonMode::Canonical);
        const std::string_view kind = event["operationType"].as_string();
        ++counts_[std::string(kind)];
        EXPECT_EQ(documents_.count(id), kind == "insert" ? 0u : 1u) << kind << " of " << id;
        if (kind == "insert" || kind == "replace")
            documents_[id] = bson::Document(event["fullDocument"].as_document());
        if (kind == "delete") documents_.erase(id);
        if (kind == "update") update(documents_[id], event["updateDescription"].as_document());
    }
    std::vector<std::string> texts() const {
        std::vector<std::string> out;
        for (const auto& [id, document] : documents_)
            out.push_back(bson::to_json(document, bson::JsonMode::Canonical));
        std::sort(out.begin(), out.end());
        return out;
    }
    int count(const std::string& kind) { return counts_[kind]; }

  private:
    static void update(bson::Document& document, bson::DocumentView description) {
        EXPECT_TRUE(description["truncatedArrays"].as_document().empty());
        bson::Builder set, unset;
        set.add_all(description["updatedFields"].as_document());
        for (const auto& path : description["removedFields"].as_document())
            unset.add(path.value.as_string(), "");
        bson::Builder change;
        const auto set_fields = set.take(), unset_fields = unset.take();
        if (!set_fields.empty()) change.add("$set", set_fields);
        if (!unset_fields.empty()) change.add("$unset", unset_fields);
        const auto operators = change.take();
        const auto parsed = query::Update::parse(operators.view()).value_or_throw();
        document = parsed.apply(document.view(), {}).value_or_throw().document;
    }

    std::map<std::string, bson::Document> documents_;
    std::map<std::string, int> counts_;
};

std::vector<std::string> contents_of(TestEngine& engine) {
    FindSpec spec;
    spec.ns = kSource;
    spec.batch_size = 100'000;
    std::vector<std::string> out;
    for (const auto& document : engine->find(spec).value_or_throw().documents)
        out.push_back(bson::to_json(document, bson::JsonMode::Canonical));
    std::sort(out.begin(), out.end());
    return out;
}

class RandomWriter {
  public:
    RandomWriter(TestEngine& engine, std::mt19937& random) : engine_(engine), random_(random) {}

    void write() {
        WriteRequest request;
        const int size = 1 + below(4);
        for (int i = 0; i < size; ++i) request.writes.push_back(one());
        request.ordered = below(2) == 0;
        request.atomic = below(3) == 0;
        EXPECT_TRUE(engine_.write(std::move(request)).has_value());
    }

  private:
    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    std::string id() { return R"({"_id": )" + std::to_string(below(12)) + "}"; }
    std::string number() { return std::to_string(below(5)); }
    std::string value() {
        const std::string choices[] = {number(),
                                       "\"text\"",
                                       "[]",
                                       "[" + number() + ", " + number() + "]",
                                       R"({"x": )" + number() + "}",
                                       "null"};
        return choices[below(6)];
    }
    std::string operators() {
        static const char* const kFields[] = {"a", "b", "c", "d.x", "d.y", "e.0", "list"};
        const std::string field = std::string("\"") + kFields[below(7)] + "\": ";
        const std::string choices[] = {
            R"({"$set": {)" + field + value() + R"(, "z": )" + number() + "}}",
            R"({"$unset": {)" + field + "1}}",
            R"({"$inc": {"n": )" + number() + R"(}, "$set": {)" + field + value() + "}}",
            R"({"$push": {"list": )" + value() + "}}",
            R"({"$push": {"list": {"$each": [)" + value() + ", " + value() + "]}}}",
            R"({"$addToSet": {"list": )" + number() + "}}",
            R"({"$pull": {"list": )" + number() + "}}",
            R"({"$rename": {"a": "renamed"}})",
            R"({"$min": {"n": )" + number() + R"(}, "$max": {"m": )" + number() + "}}",
        };
        return choices[below(9)];
    }
    ConditionalWrite one() {
        switch (below(8)) {
            case 0:
            case 1:
                return insert_write(kSource, doc(R"({"_id": )" + std::to_string(below(12)) +
                                                 R"(, "a": )" + value() + "}"));
            case 2:
                return delete_write(kSource, id());
            case 3:
                return update_write(kSource, id(), R"({"replaced": )" + value() + "}");
            case 4:
                return update_write(kSource, id(), operators(), false, true);
            case 5:
                return update_write(kSource, R"({"a": {"$exists": true}})", operators(), true);
            default:
                return update_write(kSource, id(), operators());
        }
    }

    TestEngine& engine_;
    std::mt19937& random_;
};

std::shared_ptr<ChangeStream> stream_from(TestEngine& engine, const bson::Document& token) {
    WatchSpec spec;
    spec.ns = kSource;
    spec.options = bson::make("resumeAfter", token);
    return engine->watch(spec).value_or_throw();
}

bson::Document token_of_now(TestEngine& engine) {
    WatchSpec spec;
    spec.ns = kSource;
    return engine->watch(spec).value_or_throw()->poll(0, 1).value_or_throw().resume_token.copy();
}

/// Reads in batches of `events_max` until nothing comes; the token to go on with.
bson::Document follow(ChangeStream& stream, Replica& replica, std::size_t events_max) {
    for (;;) {
        auto batch = stream.poll(events_max, 1 << 20).value_or_throw();
        for (const auto& event : batch.events) replica.apply(event);
        if (batch.events.empty()) return std::move(batch.resume_token);
    }
}

TEST(Replica, OfACollectionIsTheCollection) {
    constexpr unsigned kSeed = 4711;
    SCOPED_TRACE("seed " + std::to_string(kSeed));
    std::mt19937 random(kSeed);
    TestEngine engine;
    Replica replica;
    bson::Document token = token_of_now(engine);
    auto stream = stream_from(engine, token);
    RandomWriter writer(engine, random);
    for (int round = 0; round < 400; ++round) {
        writer.write();
        writer.write();
        token = follow(*stream, replica, 1 + random() % 7);
        if (round % 16 == 0) stream = stream_from(engine, token);
        // What was acknowledged has been read: no wait is needed.
        ASSERT_EQ(replica.texts(), contents_of(engine)) << "round " << round;
    }
    for (const char* kind : {"insert", "update", "replace", "delete"})
        EXPECT_GT(replica.count(kind), 30) << kind;
}

TEST(Replica, GoesOnAfterEachReopening) {
    constexpr unsigned kSeed = 815;
    SCOPED_TRACE("seed " + std::to_string(kSeed));
    std::mt19937 random(kSeed);
    TempFolder folder;
    Replica replica;
    bson::Document token;
    {
        TestEngine engine(folder_options(folder.path()));
        token = token_of_now(engine);
        engine.close();
    }
    for (int life = 0; life < 6; ++life) {
        TestEngine engine(folder_options(folder.path()));
        RandomWriter writer(engine, random);
        for (int i = 0; i < 15; ++i) writer.write();
        // One batch only, so that the reader lags behind over the restart.
        auto batch = stream_from(engine, token)->poll(1 + random() % 20, 1 << 20).value_or_throw();
        for (const auto& event : batch.events) replica.apply(event);
        token = std::move(batch.resume_token);
        engine.close();
    }
    TestEngine engine(folder_options(folder.path()));
    follow(*stream_from(engine, token), replica, 5);
    EXPECT_EQ(replica.texts(), contents_of(engine));
    EXPECT_EQ(engine.validate(kSource), "valid");
}

TEST(EngineStreams, ADroppedDatabaseEndsItsStreamsOnly) {
    TestEngine engine;
    engine.insert(kSource, R"({"_id": 1})");
    engine.insert({"test", "second"}, R"({"_id": 1})");
    engine.insert({"other", "source"}, R"({"_id": 1})");
    const auto lines = [](ChangeStream& stream) {
        const auto batch = stream.poll(100, 1 << 20).value_or_throw();
        std::string out;
        for (const auto& event : batch.events) {
            const auto collection = event.view().find_path("ns.coll").get_string();
            out += std::string(event["operationType"].as_string()) +
                   (collection ? ":" + std::string(*collection) : "") + " ";
        }
        return out + (batch.closed ? "closed" : "open");
    };
    const auto watch = [&](WatchSpec::Scope scope, Namespace ns) {
        WatchSpec spec;
        spec.scope = scope;
        spec.ns = std::move(ns);
        return engine->watch(spec).value_or_throw();
    };
    const auto collection = watch(WatchSpec::Scope::Collection, kSource);
    const auto database = watch(WatchSpec::Scope::Database, {"test", ""});
    const auto other = watch(WatchSpec::Scope::Collection, {"other", "source"});
    engine.drop_database("test").value_or_throw();
    EXPECT_EQ(lines(*collection), "drop:source invalidate closed");
    EXPECT_EQ(lines(*database), "drop:second drop:source dropDatabase invalidate closed");
    EXPECT_EQ(lines(*other), "open");
}

TEST(EngineStreams, ShowDefinitionsWhenExpanded) {
    TestEngine engine;
    WatchSpec spec;
    spec.ns = kSource;
    spec.options = doc(R"({"showExpandedEvents": true})");
    const auto stream = engine->watch(spec).value_or_throw();
    engine.create(kSource).value_or_throw();
    engine.create_index(kSource, index_spec("a_1", R"({"a": 1})")).value_or_throw();
    engine.drop_indexes(kSource, bson::value("a_1")).value_or_throw();
    const auto batch = stream->poll(100, 1 << 20).value_or_throw();
    ASSERT_EQ(batch.events.size(), 3u);
    EXPECT_EQ(batch.events[0]["operationType"].as_string(), "create");
    EXPECT_EQ(batch.events[1]
                  .view()
                  .find_path("operationDescription.indexes.0.name")
                  .get_string()
                  .value_or(""),
              "a_1");
    EXPECT_EQ(batch.events[2]
                  .view()
                  .find_path("operationDescription.indexes.0.name")
                  .get_string()
                  .value_or(""),
              "a_1");
    EXPECT_TRUE(batch.events[2]["collectionUUID"].is(bson::Type::Binary));
}

TEST(EngineStreams, ACursorWhoseHistoryWasTrimmedSaysSoEachTime) {
    TestEngine engine;
    engine.insert(kSource, R"({"_id": 1})");
    WatchSpec spec;
    spec.ns = kSource;
    spec.options = bson::make("startAtOperationTime", engine->oplog().newest_durable());
    GetMoreSpec more;
    more.cursor_id = engine->open_change_stream_cursor(spec, 100, {}).value_or_throw().cursor_id;
    more.ns = kSource;
    engine.insert(kSource, R"({"_id": 2})");
    engine->oplog().trim_before(engine->oplog().newest_durable()).value_or_throw();
    EXPECT_EQ(code_of(engine.get_more(more)), "ChangeStreamHistoryLost");
    EXPECT_EQ(code_of(engine.get_more(more)), "ChangeStreamHistoryLost");
    const std::int64_t ids[] = {more.cursor_id};
    EXPECT_EQ(engine->kill_cursors(kSource, ids).killed.size(), 1u);
    EXPECT_EQ(code_of(engine.get_more(more)), "CursorNotFound");
}

}  // namespace
}  // namespace angelia::engine
