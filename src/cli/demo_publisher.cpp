#include "cli/demo_publisher.h"

#include <algorithm>

namespace angelia::cli::demo {
namespace {

constexpr milliseconds kAnswerTimeout{20'000};
constexpr milliseconds kBroadcastLife{
    120'000};  // longer than the demo: an unhandled broadcast must show up as missing, not expire

Kind kind_of(std::uint64_t n) {
    static constexpr Kind kinds[] = {Kind::Broadcast, Kind::Work, Kind::Broadcast, Kind::Work,
                                     Kind::Request};
    return kinds[n % 5];
}

bson::Document record_of(const bson::ObjectId& message, Kind kind) {
    return bson::make("_id", message, "kind", static_cast<std::int32_t>(kind), "name",
                      kind_name(kind));
}

Result<void> insert_all(store::Store& store, const char* collection,
                        const std::vector<bson::Document>& documents) {
    if (documents.empty()) return {};
    std::vector<bson::DocumentView> views;
    for (const auto& d : documents) views.push_back(d.view());
    ANGELIA_TRY_ASSIGN(const auto result, store.insert(store.collection(collection), views));
    if (!result.errors.empty()) return result.errors.front().error;
    return {};
}

}  // namespace

Publisher::Publisher(store::Store store, Messaging& node, const Input& input)
    : store_(std::move(store)), node_(node), input_(input) {}

Message Publisher::next(Kind kind) {
    Message m = input_.messages[at_ % input_.messages.size()].copy();
    ++at_;
    m.topic = topic_of(m.topic, kind);
    m.exclusive = kind == Kind::Work;
    m.recipients.clear();
    if (kind != Kind::Work) m.ttl = kBroadcastLife;
    return m;
}

Result<void> Publisher::publish(std::size_t count) {
    std::vector<Message> batch;
    std::vector<Kind> kinds;
    for (std::size_t i = 0; i < count; ++i) {
        const Kind kind = kind_of(published_ + i);
        if (kind == Kind::Request) {
            ANGELIA_TRY(publish_request(next(kind)));
        } else {
            batch.push_back(next(kind));
            kinds.push_back(kind);
        }
    }
    if (!batch.empty()) {
        ANGELIA_TRY_ASSIGN(const auto ids, node_.publish(std::move(batch)));
        std::vector<bson::Document> records;
        for (std::size_t i = 0; i < ids.size(); ++i) records.push_back(record_of(ids[i], kinds[i]));
        ANGELIA_TRY(insert_all(store_, kPublished, records));
    }
    published_ += count;
    return {};
}

Result<void> Publisher::publish_request(Message message) {
    const auto start = real_clock().steady_now();
    const auto on_answer = [this, start](const Message& answer) {
        const auto took = real_clock().steady_now() - start;
        answered_.fetch_add(1);
        const std::lock_guard lock(mutex_);
        new_answers_.push_back(answer.in_answer_to.value_or(bson::ObjectId()));
        latencies_us_.push_back(took.count());
    };
    ANGELIA_TRY_ASSIGN(const bson::ObjectId id,
                       node_.request_async(std::move(message), kAnswerTimeout, on_answer));
    std::vector<bson::Document> records;
    records.push_back(record_of(id, Kind::Request));
    return insert_all(store_, kPublished, records);
}

Result<void> Publisher::record_answers() {
    std::vector<bson::ObjectId> ids;
    {
        const std::lock_guard lock(mutex_);
        ids.swap(new_answers_);
    }
    std::vector<bson::Document> records;
    for (const auto& id : ids) records.push_back(bson::make("_id", id));
    return insert_all(store_, kAnswered, records);
}

Latencies Publisher::latencies() const {
    std::vector<std::int64_t> sorted;
    {
        const std::lock_guard lock(mutex_);
        sorted = latencies_us_;
    }
    if (sorted.empty()) return {};
    std::sort(sorted.begin(), sorted.end());
    return {microseconds(sorted[sorted.size() / 2]), microseconds(sorted[sorted.size() * 99 / 100]),
            sorted.size()};
}

}  // namespace angelia::cli::demo
