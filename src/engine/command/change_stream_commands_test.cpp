// Change streams as clients see them through commands: expanded events, images, renames, refusals.
#include "engine/command/test_commands.h"

#include <fmt/format.h>

namespace angelia::engine::command {
namespace {

class ChangeStreamCommands : public test::CommandTest {
  protected:
    /// Opens a stream on app.c (or `target`) with these options.
    std::int64_t open(std::string_view options = "{}", std::string_view target = R"("c")",
                      std::string_view database = "app", std::string_view stages = "") {
        const auto answer = run(
            fmt::format(
                R"({{"aggregate": {}, "pipeline": [{{"$changeStream": {}}}{}], "cursor": {{}}}})",
                target, options, stages),
            database);
        EXPECT_TRUE(answer.ok()) << answer.json();
        namespace_ = std::string(answer.body.view().find_path("cursor.ns").as_string());
        return answer.body.view().find_path("cursor.id").as_int64();
    }
    test::Answer more(std::int64_t id) {
        const std::size_t dot = namespace_.find('.');
        return run(bson::make("getMore", id, "collection", namespace_.substr(dot + 1), "maxTimeMS",
                              std::int32_t{1}),
                   namespace_.substr(0, dot));
    }
    /// What is ready, without what differs from run to run.
    std::string events(std::int64_t id) {
        const auto answer = more(id);
        if (!answer.ok()) return fmt::format("error {}", answer.code());
        std::string text;
        for (const auto& event : answer.body.view().find_path("cursor.nextBatch").as_document()) {
            bson::Builder b;
            for (const auto& [key, value] : event.value.as_document())
                if (key != "_id" && key != "clusterTime" && key != "wallTime" &&
                    key != "collectionUUID")
                    b.add(key, value);
            text += bson::to_json(b.take()) + "\n";
        }
        if (answer.body.view().find_path("cursor.id").as_int64() == 0) text += "closed";
        return text;
    }
    std::string namespace_;
};

TEST_F(ChangeStreamCommands, ShowCollectionsAndIndexesExpanded) {
    const auto stream = open(R"({"showExpandedEvents": true})");
    run(R"({"create": "c"})");
    run(R"({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]})");
    run(R"({"dropIndexes": "c", "index": "a_1"})");
    EXPECT_EQ(
        events(stream),
        R"({"operationType":"create","ns":{"db":"app","coll":"c"},"operationDescription":{"idIndex":{"v":2,"key":{"_id":1},"name":"_id_"}}})"
        "\n"
        R"({"operationType":"createIndexes","ns":{"db":"app","coll":"c"},"operationDescription":{"indexes":[{"v":2,"key":{"a":1},"name":"a_1"}]}})"
        "\n"
        R"({"operationType":"dropIndexes","ns":{"db":"app","coll":"c"},"operationDescription":{"indexes":[{"v":2,"key":{"a":1},"name":"a_1"}]}})"
        "\n");
}

TEST_F(ChangeStreamCommands, ShowModificationsWithTheStateBefore) {
    run(R"({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1", "expireAfterSeconds": 60}]})");
    run(R"({"createIndexes": "c", "indexes": [{"key": {"b": 1}, "name": "b_1"}]})");
    const auto plain = open();
    const auto stream = open(R"({"showExpandedEvents": true})");
    EXPECT_EQ(result(R"({"collMod": "c", "index": {"name": "a_1", "expireAfterSeconds": 100}})"),
              R"({"expireAfterSeconds_old":60,"expireAfterSeconds_new":100})");
    EXPECT_EQ(result(R"({"collMod": "c", "index": {"keyPattern": {"b": 1}, "hidden": true}})"),
              R"({"hidden_old":false,"hidden_new":true})");
    EXPECT_EQ(result(R"({"collMod": "c", "changeStreamPreAndPostImages": {"enabled": true}})"),
              "{}");
    const auto state = [this] {
        const auto uuid = engine->list_collections("app")[0].uuid;
        const bson::BinaryView binary{4, {reinterpret_cast<const char*>(uuid.data()), uuid.size()}};
        const bson::Value value = bson::value(binary);
        return R"("stateBeforeChange":{"collectionOptions":{"uuid":)" +
               bson::to_json(value.view()) + "}";
    }();
    const std::string head =
        R"({"operationType":"modify","ns":{"db":"app","coll":"c"},"operationDescription":)";
    EXPECT_EQ(events(stream), head + R"({"index":{"name":"a_1","expireAfterSeconds":100}},)" +
                                  state + R"(,"indexOptions":{"expireAfterSeconds":60}}})" + "\n" +
                                  head + R"({"index":{"name":"b_1","hidden":true}},)" + state +
                                  R"(,"indexOptions":{"hidden":false}}})" + "\n" + head +
                                  R"({"changeStreamPreAndPostImages":{"enabled":true}},)" + state +
                                  "}}\n");
    EXPECT_EQ(events(plain), "");
    EXPECT_EQ(result(R"({"collMod": "c", "index": {"name": "b_1", "hidden": true}})"), "{}");
}

