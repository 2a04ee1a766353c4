#include "wire/connection.h"

#include <angelia/bson/builder.h>

#include <asio/buffer.hpp>

#include <fmt/format.h>

#include <array>
#include <span>

namespace angelia::wire {
namespace {

constexpr std::size_t kReadAheadBytesMax =
    64 * 1024;  // received behind a running command; then the sender has to wait
constexpr std::size_t kWriteQueueBytesMax =
    1024 * 1024;  // replies not taken by the kernel; then no further command begins
constexpr std::size_t kGatherBytesMax =
    64 * 1024;  // replies to pipelined commands are written together up to here
constexpr std::size_t kGatherRepliesMax = 16;
constexpr std::size_t kPackHereBytesMax =
    64 * 1024;  // half a millisecond for zlib; what is larger would keep other connections waiting

}  // namespace

Connection::Connection(Parts parts)
    : socket_(std::move(parts.socket)),
      thread_(std::move(parts.thread)),
      packer_(std::move(parts.packer)),
      service_(std::move(parts.service)),
      state_(std::move(parts.state)),
      log_(std::move(parts.log)),
      on_closed_(std::move(parts.closed)) {}

void Connection::start() {
    thread_->post([self = shared_from_this()] { self->read(); });
}

void Connection::shut_down() {
    thread_->post([self = shared_from_this()] {
        self->closing_ = true;
        if (!self->running_) self->flush();
    });
}

void Connection::abort() {
    thread_->post([self = shared_from_this()] { self->close(); });
}

bool Connection::may_read_ahead() const { return in_.unread().size() < kReadAheadBytesMax; }

// One read is pending nearly always, also while a command runs: that is how the end of the
// connection is noticed.
void Connection::read() {
    if (reading_ || closed_ || closing_) return;
    if ((running_ || out_bytes_ >= kWriteQueueBytesMax) && !may_read_ahead()) return;
    in_.make_room(message_bytes_);
    reading_ = true;
    socket_.async_read_some(
        asio::buffer(in_.room(), in_.room_bytes()),
        [self = shared_from_this()](const asio::error_code& failed, std::size_t bytes) {
            self->on_read(failed, bytes);
        });
}

void Connection::on_read(const asio::error_code& failed, std::size_t bytes) {
    reading_ = false;
    if (closed_) return;
    if (failed) return close();
    service_->bytes_in.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
    in_.received(bytes);
    process();
}

/// The next message, if it is there as a whole and may begin now; else nothing.
std::string_view Connection::next_message() {
    if (closed_ || closing_ || running_ || out_bytes_ >= kWriteQueueBytesMax) return {};
    const auto unread = in_.unread();
    if (unread.size() < kHeaderBytes) return {};
    const Header header = read_header(unread);
    if (!length_allowed(header)) {
        log_(LogLevel::Warning,
             fmt::format("connection {} from {} ends: a message of {} bytes was announced, 16 to "
                         "{} are allowed",
                         state_->id, state_->peer, header.length, kMessageBytesMax));
        closing_ = true;
        return {};
    }
    message_bytes_ = static_cast<std::size_t>(header.length);
    return unread.size() < message_bytes_ ? std::string_view() : unread.substr(0, message_bytes_);
}

// Executes the complete messages that are there, as long as each is answered at once; the answers
// are written together.
void Connection::process() {
    processing_ = true;
    for (;;) {
        const auto message = next_message();
        if (!message.empty()) execute(message);
        if (message.empty() || out_bytes_ >= kGatherBytesMax) {
            const std::size_t before = out_bytes_;
            flush();
            if (message.empty() && out_bytes_ == before)
                break;  // else there may be room for another one
        }
    }
    processing_ = false;
    read();
}

void Connection::execute(std::string_view bytes) {
    in_.consume(bytes.size());
    message_bytes_ = 0;
    service_->requests.fetch_add(1, std::memory_order_relaxed);
    pack_with_.reset();
    if (read_header(bytes).op_code != opcode::kCompressed) return execute_plain(bytes, in_.share());
    if (announced_bytes(bytes) > kPackHereBytesMax) return unpack_elsewhere(bytes);
    execute_unpacked(unpack_message(bytes));
}

// Meanwhile this connection counts as running a command: nothing else of it begins.
void Connection::unpack_elsewhere(std::string_view bytes) {
    running_ = true;
    const std::uint64_t ticket = ++ticket_;
    const bool posted =
        packer_->post([self = shared_from_this(), ticket, bytes, holder = in_.share()] {
            auto unpacked = std::make_shared<Result<Unpacked>>(unpack_message(bytes));
            self->thread_->post([self, ticket, unpacked] {
                if (self->closed_ || ticket != self->ticket_) return;
                self->running_ = false;
                self->execute_unpacked(std::move(*unpacked));
                self->process();
            });
        });
    if (!posted) close();
}

void Connection::execute_unpacked(Result<Unpacked> unpacked) {
    // Whether an answer is wanted stands in what cannot be read: the connection has to end.
    if (!unpacked) return give_up(unpacked.error());
    pack_with_ = unpacked->compressor;
    const auto bytes = unpacked->view();
    execute_plain(bytes, std::move(unpacked->bytes));
}

void Connection::execute_plain(std::string_view bytes, std::shared_ptr<const void> holder) {
    Message message = parse_message(bytes);
    legacy_query_ = message.legacy_query;
    answer_wanted_ = !message.more_to_come;
    response_to_ = message.header.request_id;
    if (message.error) return refuse(message);
    if (legacy_query_ || !may_be_packed((*message.body.begin()).key)) pack_with_.reset();

    engine::command::Request request;
    request.body = message.body;
    request.sequences = std::move(message.sequences);
    request.database = std::move(message.database);
    request.bytes = std::move(holder);
    request.unacknowledged = message.more_to_come;
    request.exhaust_allowed = message.exhaust_allowed;
    request.legacy_query = message.legacy_query;
    running_ = true;
    const std::uint64_t ticket = ++ticket_;
    service_->run(state_, std::move(request),
                  [self = shared_from_this(), ticket](engine::command::Reply reply) {
                      self->on_reply(ticket, std::move(reply));
                  });
}

void Connection::give_up(const Error& reason) {
    closing_ = true;
    log_(LogLevel::Warning,
         fmt::format("connection {} from {} ends: {}", state_->id, state_->peer, reason.message));
}

void Connection::refuse(const Message& message) {
    if (message.close) give_up(*message.error);
    if (message.answerable && answer_wanted_) enqueue(error_document(*message.error), false);
}

void Connection::on_reply(std::uint64_t ticket, engine::command::Reply reply) {
    // Inside our own process() the answer is taken as it comes. From everywhere else, also from
    // another connection's command on this very thread, it goes through the loop: that command ends
    // first.
    if (thread_->here() && processing_) return deliver(ticket, std::move(reply));
    thread_->post([self = shared_from_this(), ticket, answer = std::move(reply)]() mutable {
        self->deliver(ticket, std::move(answer));
        if (!self->closed_) self->process();
    });
}

void Connection::deliver(std::uint64_t ticket, engine::command::Reply reply) {
    if (closed_ || !running_ || ticket != ticket_) return;
    const bool large = reply.body.size_bytes() > kPackHereBytesMax;
    if (large && pack_with_ && reply.send && answer_wanted_ && !reply.more_to_come)
        return pack_elsewhere(ticket, std::move(reply));
    if (!reply.more_to_come) running_ = false;
    if (reply.send && answer_wanted_) enqueue(std::move(reply.body), reply.more_to_come);
    if (reply.close_connection) closing_ = true;
}

// The command counts as running until its reply is packed: replies stay in order.
void Connection::pack_elsewhere(std::uint64_t ticket, engine::command::Reply reply) {
    const auto out = std::make_shared<Outgoing>(frame(std::move(reply.body), false));
    const bool posted = packer_->post([self = shared_from_this(), ticket, out,
                                       compressor = *pack_with_, last = reply.close_connection] {
        out->pack(compressor);
        self->thread_->post([self, ticket, out, last] {
            if (self->closed_ || ticket != self->ticket_) return;
            self->running_ = false;
            self->push(std::move(*out));
            if (last) self->closing_ = true;
            self->process();
        });
    });
    if (!posted) close();
}

void Connection::Outgoing::pack(Compressor compressor) {
    auto made = pack_message(compressor, prefix.view(), body.bytes());
    if (!made) return;
    packed = std::move(*made);
    body = bson::Document();
}

void Connection::enqueue(bson::Document body, bool more_to_come) {
    auto reply = frame(std::move(body), more_to_come);
    if (pack_with_) reply.pack(*pack_with_);
    push(std::move(reply));
}

Connection::Outgoing Connection::frame(bson::Document body, bool more_to_come) {
    const std::int32_t id = next_request_id_;
    next_request_id_ = id == INT32_MAX ? 1 : id + 1;
    Outgoing reply;
    if (legacy_query_) {
        const bool failed = !body.view().find("ok").truthy();
        if (failed) {
            bson::Builder b;
            b.add("$err", body["errmsg"]).add_all(body);
            body = b.take();
        }
        reply.prefix = encode_reply_prefix(id, response_to_, failed, body.size_bytes());
    } else {
        reply.prefix = encode_message_prefix(id, response_to_, more_to_come ? flag::kMoreToCome : 0,
                                             body.size_bytes());
    }
    response_to_ = id;  // of a further reply to the same request
    reply.body = std::move(body);
    return reply;
}

void Connection::push(Outgoing reply) {
    out_bytes_ += reply.size();
    out_.push_back(std::move(reply));
}

void Connection::flush() {
    while (!closed_ && !writing_ && !out_.empty()) {
        std::array<asio::const_buffer, 2 * kGatherRepliesMax> parts;
        std::size_t count = 0;
        std::size_t skip = out_sent_;
        for (const auto& reply : out_) {
            if (count == parts.size()) break;
            for (const std::string_view part : {reply.front(), reply.back()}) {
                const std::size_t skipped = std::min(skip, part.size());
                skip -= skipped;
                parts[count++] = asio::buffer(part.data() + skipped, part.size() - skipped);
            }
        }
        asio::error_code failed;
        std::size_t sent = socket_.write_some(std::span(parts.data(), count), failed);
        if (failed == asio::error::would_block || failed == asio::error::try_again) {
            writing_ = true;
            socket_.async_wait(asio::ip::tcp::socket::wait_write,
                               [self = shared_from_this()](const asio::error_code& error) {
                                   self->writing_ = false;
                                   if (error) return self->close();
                                   if (!self->closed_) self->process();
                               });
            return;
        }
        if (failed) return close();
        service_->bytes_out.fetch_add(static_cast<std::int64_t>(sent), std::memory_order_relaxed);
        out_bytes_ -= sent;
        out_sent_ += sent;
        while (!out_.empty() && out_sent_ >= out_.front().size()) {
            out_sent_ -= out_.front().size();
            out_.pop_front();
        }
    }
    if (!closed_ && closing_ && !running_ && out_.empty()) close();
}

void Connection::close() {
    if (closed_) return;
    closed_ = true;
    asio::error_code ignored;  // nobody is left to tell
    socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
    out_.clear();
    service_->connection_closed(state_);
    on_closed_(*this);
}

}  // namespace angelia::wire
