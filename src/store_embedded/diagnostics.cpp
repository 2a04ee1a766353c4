#include "store_embedded/diagnostics.h"

#include "engine/command/command.h"
#include "store_embedded/waiter.h"

#include <angelia/bson/builder.h>

namespace angelia::store_embedded {
namespace {

constexpr milliseconds kPatience{30'000};

class EmbeddedDiagnostics final : public store::Diagnostics {
  public:
    explicit EmbeddedDiagnostics(std::shared_ptr<engine::Engine> engine)
        : engine_(std::move(engine)),
          commands_(engine::command::CommandService::create(*engine_)) {}
    ~EmbeddedDiagnostics() override { commands_->begin_shutdown(); }

    Result<bson::Document> run_command(std::string_view db, bson::DocumentView command) override {
        Waiter<bson::Document> waiter;
        engine::command::run_in_process(
            *commands_, db, bson::Document(command),
            [done = waiter.done()](bson::Document reply) { done(std::move(reply)); });
        ANGELIA_TRY_ASSIGN(bson::Document reply, waiter.wait(kPatience));
        if (reply["ok"].to_double().value_or(0) == 1.0) return reply;
        return {static_cast<ErrorCode>(reply["code"].to_int64().value_or(
                    static_cast<std::int64_t>(ErrorCode::UnknownError))),
                std::string(
                    reply["errmsg"].get_string().value_or("the command failed without a text"))};
    }

    Result<double> log_window_hours() override {
        const auto oldest = engine_->oplog().oldest();
        const auto newest = engine_->oplog().newest_durable();
        if (newest < oldest) return 0.0;
        return static_cast<double>(newest.seconds - oldest.seconds) / 3600.0;
    }

    Result<microseconds> write_latency(const store::CollectionName& scratch, int writes) override {
        const engine::Namespace ns{scratch.db, scratch.collection};
        const auto start = std::chrono::steady_clock::now();
        for (std::int32_t i = 0; i < writes; ++i) {
            engine::WriteRequest request;
            request.writes.emplace_back();
            request.writes[0].ns = ns;
            request.writes[0].document = bson::make("_id", bson::ObjectId::generate(), "n", i);
            Waiter<engine::WriteResult> waiter;
            engine_->write(std::move(request), waiter.done());
            ANGELIA_TRY_ASSIGN(engine::WriteResult done, waiter.wait(kPatience));
            if (done.outcomes[0].error) return *std::move(done.outcomes[0].error);
        }
        const auto spent =
            std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - start);
        Waiter<std::int32_t> waiter;
        engine_->drop_collection(ns, waiter.done());
        ANGELIA_TRY(waiter.wait(kPatience));
        return microseconds(writes > 0 ? spent.count() / writes : 0);
    }

  private:
    const std::shared_ptr<engine::Engine> engine_;  ///< shared with the store
    const std::unique_ptr<engine::command::CommandService> commands_;
};

}  // namespace

std::unique_ptr<store::Diagnostics> make_diagnostics(std::shared_ptr<engine::Engine> engine) {
    return std::make_unique<EmbeddedDiagnostics>(std::move(engine));
}

}  // namespace angelia::store_embedded
