// What the demo writes beside its messages, in collections of its own, so that the proof can be
// read from the store.
#pragma once

#include <angelia/base/result.h>
#include <angelia/messaging/message.h>
#include <angelia/store/store.h>

#include <string>
#include <vector>

namespace angelia::cli::demo {

inline constexpr const char* kPublished =
    "demo_published";  ///< one per acknowledged publish: {_id: message, kind, topic}
inline constexpr const char* kEffects = "demo_effects";  ///< one per execution, never deduplicated
inline constexpr const char* kAnswered = "demo_answered";  ///< {_id: request} when its answer came
inline constexpr const char* kKills = "demo_kills";  ///< {_id: node, at}, written before the kill
inline constexpr const char* kNodes = "demo_nodes";  ///< {_id: node, role}

enum class Kind { Broadcast, Work, Request };
const char* kind_name(Kind kind);
/// Each kind has topics of its own, so that only its listeners get it: T, T.work, T.ask.
std::string topic_of(const std::string& topic, Kind kind);

struct PublishedRecord {
    bson::ObjectId message;
    Kind kind = Kind::Broadcast;
};
struct EffectRecord {
    bson::ObjectId message;
    std::string node;
    std::int32_t attempt = 0;
    std::int64_t at_ms = 0;            ///< when the execution began
    std::int64_t leased_until_ms = 0;  ///< of the claim it ran under; 0: not leased
};
struct KillRecord {
    std::string node;
    std::int64_t at_ms = 0;
};
struct Records {
    std::vector<PublishedRecord> published;
    std::vector<EffectRecord> effects;
    std::vector<bson::ObjectId> answered;
    std::vector<KillRecord> kills;
    std::vector<std::string> broadcast_listeners;
};

/// `with_payload`: the map_value as it arrived goes along (tests compare its bytes).
bson::Document effect_document(const Message& message, const std::string& node, std::int64_t at_ms,
                               bool with_payload = false);
Result<Records> load_records(store::Store& store);

}  // namespace angelia::cli::demo