TEST_F(ChangeStreamCommands, KeepImagesWhileTheCollectionSaysSo) {
    run(R"({"create": "c", "changeStreamPreAndPostImages": {"enabled": true}})");
    EXPECT_EQ(run(R"({"listCollections": 1})").at("cursor.firstBatch.0.options"),
              R"({"changeStreamPreAndPostImages":{"enabled":true}})");
    const auto stream =
        open(R"({"fullDocument": "whenAvailable", "fullDocumentBeforeChange": "whenAvailable"})");
    run(R"({"insert": "c", "documents": [{"_id": 1, "a": 1}]})");
    run(R"({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 2}}}]})");
    run(R"({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"a": 3}}]})");
    run(R"({"collMod": "c", "changeStreamPreAndPostImages": {"enabled": false}})");
    run(R"({"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]})");
    EXPECT_EQ(
        events(stream),
        R"({"operationType":"insert","ns":{"db":"app","coll":"c"},"documentKey":{"_id":1},"fullDocument":{"_id":1,"a":1}})"
        "\n"
        R"({"operationType":"update","ns":{"db":"app","coll":"c"},"documentKey":{"_id":1},"updateDescription":{"updatedFields":{"a":2},"removedFields":[],"truncatedArrays":[]},"fullDocument":{"_id":1,"a":2},"fullDocumentBeforeChange":{"_id":1,"a":1}})"
        "\n"
        R"({"operationType":"replace","ns":{"db":"app","coll":"c"},"documentKey":{"_id":1},"fullDocument":{"_id":1,"a":3},"fullDocumentBeforeChange":{"_id":1,"a":2}})"
        "\n"
        R"({"operationType":"delete","ns":{"db":"app","coll":"c"},"documentKey":{"_id":1},"fullDocumentBeforeChange":null})"
        "\n");
}

TEST_F(ChangeStreamCommands, EnablingImagesDoesNotReachBack) {
    run(R"({"insert": "c", "documents": [{"_id": 1}]})");
    const auto stream = open(R"({"fullDocumentBeforeChange": "required"})");
    run(R"({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 2}}}]})");
    run(R"({"collMod": "c", "changeStreamPreAndPostImages": {"enabled": true}})");
    for (int i = 0; i < 2; ++i) {
        const auto answer = more(stream);
        EXPECT_EQ(answer.code(), 47);
        EXPECT_NE(answer.message().find("configured to require a pre-image"), std::string::npos);
        EXPECT_EQ(answer.at("errorLabels"), "missing");
    }
}

TEST_F(ChangeStreamCommands, NameTheComponentsOfAmbiguousPaths) {
    run(R"({"insert": "c", "documents": [{"_id": 1, "o": {"0": {"1": "x"}}, "l": [[{"0": "n"}], 5]}]})");
    const auto stream = open(R"({"showExpandedEvents": true})");
    run(R"({"update": "c", "updates": [{"q": {}, "u": {"$set": {"l.1": 6}}}]})");
    run(R"({"update": "c", "updates": [{"q": {}, "u": {"$set": {"o.0.1": "y"}}}]})");
    run(R"({"update": "c", "updates": [{"q": {}, "u": {"$set": {"l.0.0.0": "m"}}}]})");
    run(R"({"update": "c", "updates": [{"q": {}, "u": {"$unset": {"o.0.1": ""}}}]})");
    const auto answer = more(stream);
    const auto paths = [&answer](int i) {
        return answer.at(
            fmt::format("cursor.nextBatch.{}.updateDescription.disambiguatedPaths", i));
    };
    EXPECT_EQ(paths(0), "{}");
    EXPECT_EQ(paths(1), R"({"o.0.1":["o","0","1"]})");
    EXPECT_EQ(paths(2), R"({"l.0.0.0":["l",0,0,"0"]})");
    EXPECT_EQ(paths(3), R"({"o.0.1":["o","0","1"]})");
}

