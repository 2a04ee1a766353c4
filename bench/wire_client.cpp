#include "wire_client.h"

#include "sockets.h"

#include <angelia/bson/validate.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <unistd.h>

namespace angelia::bench {
namespace {

constexpr std::int32_t kOpMsg = 2013;
constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kBeforeBodyBytes = kHeaderBytes + 4 + 1;  // flags, kind of the section
constexpr std::int32_t kMessageBytesMax = 48'000'000;

Error lost(const char* what) {
    return {ErrorCode::SocketException,
            fmt::format("the server's connection failed while {}: {}", what, std::strerror(errno))};
}

}  // namespace

Result<WireClient> WireClient::connect(int port) {
    const int fd = connect_to(port);
    if (fd < 0) return lost("connecting");
    return WireClient(fd);
}

WireClient::WireClient(WireClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), request_(other.request_), out_(std::move(other.out_)) {}

WireClient::~WireClient() {
    if (fd_ >= 0) ::close(fd_);
}

Result<void> WireClient::send(const bson::Document& command) {
    const auto body = command.bytes();
    const std::int32_t header[4] = {static_cast<std::int32_t>(kBeforeBodyBytes + body.size()),
                                    ++request_, 0, kOpMsg};
    out_.assign(reinterpret_cast<const char*>(header), sizeof header);
    out_.append(5, '\0');
    out_.append(body);
    if (!write_all(fd_, out_.data(), out_.size())) return lost("sending");
    return {};
}

Result<bson::Document> WireClient::receive() {
    char before[kBeforeBodyBytes];
    if (!read_all(fd_, before, sizeof before)) return lost("waiting for an answer");
    std::int32_t length = 0, opcode = 0;
    std::memcpy(&length, before, 4);
    std::memcpy(&opcode, before + 12, 4);
    if (opcode != kOpMsg || length > kMessageBytesMax ||
        length <= static_cast<std::int32_t>(kBeforeBodyBytes))
        return Error(ErrorCode::ProtocolError,
                     fmt::format("an answer with opcode {} and {} bytes", opcode, length));
    std::string body(static_cast<std::size_t>(length) - kBeforeBodyBytes, '\0');
    if (!read_all(fd_, body.data(), body.size())) return lost("reading an answer");
    auto answer = bson::Document::from_trusted_bytes(std::move(body));
    if (!answer.view()["ok"].truthy())
        return Error(static_cast<ErrorCode>(answer.view()["code"].to_int64().value_or(1)),
                     std::string(answer.view()["errmsg"].get_string().value_or("no message")));
    return answer;
}

Result<bson::Document> WireClient::run(const bson::Document& command) {
    ANGELIA_TRY(send(command));
    return receive();
}

}  // namespace angelia::bench
