#include "faulty_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace angelia::test_support {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kHeaderBytes = 16;
constexpr std::int32_t kOpMsg = 2013;
constexpr auto kWaitMax = std::chrono::seconds(10);
constexpr int kPollMs = 5;  // how late a delayed or released reply may go on

std::int32_t int32_at(std::string_view bytes, std::size_t at) {
    std::int32_t v;
    std::memcpy(&v, bytes.data() + at, sizeof v);
    return v;
}

void put_int32(std::string& bytes, std::int32_t v) {
    bytes.append(reinterpret_cast<const char*>(&v), sizeof v);
}

/// Body document of an OP_MSG, if `frame` is one that begins with it.
std::optional<bson::DocumentView> body_of(std::string_view frame) {
    if (frame.size() < kHeaderBytes + 10 || int32_at(frame, 12) != kOpMsg ||
        frame[kHeaderBytes + 4] != 0)
        return std::nullopt;
    return bson::DocumentView(frame.substr(kHeaderBytes + 5));
}

std::string message(std::int32_t request_id, std::int32_t response_to, std::int32_t flags,
                    bson::DocumentView body) {
    std::string out;
    put_int32(out, static_cast<std::int32_t>(kHeaderBytes + 5 + body.size_bytes()));
    put_int32(out, request_id);
    put_int32(out, response_to);
    put_int32(out, kOpMsg);
    put_int32(out, flags);
    out.push_back(0);
    out.append(body.bytes());
    return out;
}

/// Takes the first whole frame out of `buffer`.
std::optional<std::string> take_frame(std::string& buffer) {
    if (buffer.size() < kHeaderBytes) return std::nullopt;
    const auto size = static_cast<std::size_t>(int32_at(buffer, 0));
    if (buffer.size() < size) return std::nullopt;
    std::string frame = buffer.substr(0, size);
    buffer.erase(0, size);
    return frame;
}

bool send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

bool receive(int fd, std::string& buffer) {
    char chunk[65536];
    const auto n = ::recv(fd, chunk, sizeof chunk, 0);
    if (n <= 0) return false;
    buffer.append(chunk, static_cast<std::size_t>(n));
    return true;
}

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

void no_delay(int fd) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

struct Shared {
    std::uint16_t upstream = 0;
    mutable std::mutex mutex;
    mutable std::condition_variable changed;
    FaultyProxy::Rule rule;
    FaultyProxy::ReplyFilter filter;
    std::vector<FaultyProxy::Command> commands;
    std::atomic<bool> stopping{false};
    std::atomic<bool> refusing{false};
    std::atomic<std::uint64_t> cut_epoch{0};
    std::atomic<std::uint64_t> release_epoch{0};
    std::atomic<int> open{0};
};

FaultyProxy::Command copy(const FaultyProxy::Command& c) {
    return {c.name, c.body.copy(), c.connection};
}

/// One client's connection, on a thread of its own.
class Conversation {
  public:
    Conversation(Shared& shared, int client, int number)
        : shared_(shared), client_(client), number_(number), cut_epoch_(shared.cut_epoch) {
        ++shared_.open;
    }
    ~Conversation() {
        if (server_ >= 0) ::close(server_);
        ::close(client_);
        --shared_.open;
    }