TEST_F(ChangeStreamCommands, ARenameMovesTheDataAndEndsTheStream) {
    run(R"({"insert": "c", "documents": [{"_id": 1}]})");
    run(R"({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]})");
    run(R"({"insert": "d", "documents": [{"_id": 2}]})");
    const auto stream = open();
    const auto uuid = engine->list_collections("app")[0].uuid;
    EXPECT_EQ(run(R"({"renameCollection": "app.c", "to": "app.d"})", "admin").code(), 48);
    EXPECT_EQ(run(R"({"renameCollection": "app.c", "to": "other.e"})", "admin").code(), 0);
    EXPECT_EQ(engine.find({"other", "e"}), std::vector<std::string>{R"({"_id":1})"});
    EXPECT_EQ(engine->list_collections("other")[0].uuid, uuid);
    EXPECT_EQ(engine->list_indexes({"other", "e"}).value_or_throw().size(), 2u);
    EXPECT_EQ(engine.validate({"other", "e"}), "valid");
    EXPECT_EQ(
        events(stream),
        R"({"operationType":"rename","ns":{"db":"app","coll":"c"},"to":{"db":"other","coll":"e"}})"
        "\n"
        R"({"operationType":"invalidate"})"
        "\nclosed");
}

TEST_F(ChangeStreamCommands, ARenameMayReplaceItsTarget) {
    run(R"({"insert": "c", "documents": [{"_id": 1}]})");
    run(R"({"insert": "d", "documents": [{"_id": 2}]})");
    const auto stream = open(R"({"showExpandedEvents": true})", "1");
    EXPECT_EQ(
        run(R"({"renameCollection": "app.c", "to": "app.d", "dropTarget": true})", "admin").code(),
        0);
    EXPECT_EQ(engine.find({"app", "d"}), std::vector<std::string>{R"({"_id":1})"});
    EXPECT_EQ(engine->list_collections("app").size(), 1u);
    const auto text = events(stream);
    EXPECT_NE(
        text.find(
            R"("to":{"db":"app","coll":"d"},"operationDescription":{"to":{"db":"app","coll":"d"},"dropTarget":{"$binary")"),
        std::string::npos)
        << text;
}

TEST_F(ChangeStreamCommands, RenamesAreRefused) {
    run(R"({"insert": "c", "documents": [{"_id": 1}]})");
    EXPECT_EQ(code(R"({"renameCollection": "app.x", "to": "app.d"})", "admin"), 26);
    EXPECT_EQ(code(R"({"renameCollection": "app.c", "to": "app.c"})", "admin"), 20);
    EXPECT_EQ(code(R"({"renameCollection": "app.c", "to": "app.system.x"})", "admin"), 20);
    EXPECT_EQ(code(R"({"renameCollection": "app.c", "to": "app"})", "admin"), 73);
    EXPECT_EQ(code(R"({"renameCollection": "app.c"})", "admin"), 40414);
    EXPECT_EQ(code(R"({"renameCollection": "app.c", "to": "app.d", "dropTarget": "x"})", "admin"),
              14);
    EXPECT_EQ(code(R"({"renameCollection": "app.c", "to": "app.d", "more": 1})", "admin"), 40415);
    EXPECT_EQ(code(R"({"renameCollection": "app.c", "to": "app.d"})"), 13);
}

