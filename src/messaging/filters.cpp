#include "messaging/filters.h"

namespace angelia::messaging {
namespace {

using bson::array;
using bson::make;
using bson::Null;

bson::Array array_of(const std::vector<std::string>& values) {
    bson::Builder b;
    for (const auto& v : values) b.push(v);
    return bson::Array(b.take());
}

/// Not ours, for us or for anybody, not at it already.
void add_common(bson::Builder& b, const Context& context, const PollTerms& terms) {
    if (!terms.in_progress.empty() || !terms.malformed.empty()) {
        b.open("_id").open_array("$nin");
        for (const auto& id : terms.in_progress) b.push(id);
        for (const auto& id : terms.malformed) b.push(id);
        b.close().close();
    }
    b.add("sender", make("$ne", context.self));
    b.add("recipients", make("$in", array(Null{}, context.self)));
    // Under Morphium's rule the sender's clock decides about age, not delete_at.
    if (!context.morphium)
        b.add("delete_at", make("$not", make("$lte", bson::Date{terms.now_millis})));
}

bson::Document topic_in(const std::string& field, const std::vector<std::string>& topics) {
    return make(field, make("$in", array_of(topics)));
}

}  // namespace

bson::Document poll_sort() {
    return make("priority", std::int32_t{1}, "timestamp", std::int32_t{1});
}

bson::Document exclusive_poll_filter(const Context& context, const PollTerms& terms) {
    bson::Builder b;
    b.add("exclusive", true);
    b.add("processed_by.0", make("$exists", false));
    b.add("leased_until", make("$not", make("$gt", bson::Date{terms.now_millis})));
    add_common(b, context, terms);
    b.add("$or", array(topic_in("topic", terms.topics), topic_in("name", terms.topics)));
    return b.take();
}

bson::Document broadcast_poll_filter(const Context& context, const PollTerms& terms) {
    bson::Builder b;
    b.add("exclusive", make("$in", array(Null{}, false)));
    b.add("processed_by", make("$ne", context.self));
    add_common(b, context, terms);
    b.open_array("$or");
    if (!terms.topics.empty()) {
        b.push(topic_in("topic", terms.topics));
        b.push(topic_in("name", terms.topics));
    }
    if (!terms.waited_answers.empty()) {
        b.push_document().open("in_answer_to").open_array("$in");
        for (const auto& id : terms.waited_answers) b.push(id);
        b.close().close().close();
    }
    b.close();
    return b.take();
}

bson::Document main_stream_stages(const Context& context, const std::vector<std::string>& topics) {
    const auto topic_list = array_of(topics);
    const auto for_anybody = make("fullDocument.recipients", Null{}, "$or",
                                  array(make("fullDocument.topic", make("$in", topic_list)),
                                        make("fullDocument.name", make("$in", topic_list)),
                                        make("fullDocument.in_answer_to", make("$ne", Null{}))));
    const auto for_us = make("fullDocument.recipients", context.self);
    const auto inserts = make("operationType", "insert", "fullDocument.sender",
                              make("$ne", context.self), "$or", array(for_anybody, for_us));
    // Available again: the mark list was emptied, or a holder of ours gave the message back (an
    // explicit null; other renewals set a date).
    const auto requeued =
        make("operationType", "update", "updateDescription.updatedFields.processed_by",
             make("$size", std::int32_t{0}));
    const auto released =
        make("operationType", "update", "updateDescription.updatedFields.leased_until",
             make("$type", "null"));
    const auto pushed = make("operationType", "lock_released");  // servers of Morphium's own make
    return bson::Document(
        array(make("$match",
                   make("operationType", make("$in", array("insert", "lock_released", "update")))),
              make("$match", make("$or", array(pushed, requeued, released, inserts))))
            .view());
}

bson::Document lock_stream_stages() {
    return bson::Document(array(make("$match", make("operationType", "delete"))).view());
}

}  // namespace angelia::messaging
