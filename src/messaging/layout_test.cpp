// Names and filters as data.
#include "messaging/filters.h"
#include "messaging/layouts/standard.h"

#include <angelia/bson/json.h>

#include <gtest/gtest.h>

namespace angelia::messaging {
namespace {

TEST(StandardLayout, NamesCollectionsAsOthersDo) {
    EXPECT_EQ(standard_layout("").main, "msg");
    EXPECT_EQ(standard_layout("msg").participants, "msg_participants");
    const auto orders = standard_layout("a.b-C");
    EXPECT_EQ(orders.main, "mmsg_a.b-C");
    EXPECT_EQ(orders.locks, "mmsg_a.b-C_lck");
    EXPECT_EQ(orders.participants, "mmsg_a.b-C_participants");
    EXPECT_EQ(orders.implementation, "StandardMessaging");
}

TEST(StandardLayout, HasMorphiumsNineIndexesUnderTheirNames) {
    std::string names;
    for (const auto& index : standard_layout("msg").morphium_indexes)
        names += index.name + "=" + bson::to_json(index.key) + "\n";
    EXPECT_EQ(
        names,
        "sender_1_processed_by_1_in_answer_to_1={\"sender\":1,\"processed_by\":1,\"in_answer_to\":"
        "1}\n"
        "msgId_1_sender_1_processed_by_1_topic_1_priority_1_timestamp_1="
        "{\"_id\":1,\"sender\":1,\"processed_by\":1,\"topic\":1,\"priority\":1,\"timestamp\":1}\n"
        "msgId_1_processed_by_1_topic_1={\"_id\":1,\"processed_by\":1,\"topic\":1}\n"
        "processed_by_1_priority_1_timestamp_1={\"processed_by\":1,\"priority\":1,\"timestamp\":1}"
        "\n"
        "processed_by_1={\"processed_by\":1}\n"
        "ttl_1={\"ttl\":1}\n"
        "topic_1={\"topic\":1}\n"
        "timestamp_1={\"timestamp\":1}\n"
        "delete_at_1={\"delete_at\":1}\n");
}

TEST(StandardLayout, TtlIndexesExpireAtOnce) {
    for (const auto& index : standard_layout("msg").own_indexes) {
        EXPECT_EQ(index.expire_after_seconds,
                  index.name == "delete_at_1" ? std::optional<std::int32_t>(0) : std::nullopt)
            << index.name;
    }
}

TEST(StreamFilter, AsksTheServerForWhatThisNodeCanProcess) {
    const Context context(store::Store{}, {.id = "ME"});
    EXPECT_EQ(
        bson::to_json(main_stream_stages(context, {"t"})),
        R"({"0":{"$match":{"operationType":{"$in":["insert","lock_released","update"]}}},)"
        R"("1":{"$match":{"$or":[{"operationType":"lock_released"},)"
        R"({"operationType":"update","updateDescription.updatedFields.processed_by":{"$size":0}},)"
        R"({"operationType":"update","updateDescription.updatedFields.leased_until":{"$type":"null"}},)"
        R"({"operationType":"insert","fullDocument.sender":{"$ne":"ME"},"$or":[)"
        R"({"fullDocument.recipients":null,"$or":[{"fullDocument.topic":{"$in":["t"]}},{"fullDocument.name":{"$in":["t"]}},)"
        R"({"fullDocument.in_answer_to":{"$ne":null}}]},{"fullDocument.recipients":"ME"}]}]}}})");
}

}  // namespace
}  // namespace angelia::messaging