TEST_F(ChangeStreamCommands, ModificationsAreRefused) {
    EXPECT_EQ(code(R"({"collMod": "c"})"), 26);
    run(R"({"createIndexes": "c", "indexes": [{"key": {"a": 1, "b": 1}, "name": "ab"}]})");
    EXPECT_EQ(code(R"({"collMod": "c"})"), 0);
    EXPECT_EQ(code(R"({"collMod": "c", "index": {"name": "x", "hidden": true}})"), 27);
    EXPECT_EQ(code(R"({"collMod": "c", "index": {"name": "_id_", "hidden": true}})"), 2);
    EXPECT_EQ(code(R"({"collMod": "c", "index": {"name": "ab", "expireAfterSeconds": 5}})"), 72);
    EXPECT_EQ(code(R"({"collMod": "c", "index": {"name": "ab"}})"), 72);
    EXPECT_EQ(code(R"({"collMod": "c", "index": {"hidden": true}})"), 72);
    EXPECT_EQ(code(R"({"collMod": "c", "index": {"name": "ab", "unique": true}})"), 238);
    EXPECT_EQ(code(R"({"collMod": "c", "index": {"name": "ab", "more": true}})"), 40415);
    EXPECT_EQ(code(R"({"collMod": "c", "validator": {"a": 1}})"), 238);
    EXPECT_EQ(code(R"({"collMod": "c", "more": 1})"), 40415);
    EXPECT_EQ(code(R"({"collMod": "c", "changeStreamPreAndPostImages": true})"), 14);
    EXPECT_EQ(code(R"({"collMod": "c", "changeStreamPreAndPostImages": {}})"), 40414);
    EXPECT_EQ(code(R"({"create": "d", "changeStreamPreAndPostImages": {"more": true}})"), 40415);
}

TEST_F(ChangeStreamCommands, StreamsAreRefused) {
    const auto open_code = [this](std::string_view pipeline, std::string_view more = "",
                                  std::string_view database = "app") {
        return code(fmt::format(R"({{"aggregate": "c", "pipeline": {}, "cursor": {{}}{}}})",
                                pipeline, more),
                    database);
    };
    EXPECT_EQ(open_code(R"([{"$match": {}}, {"$changeStream": {}}])"), 40602);
    EXPECT_EQ(open_code(R"([{"$changeStream": {"unknown": 1}}])"), 40415);
    EXPECT_EQ(open_code(R"([{"$changeStream": {"resumeAfter": {"_data": "00"}}}])"), 260);
    EXPECT_EQ(open_code(R"([{"$changeStream": {"allChangesForCluster": true}}])"), 73);
    EXPECT_EQ(open_code(R"([{"$changeStream": {}}, {"$group": {"_id": 1}}])"), 20);
    EXPECT_EQ(open_code(R"([{"$changeStream": {}}, {"$out": "x"}])"), 20);
    EXPECT_EQ(open_code(R"([{"$changeStream": {}}])", R"(, "readConcern": {"level": "local"})"),
              72);
    EXPECT_EQ(open_code(R"([{"$changeStream": {}}])", R"(, "readConcern": {"level": "majority"})"),
              0);
    EXPECT_EQ(open_code(R"([{"$changeStream": {}}])", "", "local"), 73);
    const auto* const strict = R"(, "apiVersion": "1", "apiStrict": true)";
    EXPECT_EQ(open_code(R"([{"$changeStream": {}}])", strict), 0);
    EXPECT_EQ(open_code(R"([{"$changeStream": {"showExpandedEvents": true}}])", strict), 323);
    EXPECT_EQ(open_code(R"([{"$changeStream": {}}, {"$changeStreamSplitLargeEvent": {}}])", strict),
              323);
    EXPECT_EQ(
        open_code(
            R"([{"$changeStream": {"startAtOperationTime": {"$timestamp": {"t": 1, "i": 1}}, "startAfter": {"_data": "00"}}}])"),
        40674);
}

TEST_F(ChangeStreamCommands, OnlyAnIdThatStaysIsAllowed) {
    const auto stream = open("{}", R"("c")", "app", R"(, {"$project": {"_id": 0}})");
    run(R"({"insert": "c", "documents": [{"_id": 1}]})");
    for (int i = 0; i < 2; ++i) {
        const auto answer = more(stream);
        EXPECT_EQ(answer.code(), 280);
        EXPECT_EQ(answer.at("errorLabels"), R"(["NonResumableChangeStreamError"])");
    }
}

TEST_F(ChangeStreamCommands, ATrimmedStreamSaysSoEachTime) {
    const auto stream = open();
    run(R"({"insert": "c", "documents": [{"_id": 1}]})");
    engine->oplog().trim_before({0xFFFFFFF0, 0}).value_or_throw();
    for (int i = 0; i < 3; ++i) {
        const auto answer = more(stream);
        EXPECT_EQ(answer.code(), 286);
        EXPECT_NE(answer.message().find("Resume of change stream was not possible, as the resume "
                                        "point may no longer be in the oplog."),
                  std::string::npos);
        EXPECT_EQ(answer.at("errorLabels"), R"(["NonResumableChangeStreamError"])");
    }
}

