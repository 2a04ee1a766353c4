#include "engine/changes/change_streams.h"

#include "engine/changes/stream_reader.h"

namespace angelia::engine {

ChangeStreams::ChangeStreams(Oplog& oplog, ChangeStreamHooks hooks)
    : hub_(std::make_shared<changes::StreamHub>(oplog, std::move(hooks))) {}

ChangeStreams::~ChangeStreams() { shutdown(); }

Result<std::shared_ptr<ChangeStream>> ChangeStreams::open(const WatchSpec& spec) {
    auto plan = changes::StreamPlan::parse(spec, hub_->store_id());
    if (!plan) {
        if (plan.error().code == ErrorCode::ChangeStreamHistoryLost) hub_->count_history_lost();
        return std::move(plan).error();
    }
    return changes::StreamReader::open(hub_, std::move(plan).value());
}

void ChangeStreams::shutdown() { hub_->shutdown(); }

ChangeStreams::Counters ChangeStreams::counters() const { return hub_->counters(); }

}  // namespace angelia::engine
