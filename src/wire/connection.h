// One client connection: reads messages, has them executed one at a time, writes the replies in
// order. Internal to this folder.
#pragma once

#include "wire/codec.h"
#include "wire/compression.h"
#include "wire/io_thread.h"
#include "wire/receive_buffer.h"

#include <angelia/base/log.h>

#include <asio/ip/tcp.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace angelia::wire {

/// Lives on one IoThread; everything runs there, except where a function says "any thread".
class Connection : public std::enable_shared_from_this<Connection> {
  public:
    struct Parts {
        asio::ip::tcp::socket socket;  ///< of `thread`'s loop
        std::shared_ptr<IoThread> thread;
        std::shared_ptr<IoThread> packer;  ///< packs and unpacks what is large, for all connections
        std::shared_ptr<engine::command::CommandService> service;  ///< shared by all connections
        std::shared_ptr<engine::command::Connection>
            state;  ///< shared with commands that are still running
        LogFunction log;
        std::function<void(Connection&)> closed;  ///< once, on the connection's thread
    };
    explicit Connection(Parts parts);

    void start();      ///< any thread
    void shut_down();  ///< any thread: ends once the running command is answered
    void abort();      ///< any thread: ends now
    IoThread& thread() { return *thread_; }

  private:
    void read();
    void on_read(const asio::error_code& failed, std::size_t bytes);
    std::string_view next_message();
    void process();
    struct Outgoing;
    void execute(std::string_view bytes);
    void unpack_elsewhere(std::string_view bytes);
    void execute_unpacked(Result<Unpacked> unpacked);
    void execute_plain(std::string_view bytes, std::shared_ptr<const void> holder);
    void refuse(const Message& message);
    void give_up(const Error& reason);
    void on_reply(std::uint64_t ticket, engine::command::Reply reply);  ///< any thread
    void deliver(std::uint64_t ticket, engine::command::Reply reply);
    void pack_elsewhere(std::uint64_t ticket, engine::command::Reply reply);
    Outgoing frame(bson::Document body, bool more_to_come);
    void enqueue(bson::Document body, bool more_to_come);
    void push(Outgoing reply);
    void flush();
    void close();
    bool may_read_ahead() const;

    struct Outgoing {
        ReplyPrefix prefix;
        bson::Document body;
        std::string packed;  // in place of both, when the request came packed
        std::string_view front() const { return packed.empty() ? prefix.view() : packed; }
        std::string_view back() const { return packed.empty() ? body.bytes() : std::string_view(); }
        std::size_t size() const { return front().size() + back().size(); }
        void pack(Compressor compressor);
    };

    asio::ip::tcp::socket socket_;
    const std::shared_ptr<IoThread>
        thread_;  // shared: a late reply may come after the server is gone
    const std::shared_ptr<IoThread> packer_;  // shared by all connections
    const std::shared_ptr<engine::command::CommandService> service_;
    const std::shared_ptr<engine::command::Connection> state_;
    const LogFunction log_;
    const std::function<void(Connection&)> on_closed_;

    ReceiveBuffer in_;
    std::size_t message_bytes_ =
        0;  // length of the message that begins the unread bytes, once known
    std::deque<Outgoing> out_;
    std::size_t out_bytes_ = 0;  // not yet handed to the kernel
    std::size_t out_sent_ = 0;   // bytes of the first one that are
    bool reading_ = false;
    bool writing_ = false;  // waits until the kernel takes more
    bool processing_ =
        false;  // inside process(): replies are gathered, the next message is not begun from below
    bool running_ = false;  // a command has not been answered
    bool closing_ = false;  // close once everything is written
    bool closed_ = false;

    std::uint64_t ticket_ = 0;   // of the running command; replies to an older one are dropped
    bool legacy_query_ = false;  // how the running command came
    bool answer_wanted_ = true;
    std::optional<Compressor> pack_with_;  // the running command came so, and its reply may
    std::int32_t response_to_ = 0;
    std::int32_t next_request_id_ = 1;
};

}  // namespace angelia::wire
