// Messages of the MongoDB wire protocol as bytes: parsing requests, encoding replies. Pure
// functions, no I/O. What is accepted and refused: docs/formats/wire.md.
#pragma once

#include "engine/command/command.h"

#include <angelia/base/error.h>
#include <angelia/bson/document.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace angelia::wire {

inline constexpr std::size_t kHeaderBytes = 16;
inline constexpr std::size_t kMessageBytesMax = 48'000'000;  // MongoDB's maxMessageSizeBytes
inline constexpr std::size_t kSequencesMax =
    16;  // no command takes more than two; a bound for what is parsed

namespace opcode {
inline constexpr std::int32_t kReply = 1;
inline constexpr std::int32_t kQuery = 2004;
inline constexpr std::int32_t kCompressed = 2012;
inline constexpr std::int32_t kMessage = 2013;
}  // namespace opcode

namespace flag {  // of OP_MSG
inline constexpr std::uint32_t kChecksumPresent = 1u << 0;
inline constexpr std::uint32_t kMoreToCome = 1u << 1;
inline constexpr std::uint32_t kExhaustAllowed = 1u << 16;
inline constexpr std::uint32_t kRequired = 0xFFFF;  // unknown ones among these are an error
}  // namespace flag

struct Header {
    std::int32_t length = 0;  ///< of the whole message
    std::int32_t request_id = 0;
    std::int32_t response_to = 0;
    std::int32_t op_code = 0;
};

/// `bytes` holds at least kHeaderBytes (checked).
Header read_header(std::string_view bytes);
/// True when a message of this length may follow; else the stream cannot be trusted any more and
/// the connection ends.
bool length_allowed(const Header& header);

/// One request, taken apart. Views point into the bytes given to parse_message().
struct Message {
    Header header;
    bool legacy_query = false;  ///< OP_QUERY: answered by OP_REPLY
    bool more_to_come = false;  ///< the client wants no answer
    bool exhaust_allowed = false;
    std::string database;
    bson::DocumentView body;
    std::vector<engine::command::Sequence> sequences;

    std::optional<Error> error;  ///< the request is refused with this
    bool close = false;  ///< the connection ends with it: the peer speaks something else, or its
                         ///< bytes were damaged
    bool answerable = true;  ///< false: the opcode has no way to say so
};

/// `bytes` is exactly one message (header.length bytes). Never fails otherwise than by
/// Message::error: InvalidBSON, FailedToParse, IllegalOpMsgFlag, ChecksumMismatch,
/// TooManyDocumentSequences, Location40571 ($db missing), Location40621 ($db in OP_QUERY),
/// CommandNotSupported (opcode).
Message parse_message(std::string_view bytes);
Message parse_message(std::string&& bytes) = delete;  // the views would outlive it

/// Bytes in front of the document of an OP_MSG reply with one section of kind 0.
inline constexpr std::size_t kMessagePrefixBytes = 21;
/// Bytes in front of the document of an OP_REPLY.
inline constexpr std::size_t kReplyPrefixBytes = 36;

struct ReplyPrefix {
    std::array<char, kReplyPrefixBytes> bytes{};
    std::size_t size = 0;
    std::string_view view() const { return {bytes.data(), size}; }
};
/// The document follows these bytes as it is, so that large answers are not copied.
ReplyPrefix encode_message_prefix(std::int32_t request_id, std::int32_t response_to,
                                  std::uint32_t flags, std::size_t document_bytes);
ReplyPrefix encode_reply_prefix(std::int32_t request_id, std::int32_t response_to, bool failed,
                                std::size_t document_bytes);

/// {ok: 0, errmsg, code, codeName}: the answer to a message that reached no command.
bson::Document error_document(const Error& error);

/// A request as clients write it; for tests and the fuzz corpus.
struct Section {
    std::string_view identifier;  ///< of a kind 1 section
    std::vector<bson::DocumentView> documents;
};
std::string encode_request(std::int32_t request_id, std::uint32_t flags, bson::DocumentView body,
                           const std::vector<Section>& sections = {});

}  // namespace angelia::wire
