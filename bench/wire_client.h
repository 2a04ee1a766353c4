// The least a client can be: one OP_MSG out, one back, over a blocking socket. So that the rows
// about the server measure the server and no driver.
#pragma once

#include <angelia/base/result.h>
#include <angelia/bson/builder.h>

#include <string>

namespace angelia::bench {

/// Not thread-safe. Closed on destruction.
class WireClient {
  public:
    /// To 127.0.0.1. Errors: SocketException.
    static Result<WireClient> connect(int port);
    WireClient(WireClient&& other) noexcept;
    WireClient& operator=(WireClient&&) = delete;
    ~WireClient();

    /// Sends one command (with its $db) and reads the answer. Errors: SocketException,
    /// ProtocolError (an answer that is not OP_MSG), and the code of an answer that is not ok.
    Result<bson::Document> run(const bson::Document& command);

    // -- the two halves, for who has many connections
    Result<void> send(const bson::Document& command);
    Result<bson::Document> receive();
    int socket() const { return fd_; }

  private:
    explicit WireClient(int fd) : fd_(fd) {}
    int fd_ = -1;
    std::int32_t request_ = 0;
    std::string out_;  ///< reused
};

}  // namespace angelia::bench
