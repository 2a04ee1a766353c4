#include "messaging/layouts/standard.h"

namespace angelia::messaging {
namespace {

using std::int32_t;

store::IndexDefinition plain_index(std::string name, bson::Document key) {
    return {.name = std::move(name),
            .key = std::move(key),
            .unique = false,
            .sparse = false,
            .expire_after_seconds = {}};
}

store::IndexDefinition end_of_life_index() {
    auto index = plain_index("delete_at_1", bson::make("delete_at", int32_t{1}));
    index.expire_after_seconds = 0;
    return index;
}

}  // namespace

LayoutNames standard_layout(std::string_view queue) {
    constexpr int32_t up = 1;
    LayoutNames names;
    names.implementation = "StandardMessaging";
    names.main =
        queue.empty() || queue == "msg" ? std::string("msg") : "mmsg_" + std::string(queue);
    names.locks = names.main + "_lck";
    names.participants = names.main + "_participants";

    // Polls ask for exclusive ones or for the others, by priority and timestamp; the rest of their
    // filter is read from the documents. No part of it changes with a mark, so that marking costs
    // no index write.
    names.own_indexes.push_back(
        plain_index("exclusive_1_priority_1_timestamp_1",
                    bson::make("exclusive", up, "priority", up, "timestamp", up)));
    names.own_indexes.push_back(end_of_life_index());

    auto& all = names.morphium_indexes;
    all.push_back(plain_index("sender_1_processed_by_1_in_answer_to_1",
                              bson::make("sender", up, "processed_by", up, "in_answer_to", up)));
    all.push_back(plain_index("msgId_1_sender_1_processed_by_1_topic_1_priority_1_timestamp_1",
                              bson::make("_id", up, "sender", up, "processed_by", up, "topic", up,
                                         "priority", up, "timestamp", up)));
    all.push_back(plain_index("msgId_1_processed_by_1_topic_1",
                              bson::make("_id", up, "processed_by", up, "topic", up)));
    all.push_back(plain_index("processed_by_1_priority_1_timestamp_1",
                              bson::make("processed_by", up, "priority", up, "timestamp", up)));
    all.push_back(plain_index("processed_by_1", bson::make("processed_by", up)));
    all.push_back(plain_index("ttl_1", bson::make("ttl", up)));
    all.push_back(plain_index("topic_1", bson::make("topic", up)));
    all.push_back(plain_index("timestamp_1", bson::make("timestamp", up)));
    all.push_back(end_of_life_index());

    names.lock_indexes.push_back(end_of_life_index());
    names.lock_indexes.push_back(plain_index("lock_id_1", bson::make("lock_id", up)));
    return names;
}

}  // namespace angelia::messaging