constexpr std::string_view kInTransaction =
    R"("lsid": {"id": {"$uuid": "11111111-1111-4111-8111-111111111111"}},
       "txnNumber": {"$numberLong": "7"}, "autocommit": false)";

TEST_F(ChangeStreamCommands, ATransactionIsOneGroupWithItsSessionAndNumber) {
    const auto stream = open(R"({"showExpandedEvents": true})");
    const auto say = [this](std::string_view statement, std::string_view database = "app") {
        return run(fmt::format("{{{}, {}}}", statement, kInTransaction), database).ok();
    };
    ASSERT_TRUE(say(R"("insert": "c", "documents": [{"_id": 1}], "startTransaction": true)"));
    ASSERT_TRUE(say(R"("update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}}])"));
    ASSERT_TRUE(say(R"("delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}])"));
    EXPECT_EQ(events(stream), "");
    ASSERT_TRUE(say(R"("commitTransaction": 1)", "admin"));
    run(R"({"insert": "c", "documents": [{"_id": 2}]})");
    const auto all = more(stream);
    std::string kinds;
    for (const auto& e : all.body.view().find_path("cursor.nextBatch").as_document()) {
        const auto event = e.value.as_document();
        kinds += std::string(event["operationType"].as_string()) + " " +
                 bson::to_json(event["txnNumber"]) + " ";
    }
    EXPECT_EQ(kinds, "create 7 insert 7 update 7 delete 7 insert null ");
    EXPECT_EQ(all.at("cursor.nextBatch.1.clusterTime"), all.at("cursor.nextBatch.3.clusterTime"));
    EXPECT_NE(all.at("cursor.nextBatch.3.lsid.id"), "missing");
    EXPECT_EQ(all.at("cursor.nextBatch.4.lsid"), "missing");
    // Resumed inside of the group.
    const auto rest =
        open(fmt::format(R"({{"resumeAfter": {}}})", all.at("cursor.nextBatch.2._id")));
    const auto again = more(rest);
    EXPECT_EQ(again.at("cursor.nextBatch.0.operationType"), R"("delete")");
    EXPECT_EQ(again.at("cursor.nextBatch.0.txnNumber"), "7");
    EXPECT_EQ(again.at("cursor.nextBatch.1.documentKey"), R"({"_id":2})");
}

TEST_F(ChangeStreamCommands, RenamesAndModificationsWaitForTransactions) {
    run(R"({"insert": "c", "documents": [{"_id": 1}]})");
    ASSERT_TRUE(
        run(fmt::format(
                R"({{"insert": "c", "documents": [{{"_id": 2}}], "startTransaction": true, {}}})",
                kInTransaction))
            .ok());
    EXPECT_EQ(code(R"({"collMod": "c", "changeStreamPreAndPostImages": {"enabled": true},
                       "maxTimeMS": 20})"),
              50);
    auto renamed = begin(test::doc(R"({"renameCollection": "app.c", "to": "app.d"})"), "admin");
    EXPECT_EQ(renamed.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    ASSERT_TRUE(
        run(fmt::format(R"({{"commitTransaction": 1, {}}})", kInTransaction), "admin").ok());
    EXPECT_TRUE(renamed.get().ok());
    EXPECT_EQ(engine.count({"app", "d"}), 2);
    EXPECT_EQ(engine.validate({"app", "d"}), "valid");
}

TEST_F(ChangeStreamCommands, CountersTellWhatAnInsertCost) {
    for (int i = 0; i < 200; ++i)
        open("{}", R"("c")", "app",
             fmt::format(R"(, {{"$match": {{"fullDocument.topic": "t{}"}}}})", i));
    const auto cost = [this](std::string_view name) {
        return run(R"({"serverStatus": 1})").at(fmt::format("angelia.engine.streams.{}", name));
    };
    EXPECT_EQ(cost("open"), "200");
    run(R"({"insert": "c", "documents": [{"_id": 1, "topic": "none"}]})");
    EXPECT_EQ(cost("candidates"), "0");
    EXPECT_EQ(cost("eventsEncoded"), "0");
    run(R"({"insert": "c", "documents": [{"_id": 2, "topic": "t3"}]})");
    EXPECT_EQ(cost("candidates"), "1");
    EXPECT_EQ(cost("eventsEncoded"), "1");
}

}  // namespace
}  // namespace angelia::engine::command
