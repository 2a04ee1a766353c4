#include "wire/server.h"
#include "store_embedded/embedded_store.h"
#include "store_mongo/driver_log.h"

#include <angelia/angelia.h>

#include <fmt/format.h>

namespace angelia {
namespace {

class EmbeddedServer final : public Server {
  public:
    EmbeddedServer(std::shared_ptr<engine::Engine> engine, std::unique_ptr<wire::Server> server)
        : engine_(std::move(engine)), server_(std::move(server)) {}
    ~EmbeddedServer() override { server_->stop(); }
    std::uint16_t port() const override { return server_->port(); }
    std::string uri() const override { return server_->uri(); }
    void stop() override { server_->stop(); }

  private:
    std::shared_ptr<engine::Engine>
        engine_;  // shared with the store's adapter; declared first: the server goes before it
    std::unique_ptr<wire::Server> server_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const Store& store, ServerOptions options) {
    const std::shared_ptr<engine::Engine> engine = store_embedded::engine_of(store);
    if (engine == nullptr) {
        return {ErrorCode::CommandNotSupported,
                fmt::format("only an embedded store can be served, not {}", store.describe())};
    }
    wire::ServerOptions wire_options;
    wire_options.bind = options.bind;
    wire_options.port = options.port;
    wire_options.enable_test_commands = options.enable_test_commands;
    wire_options.log = options.log;
    ANGELIA_TRY_ASSIGN(auto server, wire::Server::start(*engine, std::move(wire_options)));
    return std::unique_ptr<Server>(std::make_unique<EmbeddedServer>(engine, std::move(server)));
}

void set_mongo_driver_log(LogFunction log) { store::mongo::set_driver_log(std::move(log)); }

}  // namespace angelia
