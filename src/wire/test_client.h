// A blocking client for tests: raw bytes over a loopback socket, with a deadline on every wait.
#pragma once

#include "wire/codec.h"
#include "wire/compression.h"

#include <angelia/bson/builder.h>
#include <angelia/bson/validate.h>

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>

namespace angelia::wire::test {

inline constexpr int kWaitMillis = 20'000;

struct Received {
    Header header;
    std::uint32_t flags = 0;
    bson::Document body;
    std::optional<Compressor> packed_with;  ///< it came in OP_COMPRESSED
};

class Client {
  public:
    explicit Client(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
    }
    ~Client() { ::close(fd_); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    bool connected() const { return connected_; }

    void send_bytes(std::string_view bytes) {
        while (!bytes.empty()) {
            const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n <= 0) return;  // the other side closed; the read that follows shows it
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
    }
    std::int32_t send_command(const bson::Document& body, std::uint32_t flags = 0,
                              const std::vector<Section>& sections = {}) {
        send_bytes(encode_request(++last_id_, flags, body, sections));
        return last_id_;
    }
    std::int32_t send_packed(Compressor compressor, const bson::Document& body,
                             std::uint32_t flags = 0) {
        const std::string plain = encode_request(++last_id_, flags, body);
        send_bytes(pack_message(compressor, plain, "").value());
        return last_id_;
    }
    /// The next reply; nothing when the connection was closed or nothing came in time.
    std::optional<Received> receive(int wait_ms = kWaitMillis) {
        if (!fill(kHeaderBytes, wait_ms)) return std::nullopt;
        Received r;
        r.header = read_header(buffer_);
        if (!length_allowed(r.header) || !fill(static_cast<std::size_t>(r.header.length), wait_ms))
            return std::nullopt;
        if (r.header.op_code == opcode::kCompressed) {
            const auto length = static_cast<std::size_t>(r.header.length);
            const auto unpacked = unpack_message(std::string_view(buffer_).substr(0, length));
            if (!unpacked) return std::nullopt;
            buffer_.replace(0, length, unpacked->view());
            r.packed_with = unpacked->compressor;
            r.header = read_header(buffer_);
        }
        const std::size_t at =
            r.header.op_code == opcode::kReply ? kReplyPrefixBytes : kMessagePrefixBytes;
        std::memcpy(&r.flags, buffer_.data() + 16, 4);
        const auto view = bson::validate(std::string_view(buffer_).substr(at));
        if (!view) return std::nullopt;
        r.body = bson::Document(*view);
        buffer_.erase(0, static_cast<std::size_t>(r.header.length));
        return r;
    }
    bson::Document command(const bson::Document& body) {
        send_command(body);
        auto r = receive();
        EXPECT_TRUE(r.has_value()) << "no reply";
        return r ? std::move(r->body) : bson::Document();
    }
    bool closed_by_server() {
        char c;
        pollfd p{fd_, POLLIN, 0};
        return ::poll(&p, 1, kWaitMillis) == 1 && ::recv(fd_, &c, 1, MSG_PEEK) <= 0;
    }
    /// True while nothing arrives for `ms`.
    bool silent(int ms) {
        pollfd p{fd_, POLLIN, 0};
        return buffer_.empty() && ::poll(&p, 1, ms) == 0;
    }
    void stop_sending() { ::shutdown(fd_, SHUT_WR); }

  private:
    bool fill(std::size_t bytes, int wait_ms) {
        while (buffer_.size() < bytes) {
            pollfd p{fd_, POLLIN, 0};
            if (::poll(&p, 1, wait_ms) != 1) return false;
            char part[65536];
            const auto n = ::recv(fd_, part, sizeof part, 0);
            if (n <= 0) return false;
            buffer_.append(part, static_cast<std::size_t>(n));
        }
        return true;
    }
    int fd_;
    bool connected_ = false;
    std::int32_t last_id_ = 100;
    std::string buffer_;
};

}  // namespace angelia::wire::test
