#include "wire/server.h"

#include "wire/compression.h"
#include "wire/connection.h"

#include <asio/ip/address.hpp>
#include <asio/steady_timer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <set>
#include <vector>

namespace angelia::wire {
namespace {

using asio::ip::tcp;

constexpr std::chrono::milliseconds kAcceptPause{
    100};  // after an error such as "too many open files"
constexpr int kListenBacklog = 511;

std::string show_endpoint(const tcp::endpoint& endpoint) {
    const auto address = endpoint.address();
    return address.is_v6() ? fmt::format("[{}]:{}", address.to_string(), endpoint.port())
                           : fmt::format("{}:{}", address.to_string(), endpoint.port());
}

Result<asio::ip::address> loopback_address(const std::string& bind) {
    asio::error_code failed;
    const auto address = bind == "localhost" ? asio::ip::address(asio::ip::address_v4::loopback())
                                             : asio::ip::make_address(bind, failed);
    if (failed)
        return Error(
            ErrorCode::BadValue,
            fmt::format("'{}' is not an IP address; 127.0.0.1, ::1 and localhost are allowed",
                        bind));
    if (!address.is_loopback()) {
        return Error(ErrorCode::CommandNotSupported,
                     fmt::format("refusing to listen on {}: this server has no authentication yet, "
                                 "so anybody who reaches that address could read and change "
                                 "everything; bind to a loopback address (127.0.0.1 or ::1) and "
                                 "use a tunnel from other machines",
                                 bind));
    }
    return address;
}

class ServerImpl final : public Server {
  public:
    ServerImpl(std::shared_ptr<engine::command::CommandService> service, ServerOptions options,
               std::string set)
        : service_(std::move(service)),
          options_(std::move(options)),
          set_(std::move(set)),
          accept_thread_(std::make_shared<IoThread>()),
          acceptor_(accept_thread_->context()),
          accept_again_(accept_thread_->context()) {}
    ~ServerImpl() override { stop(); }

    Result<void> listen() {
        ANGELIA_TRY_ASSIGN(const auto address, loopback_address(options_.bind));
        const tcp::endpoint wanted(address, options_.port);
        asio::error_code failed;
        acceptor_.open(wanted.protocol(), failed);
        if (!failed) acceptor_.set_option(tcp::acceptor::reuse_address(true), failed);
        if (!failed) acceptor_.bind(wanted, failed);
        if (!failed) acceptor_.listen(kListenBacklog, failed);
        if (failed == asio::error::address_in_use) {
            return Error(ErrorCode::FileStreamFailed,
                         fmt::format("port {} on {} is in use by another program; choose another "
                                     "port, or 0 for a free one",
                                     options_.port, options_.bind));
        }
        if (failed)
            return Error(
                ErrorCode::FileStreamFailed,
                fmt::format("cannot listen on {}: {}", show_endpoint(wanted), failed.message()));
        endpoint_ = acceptor_.local_endpoint();
        advertised_ = options_.advertise_host;
        if (advertised_.empty())
            advertised_ = options_.bind == "localhost" ? fmt::format("localhost:{}", port())
                                                       : show_endpoint(endpoint_);

        const int cores = static_cast<int>(std::thread::hardware_concurrency());
        const int count = options_.threads > 0 ? options_.threads : std::max(2, cores);
        for (int i = 0; i < count; ++i) threads_.push_back(std::make_shared<IoThread>());
        for (const auto& thread : threads_) thread->start();
        packer_->start();
        accept_thread_->start();
        accept_thread_->post([this] { accept(); });
        return {};
    }

    std::uint16_t port() const override { return endpoint_.port(); }
    std::string uri() const override {
        return fmt::format("mongodb://{}/?replicaSet={}", advertised_, set_);
    }
    int connection_count() const override {
        const std::lock_guard lock(mutex_);
        return static_cast<int>(connections_.size());
    }

    void stop() override {
        {
            const std::lock_guard lock(mutex_);
            if (std::exchange(stopped_, true)) return;
        }
        accept_thread_->post([this] {
            asio::error_code ignored;  // nothing to do about a listener that cannot be closed
            acceptor_.close(ignored);
            accept_again_.cancel();
        });
        accept_thread_->stop();
        service_->begin_shutdown();
        {
            std::unique_lock lock(mutex_);
            for (const auto& connection : connections_) connection->shut_down();
            if (!all_closed_.wait_for(lock, options_.drain_max,
                                      [this] { return connections_.empty(); })) {
                options_.log(
                    LogLevel::Warning,
                    fmt::format("{} connections still had running commands after {} ms and are cut",
                                connections_.size(), options_.drain_max.count()));
                for (const auto& connection : connections_) connection->abort();
            }
        }
        packer_->stop();
        for (const auto& thread : threads_) thread->stop();
    }

