// Messages and what a listener returns for one.
#pragma once

#include <angelia/delivery/message.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace angelia::messaging {

using Message = delivery::Message;

/// What a listener returns: nothing, an answer, or a rejection. A value; move it.
///
///     return angelia::answer("ok").with("userId", message.value);
///     return angelia::no_answer();
///     return angelia::reject("database is down");
class Reply {
  public:
    enum class Kind : std::uint8_t { None, Answer, Reject };

    Reply() = default;  ///< handled, no answer
    static Reply make_answer(std::optional<std::string> text) {
        Reply reply;
        reply.kind_ = Kind::Answer;
        reply.msg_ = std::move(text);
        return reply;
    }
    static Reply make_rejection(std::string reason) {
        Reply reply;
        reply.kind_ = Kind::Reject;
        reply.reason_ = std::move(reason);
        return reply;
    }

    /// Adds a field to the answer's map_value. `value`: anything bson::Builder adds; an empty
    /// optional becomes null.
    template <class T>
    Reply with(std::string_view key, const T& value) && {
        map_begun_ = true;
        map_.add(key, value);
        return std::move(*this);
    }
    template <class T>
    Reply with(std::string_view key, const std::optional<T>& value) && {
        map_begun_ = true;
        value ? map_.add(key, *value) : map_.add(key, bson::Null{});
        return std::move(*this);
    }
    /// The whole map_value at once; replaces what with() added.
    Reply with_map(bson::Document map) && {
        map_ = bson::Builder();
        map_.add_all(map);
        map_begun_ = true;
        return std::move(*this);
    }
    Reply with_value(std::string value) && {
        value_ = std::move(value);
        return std::move(*this);
    }
    Reply with_ttl(std::chrono::milliseconds ttl) && {
        ttl_ = ttl;
        return std::move(*this);
    }
    /// For a rejection: the sender gets an answer that carries the reason.
    Reply and_tell_sender() && {
        tell_sender_ = true;
        return std::move(*this);
    }
    /// For a rejection: this node is done with the message and will not see it again; others may.
    Reply and_give_up() && {
        give_up_ = true;
        return std::move(*this);
    }

    Kind kind() const { return kind_; }
    const std::optional<std::string>& msg() const { return msg_; }
    const std::optional<std::string>& value() const { return value_; }
    const std::optional<std::chrono::milliseconds>& ttl() const { return ttl_; }
    const std::string& reason() const { return reason_; }
    bool tell_sender() const { return tell_sender_; }
    bool give_up() const { return give_up_; }
    std::optional<bson::Document> take_map() {
        if (!map_begun_) return std::nullopt;
        map_begun_ = false;
        return std::exchange(map_, bson::Builder()).take();
    }

  private:
    Kind kind_ = Kind::None;
    bool tell_sender_ = false;
    bool give_up_ = false;
    bool map_begun_ = false;
    std::optional<std::string> msg_;
    std::optional<std::string> value_;
    std::optional<std::chrono::milliseconds> ttl_;
    std::string reason_;
    bson::Builder map_;
};

inline Reply answer(std::string text) { return Reply::make_answer(std::move(text)); }
inline Reply no_answer() { return {}; }
inline Reply reject(std::string reason) { return Reply::make_rejection(std::move(reason)); }

}  // namespace angelia::messaging

namespace angelia {
using messaging::answer;
using messaging::Message;
using messaging::no_answer;
using messaging::reject;
using messaging::Reply;
}  // namespace angelia
