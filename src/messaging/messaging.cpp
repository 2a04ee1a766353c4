#include <angelia/messaging/messaging.h>

#include "messaging/node.h"

namespace angelia::messaging {

Messaging::Messaging(store::Store store, Options options)
    : node_(std::make_shared<Node>(std::move(store), std::move(options))) {}

Messaging::~Messaging() {
    auto stopped = node_->stop(milliseconds(2'000));
    if (!stopped) node_->context.log(LogLevel::Warning, "stopped while " + stopped.error().message);
}

Result<void> Messaging::start() { return node_->start(); }
bool Messaging::wait_ready(milliseconds timeout) { return node_->wait_ready(timeout); }
Result<void> Messaging::stop(milliseconds timeout) { return node_->stop(timeout); }

Result<bson::ObjectId> Messaging::publish(Message message) {
    std::vector<Message> one;
    one.push_back(std::move(message));
    ANGELIA_TRY_ASSIGN(const auto ids, node_->publish(std::move(one), false));
    return ids.front();
}

Result<std::vector<bson::ObjectId>> Messaging::publish_many(std::vector<Message> messages) {
    return node_->publish(std::move(messages), false);
}

Result<bson::ObjectId> Messaging::publish_to_self(Message message) {
    std::vector<Message> one;
    one.push_back(std::move(message));
    ANGELIA_TRY_ASSIGN(const auto ids, node_->publish(std::move(one), true));
    return ids.front();
}

Result<Message> Messaging::request(Message message, milliseconds timeout) {
    const std::string topic = message.topic;
    ANGELIA_TRY_ASSIGN(auto answers, request_all(std::move(message), 1, timeout));
    if (answers.empty()) {
        return {ErrorCode::ExceededTimeLimit, "no answer on topic \"" + topic + "\" within " +
                                                  std::to_string(timeout.count()) + " ms"};
    }
    return std::move(answers.front());
}

Result<std::vector<Message>> Messaging::request_all(Message message, std::size_t count,
                                                    milliseconds timeout) {
    ANGELIA_TRY(node_->need_started());
    if (message.id == bson::ObjectId{}) message.id = bson::ObjectId::generate();
    const auto id = message.id;
    ANGELIA_TRY_ASSIGN(const auto waiter, node_->answers.expect(id, message.exclusive));
    if (auto sent = publish(std::move(message)); !sent) {
        node_->answers.forget(id);
        return std::move(sent).error();
    }
    return node_->answers.wait(waiter, count, timeout);
}

Result<bson::ObjectId> Messaging::request_async(Message message, milliseconds timeout,
                                                AnswerCallback on_answer,
                                                std::function<void()> on_timeout) {
    ANGELIA_TRY(node_->need_started());
    if (!on_answer) return {ErrorCode::BadValue, "request_async() has no callback for answers"};
    if (message.id == bson::ObjectId{}) message.id = bson::ObjectId::generate();
    const auto id = message.id;
    ANGELIA_TRY(node_->answers.expect_async(id, message.exclusive, timeout, std::move(on_answer),
                                            std::move(on_timeout)));
    if (auto sent = publish(std::move(message)); !sent) {
        node_->answers.forget(id);
        return std::move(sent).error();
    }
    return id;
}

Result<ListenerId> Messaging::add_listener(std::string topic, Handler handler,
                                           ListenOptions options) {
    std::vector<TopicHandler> one(1);
    one[0].topic = std::move(topic);
    one[0].handler = std::move(handler);
    one[0].options = std::move(options);
    ANGELIA_TRY_ASSIGN(auto ids, node_->registry.add(std::move(one)));
    node_->look_again();
    return std::move(ids.front());
}

Result<std::vector<ListenerId>> Messaging::listen_many(std::vector<TopicHandler> listeners) {
    ANGELIA_TRY_ASSIGN(auto ids, node_->registry.add(std::move(listeners)));
    node_->look_again();
    return ids;
}

bool Messaging::unlisten(const ListenerId& id) { return node_->registry.remove(id); }

void Messaging::pause_topic(const std::string& topic) {
    node_->registry.pause(topic, node_->context.clock.steady_now());
}

milliseconds Messaging::resume_topic(const std::string& topic) {
    const auto paused_for = node_->registry.resume(topic, node_->context.clock.steady_now());
    node_->look_again();
    return paused_for;
}

Result<std::vector<Message>> Messaging::receive(const std::string& topic, std::size_t count,
                                                milliseconds wait) {
    ANGELIA_TRY(node_->need_started());
    return node_->pull.receive(
        topic, count, wait, [&] { return node_->streams.live() && node_->streams.covers(topic); });
}

Result<void> Messaging::acknowledge(const Message& message) {
    ANGELIA_TRY(node_->need_started());
    return node_->pull.acknowledge(message);
}

Result<void> Messaging::extend(const Message& message, milliseconds lease) {
    ANGELIA_TRY(node_->need_started());
    return node_->pull.extend(message, lease);
}

Result<void> Messaging::reject(const Message& message, std::string reason) {
    ANGELIA_TRY(node_->need_started());
    return node_->pull.reject(message, reason);
}

const std::string& Messaging::id() const { return node_->context.self; }
std::string Messaging::collection_name() const { return node_->context.names.main; }
std::string Messaging::lock_collection_name() const { return node_->context.names.locks; }
std::string Messaging::participants_collection_name() const {
    return node_->context.names.participants;
}
Status Messaging::status() const { return node_->status(); }
std::vector<DecisionEntry> Messaging::decisions() const { return node_->context.decisions.read(); }

Result<std::int64_t> Messaging::pending_count() {
    auto& context = node_->context;
    const auto filter = bson::make("sender", bson::make("$ne", context.self), "processed_by.0",
                                   bson::make("$exists", false));
    return context.store.count(context.main, filter);
}

}  // namespace angelia::messaging