    void run() {
        const auto address = loopback(shared_.upstream);
        server_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (server_ < 0 ||
            ::connect(server_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
            return;
        no_delay(server_);
        while (!shared_.stopping && shared_.cut_epoch == cut_epoch_ && step()) {
        }
    }

  private:
    struct Pending {
        FaultyProxy::Command command;
        FaultyProxy::Fault fault;
    };
    struct Outgoing {
        std::string bytes;
        SteadyClock::time_point due;
        std::uint64_t needs_release =
            0;  ///< goes once the release epoch is above this - 1; 0 = at once
    };

    bool step() {
        pollfd fds[2] = {{client_, POLLIN, 0}, {server_, POLLIN, 0}};
        if (::poll(fds, 2, kPollMs) < 0) return false;
        if (fds[0].revents != 0 && !receive(client_, from_client_)) return false;
        if (fds[1].revents != 0 && !receive(server_, from_server_)) return false;
        while (auto frame = take_frame(from_client_)) {
            if (!request(*frame)) return false;
        }
        while (auto frame = take_frame(from_server_)) {
            if (!reply(*frame)) return false;
        }
        return flush();
    }

    bool request(const std::string& frame) {
        const auto body = body_of(frame);
        if (!body || body->empty()) return send_all(server_, frame);
        Pending pending;
        pending.command = {std::string(body->begin()->key), bson::Document(*body), number_};
        FaultyProxy::Rule rule;
        {
            const std::lock_guard<std::mutex> lock(shared_.mutex);
            shared_.commands.push_back(copy(pending.command));
            rule = shared_.rule;
            shared_.changed.notify_all();
        }
        if (rule) pending.fault = rule(pending.command);
        const std::int32_t id = int32_at(frame, 4);
        if (pending.fault.kind == FaultyProxy::Fault::Kind::Cut) return false;
        if (pending.fault.kind == FaultyProxy::Fault::Kind::Answer) {
            queue(message(id, id, 0, pending.fault.answer), pending.fault.delay);
            return true;
        }
        pending_.emplace(id, std::move(pending));
        return send_all(server_, frame);
    }

    bool reply(const std::string& frame) {
        using Kind = FaultyProxy::Fault::Kind;
        const auto at = pending_.find(int32_at(frame, 8));
        if (at == pending_.end()) {
            queue(frame, {});
            return true;
        }
        Pending pending = std::move(at->second);
        pending_.erase(at);
        std::string bytes = filtered(frame, pending.command);
        switch (pending.fault.kind) {
            case Kind::Swallow:
                return true;
            case Kind::CutInside:
                send_all(client_, std::string_view(bytes).substr(0, bytes.size() / 2));
                return false;
            case Kind::StallInside:
                queue(bytes.substr(0, bytes.size() / 2), {});
                outgoing_.push_back({bytes.substr(bytes.size() / 2), SteadyClock::now(),
                                     shared_.release_epoch + 1});
                return true;
            default:
                queue(std::move(bytes), pending.fault.delay);
                return true;
        }
    }

    std::string filtered(const std::string& frame, const FaultyProxy::Command& command) {
        FaultyProxy::ReplyFilter filter;
        {
            const std::lock_guard<std::mutex> lock(shared_.mutex);
            filter = shared_.filter;
        }
        const auto body = body_of(frame);
        if (!filter || !body) return frame;
        return message(int32_at(frame, 4), int32_at(frame, 8), int32_at(frame, kHeaderBytes),
                       filter(command, bson::Document(*body)));
    }

    void queue(std::string bytes, std::chrono::milliseconds delay) {
        outgoing_.push_back({std::move(bytes), SteadyClock::now() + delay, 0});
    }

    /// What is due goes out, in order.
    bool flush() {
        while (!outgoing_.empty()) {
            const Outgoing& next = outgoing_.front();
            if (next.due > SteadyClock::now() || shared_.release_epoch < next.needs_release)
                return true;
            if (!send_all(client_, next.bytes)) return false;
            outgoing_.pop_front();
        }
        return true;
    }

    Shared& shared_;
    const int client_;
    int server_ = -1;
    const int number_;
    const std::uint64_t cut_epoch_;
    std::string from_client_, from_server_;
    std::map<std::int32_t, Pending> pending_;
    std::deque<Outgoing> outgoing_;
};

class ThreadedProxy final : public FaultyProxy {
  public:
    explicit ThreadedProxy(std::uint16_t upstream) {
        shared_.upstream = upstream;
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        auto address = loopback(0);
        socklen_t size = sizeof address;
        ANGELIA_CHECK(listener_ >= 0 &&
                      ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
        ANGELIA_CHECK(::listen(listener_, 64) == 0 &&
                      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
        port_ = ntohs(address.sin_port);
        acceptor_ = std::thread([this] { accept_loop(); });
    }
    ~ThreadedProxy() override {
        shared_.stopping = true;
        acceptor_.join();
        for (auto& t : conversations_) t.join();
        ::close(listener_);
    }

    std::uint16_t port() const override { return port_; }
    void set_rule(Rule rule) override {
        const std::lock_guard<std::mutex> lock(shared_.mutex);
        shared_.rule = std::move(rule);
    }
    void set_reply_filter(ReplyFilter filter) override {
        const std::lock_guard<std::mutex> lock(shared_.mutex);
        shared_.filter = std::move(filter);
    }
    void refuse_connections(bool refused) override { shared_.refusing = refused; }
    void cut_all() override { ++shared_.cut_epoch; }
    void release() override { ++shared_.release_epoch; }
    std::vector<Command> commands(const std::string& name) const override {
        const std::lock_guard<std::mutex> lock(shared_.mutex);
        std::vector<Command> out;
        for (const auto& c : shared_.commands) {
            if (c.name == name) out.push_back(copy(c));
        }
        return out;
    }
    bool wait_commands(const std::string& name, std::size_t count) const override {
        std::unique_lock<std::mutex> lock(shared_.mutex);
        return shared_.changed.wait_for(lock, kWaitMax, [&] {
            std::size_t n = 0;
            for (const auto& c : shared_.commands) n += c.name == name ? 1 : 0;
            return n >= count;
        });
    }
    int open_connections() const override { return shared_.open; }

  private:
    void accept_loop() {
        int number = 0;
        while (!shared_.stopping) {
            pollfd fd{listener_, POLLIN, 0};
            if (::poll(&fd, 1, kPollMs) <= 0) continue;
            const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (client < 0) continue;
            if (shared_.refusing) {
                ::close(client);
                continue;
            }
            no_delay(client);
            conversations_.emplace_back(
                [this, client, n = ++number] { Conversation(shared_, client, n).run(); });
        }
    }

    mutable Shared shared_;
    int listener_ = -1;
    std::uint16_t port_ = 0;
    std::thread acceptor_;
    std::vector<std::thread> conversations_;  // of the acceptor, then of the destructor
};

}  // namespace

std::unique_ptr<FaultyProxy> FaultyProxy::start(std::uint16_t upstream_port) {
    return std::make_unique<ThreadedProxy>(upstream_port);
}

}  // namespace angelia::test_support