  private:
    void accept() {
        IoThread& target = least_busy();
        acceptor_.async_accept(
            target.context(), [this, &target](const asio::error_code& failed, tcp::socket socket) {
                if (!acceptor_.is_open()) return;
                if (failed) {
                    options_.log(LogLevel::Warning,
                                 fmt::format("cannot accept a connection: {}", failed.message()));
                    accept_again_.expires_after(kAcceptPause);
                    accept_again_.async_wait([this](const asio::error_code& cancelled) {
                        if (!cancelled && acceptor_.is_open()) accept();
                    });
                    return;
                }
                welcome(std::move(socket), target);
                accept();
            });
    }

    IoThread& least_busy() {
        return **std::min_element(
            threads_.begin(), threads_.end(),
            [](const auto& a, const auto& b) { return a->connections < b->connections; });
    }

    void welcome(tcp::socket socket, IoThread& target) {
        asio::error_code failed;
        socket.set_option(tcp::no_delay(true), failed);
        if (!failed) socket.non_blocking(true, failed);
        const auto peer = failed ? tcp::endpoint() : socket.remote_endpoint(failed);
        if (failed) return;  // it has gone already

        auto state = std::make_shared<engine::command::Connection>();
        state->id = ++last_id_;
        state->peer = show_endpoint(peer);
        state->advertised_host = advertised_;
        state->compressors = compressor_names();
        const auto thread = *std::find_if(threads_.begin(), threads_.end(),
                                          [&target](const auto& t) { return t.get() == &target; });
        state->post = [thread](std::function<void()> task) {
            return thread->post(std::move(task));
        };
        auto connection = std::make_shared<Connection>(
            Connection::Parts{std::move(socket), thread, packer_, service_, std::move(state),
                              options_.log, [this](Connection& closed) { forget(closed); }});
        {
            const std::lock_guard lock(mutex_);
            if (stopped_) return;
            if (static_cast<int>(connections_.size()) >= options_.connections_max) {
                options_.log(
                    LogLevel::Warning,
                    fmt::format(
                        "connection from {} refused: {} connections are open, no more are allowed",
                        show_endpoint(peer), options_.connections_max));
                return;
            }
            connections_.insert(connection);
        }
        ++target.connections;
        service_->connections_current.fetch_add(1, std::memory_order_relaxed);
        service_->connections_total.fetch_add(1, std::memory_order_relaxed);
        connection->start();
    }

    void forget(Connection& closed) {
        --closed.thread().connections;
        service_->connections_current.fetch_sub(1, std::memory_order_relaxed);
        const std::lock_guard lock(mutex_);
        connections_.erase(closed.shared_from_this());
        if (connections_.empty()) all_closed_.notify_all();
    }

    // constant after listen()
    const std::shared_ptr<engine::command::CommandService>
        service_;  // shared with connections and whoever opened the server
    const ServerOptions options_;
    const std::string set_;
    tcp::endpoint endpoint_;
    std::string advertised_;
    std::vector<std::shared_ptr<IoThread>> threads_;
    const std::shared_ptr<IoThread> packer_ = std::make_shared<IoThread>();

    // the accepting thread's own
    const std::shared_ptr<IoThread> accept_thread_;
    tcp::acceptor acceptor_;
    asio::steady_timer accept_again_;
    std::int32_t last_id_ = 0;

    mutable std::mutex mutex_;
    std::set<std::shared_ptr<Connection>>
        connections_;  // guarded by mutex_; shared with the connections' own pending operations
    bool stopped_ = false;  // guarded by mutex_
    std::condition_variable all_closed_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::open(
    std::shared_ptr<engine::command::CommandService> service, ServerOptions options,
    std::string replica_set_name) {
    auto server = std::make_unique<ServerImpl>(std::move(service), std::move(options),
                                               std::move(replica_set_name));
    ANGELIA_TRY(server->listen());
    return std::unique_ptr<Server>(std::move(server));
}

}  // namespace angelia::wire
