#include "messaging/status_topic.h"

#include <algorithm>

namespace angelia::messaging {

Reply status_reply(const Message& request, const Status& status, std::int64_t now_millis,
                   const Options& options, std::size_t threads) {
    // Spelling and dots of the keys are a contract with monitors of other makes, mistakes included.
    bson::Builder map;
    if (request.value != std::optional<std::string>("PING")) {
        const auto count = [](std::size_t n) { return static_cast<std::int64_t>(n); };
        map.open("messaging_threadpoolstats");
        map.add("messaging.threadpool.maximum_pool_size", count(threads));
        map.add("messaging.threadpool.active_count", count(status.running_handlers));
        map.close();
        map.open("message_listeners_by_name");
        for (const auto& [topic, names] : status.listeners) {
            map.open_array(topic);
            for (const auto& name : names) map.push(name);
            map.close();
        }
        map.close();
        map.add("messaging.changestream", !status.polling_only);
        map.add("messaging.multithreadded", threads > 1);
        map.add("messaging.window_size", static_cast<std::int32_t>(options.window));
        map.add("messaging.pause", static_cast<std::int32_t>(std::min<std::int64_t>(
                                       options.poll_pause.count(), INT32_MAX)));
        map.add("messaging.time_till_recieved",
                std::max<std::int64_t>(0, now_millis - request.timestamp));
        map.add("messaging.waiting_for_answers", count(status.waiting_for_answers));
        map.add("messaging.waiting_for_answers_total", count(status.waiting_for_answers));
        map.add("messaging.in_progress", count(status.in_progress));
        map.add("messaging.processing", count(status.running_handlers));
        // Ours.
        map.add("angelia.layout", status.layout);
        map.open("angelia.counters");
        for (const auto& [name, value] : status.counters) map.add(name, value);
        map.close();
    }
    Reply reply = Reply::make_answer(request.msg).with_map(map.take());
    if (request.value) reply = std::move(reply).with_value(*request.value);
    return reply;
}

}  // namespace angelia::messaging
