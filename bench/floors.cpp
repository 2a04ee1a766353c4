#include "floors.h"

#include "sockets.h"

#include "cli/child_process.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace angelia::bench {
namespace {

using Clock_ = std::chrono::steady_clock;

Result<Quantiles> hops(int fd, std::size_t count, double per_second) {
    std::string frame = payload(kPayloadBytes, 1);
    std::vector<double> samples;
    const Pace pace(per_second);
    for (std::size_t i = 0; i < count; ++i) {
        pace.wait_for(i);
        const auto t = Clock_::now();
        if (!write_all(fd, frame.data(), frame.size()) || !read_all(fd, frame.data(), frame.size()))
            return {ErrorCode::SocketException, "the floor's server went away"};
        samples.push_back(std::chrono::duration<double, std::micro>(Clock_::now() - t).count());
    }
    return quantiles(std::move(samples));
}

Result<double> sync_floor(const std::string& folder) {
    const std::string path = folder + "/sync-floor";
    const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return {ErrorCode::FileNotOpen,
                fmt::format("cannot write {}: {}", path, std::strerror(errno))};
    const std::string block = payload(kPayloadBytes, 2);
    std::vector<double> samples;
    bool good = true;
    for (int i = 0; i < 500 && good; ++i) {
        const auto t = Clock_::now();
        good = write_all(fd, block.data(), block.size()) && ::fdatasync(fd) == 0;
        samples.push_back(std::chrono::duration<double, std::micro>(Clock_::now() - t).count());
    }
    ::close(fd);
    ::unlink(path.c_str());
    if (!good) return {ErrorCode::FileStreamFailed, fmt::format("writing {} failed", path)};
    return quantiles(std::move(samples)).p50_us;
}

}  // namespace

namespace {

/// Listens on a free port of loopback and prints it; -1 when that fails.
int listen_and_print_port() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(listener, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 ||
        ::listen(listener, 2) != 0)
        return -1;
    socklen_t size = sizeof a;
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&a), &size);
    fmt::print("{}\n", ntohs(a.sin_port));
    std::fflush(stdout);
    return listener;
}

}  // namespace

int floor_echo() {
    const int listener = listen_and_print_port();
    if (listener < 0) return 1;
    const int end = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    const int one = 1;
    ::setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    std::string frame(kPayloadBytes, '\0');
    while (read_all(end, frame.data(), frame.size()) &&
           write_all(end, frame.data(), frame.size())) {
    }
    return 0;
}

int floor_server() {
    const int listener = listen_and_print_port();
    if (listener < 0) return 1;
    int ends[2];
    const int one = 1;
    for (int& end : ends) {
        end = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        ::setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < 2; ++i) {
        epoll_event e{};
        e.events = EPOLLIN;
        e.data.u32 = static_cast<std::uint32_t>(i);
        ::epoll_ctl(epoll, EPOLL_CTL_ADD, ends[i], &e);
    }
    std::string frame(kPayloadBytes, '\0');
    for (;;) {
        epoll_event e{};
        if (::epoll_wait(epoll, &e, 1, -1) < 1) continue;
        const std::uint32_t from = e.data.u32;
        if (!read_all(ends[from], frame.data(), frame.size()) ||
            !write_all(ends[1 - from], frame.data(), frame.size()))
            return 0;
    }
}

int floor_responder(int port) {
    const int fd = connect_to(port);
    if (fd < 0) return 1;
    std::string frame(kPayloadBytes, '\0');
    while (read_all(fd, frame.data(), frame.size()) && write_all(fd, frame.data(), frame.size())) {
    }
    return 0;
}

Result<Floors> measure_floors(const std::string& folder) {
    Floors floors;
    std::vector<Quantiles> paced, back_to_back, two;
    std::vector<double> syncs;
    for (int i = 0; i < kRepetitions; ++i) {
        ANGELIA_TRY_ASSIGN(auto server, cli::ChildProcess::start_self({"floor-server"}));
        ANGELIA_TRY_ASSIGN(const std::string port, server.read_line(milliseconds(5000)));
        ANGELIA_TRY_ASSIGN(auto responder,
                           cli::ChildProcess::start_self({"floor-responder", port}));
        const int fd = connect_to(std::stoi(port));
        if (fd < 0) return {ErrorCode::SocketException, "the floor's server does not accept"};
        auto first = hops(fd, 200, 0);  // warm-up; also waits for the responder
        if (first) first = hops(fd, 200, 100);
        if (first) paced.push_back(*first);
        auto second = first ? hops(fd, 5000, 0) : first;
        if (second) back_to_back.push_back(*second);
        ::close(fd);
        if (!second) return second.error();
        ANGELIA_TRY_ASSIGN(auto echo, cli::ChildProcess::start_self({"floor-echo"}));
        ANGELIA_TRY_ASSIGN(const std::string echo_port, echo.read_line(milliseconds(5000)));
        const int echo_fd = connect_to(std::stoi(echo_port));
        if (echo_fd < 0) return {ErrorCode::SocketException, "the floor's echo does not accept"};
        auto round_trips = hops(echo_fd, 5000, 0);
        ::close(echo_fd);
        if (!round_trips) return round_trips.error();
        two.push_back(*round_trips);
        ANGELIA_TRY_ASSIGN(const double sync, sync_floor(folder));
        syncs.push_back(sync);
    }
    floors.hops4_paced = median(paced);
    floors.hops4_back_to_back = median(back_to_back);
    floors.hops2_back_to_back = median(two);
    floors.sync_us = median(syncs);
    return floors;
}

}  // namespace angelia::bench
