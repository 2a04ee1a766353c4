#include "wire/codec.h"

#include <angelia/base/check.h>
#include <angelia/base/crc32c.h>
#include <angelia/bson/builder.h>
#include <angelia/bson/validate.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace angelia::wire {
namespace {

constexpr std::int32_t kReplyAwaitCapable = 8;
constexpr std::int32_t kReplyQueryFailure = 2;

template <class T>
T load_at(std::string_view bytes, std::size_t at) {
    T v;
    std::memcpy(&v, bytes.data() + at, sizeof v);
    return v;
}

template <class T>
void store_at(char* at, T v) {
    std::memcpy(at, &v, sizeof v);
}

template <class T>
void append_number(std::string& out, T v) {
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
}

/// Walks the bytes of one message behind its header.
class Reader {
  public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}
    bool done() const { return at_ == bytes_.size(); }
    std::size_t left() const { return bytes_.size() - at_; }

    template <class T>
    Result<T> number(std::string_view what) {
        if (left() < sizeof(T))
            return Error(ErrorCode::FailedToParse, fmt::format("the message ends inside {}", what));
        const T v = load_at<T>(bytes_, at_);
        at_ += sizeof(T);
        return v;
    }
    Result<std::string_view> text(std::string_view what) {
        const auto end = bytes_.find('\0', at_);
        if (end == std::string_view::npos)
            return Error(ErrorCode::FailedToParse,
                         fmt::format("{} has no closing zero byte", what));
        const auto v = bytes_.substr(at_, end - at_);
        at_ = end + 1;
        return v;
    }
    Result<bson::DocumentView> document() {
        ANGELIA_TRY_ASSIGN(const auto view, bson::validate(bytes_.substr(at_)));
        at_ += view.size_bytes();
        return view;
    }
    /// The next `n` bytes as a reader of their own; the caller has checked left().
    Reader part(std::size_t n) {
        Reader r(bytes_.substr(at_, n));
        at_ += n;
        return r;
    }

  private:
    std::string_view bytes_;
    std::size_t at_ = 0;
};

Result<engine::command::Sequence> read_sequence(Reader& reader) {
    ANGELIA_TRY_ASSIGN(const auto size,
                       reader.number<std::int32_t>("the size of a document sequence"));
    if (size < 5 || static_cast<std::size_t>(size) - 4 > reader.left())
        return Error(
            ErrorCode::FailedToParse,
            fmt::format("a document sequence of {} bytes does not fit into its message", size));
    Reader part = reader.part(static_cast<std::size_t>(size) - 4);
    engine::command::Sequence sequence;
    ANGELIA_TRY_ASSIGN(sequence.name, part.text("the identifier of a document sequence"));
    while (!part.done()) {
        ANGELIA_TRY_ASSIGN(const auto document, part.document());
        sequence.documents.push_back(document);
    }
    return sequence;
}

Result<void> read_sections(Reader reader, Message& message) {
    bool body_seen = false;
    while (!reader.done()) {
        ANGELIA_TRY_ASSIGN(const auto kind, reader.number<std::uint8_t>("a section"));
        if (kind == 0) {
            if (body_seen)
                return Error(ErrorCode::FailedToParse,
                             "a message holds exactly one section of kind 0, this one has two");
            ANGELIA_TRY_ASSIGN(message.body, reader.document());
            body_seen = true;
        } else if (kind == 1) {
            if (message.sequences.size() == kSequencesMax)
                return Error(
                    ErrorCode::TooManyDocumentSequences,
                    fmt::format("at most {} document sequences in a message", kSequencesMax));
            ANGELIA_TRY_ASSIGN(auto sequence, read_sequence(reader));
            for (const auto& other : message.sequences)
                if (other.name == sequence.name)
                    return Error(ErrorCode::FailedToParse,
                                 fmt::format("Duplicate document sequence '{}'", sequence.name));
            message.sequences.push_back(std::move(sequence));
        } else {
            return Error(ErrorCode::FailedToParse,
                         fmt::format("unknown section kind {}; 0 and 1 exist", kind));
        }
    }
    if (!body_seen)
        return Error(ErrorCode::FailedToParse,
                     "the message has no section of kind 0 and so no command");
    return {};
}

Result<void> check_body(Message& message) {
    if (message.body.empty())
        return Error(ErrorCode::FailedToParse,
                     "the command document is empty; its first key is the command's name");
    for (const auto& sequence : message.sequences)
        if (message.body.has(sequence.name))
            return Error(
                ErrorCode::FailedToParse,
                fmt::format("the field '{}' is given in the body and as a document sequence",
                            sequence.name));
    const auto db = message.body.find("$db");
    if (db.is_missing())
        return Error(ErrorCode::Location40571, "OP_MSG requests require a $db argument");
    if (!db.is(bson::Type::String)) {
        return Error(ErrorCode::TypeMismatch,
                     fmt::format("BSON field '$db' is the wrong type '{}', expected type 'string'",
                                 bson::type_alias(db.type())));
    }
    message.database = db.as_string();
    return {};
}

void parse_op_msg(std::string_view bytes, Message& message) {
    const auto refuse = [&message](Error error, bool close) {
        message.error = std::move(error);
        message.close = close;
    };
    if (bytes.size() < kHeaderBytes + 4)
        return refuse(Error(ErrorCode::FailedToParse, "the message ends inside its flags"), false);
    const auto flags = load_at<std::uint32_t>(bytes, kHeaderBytes);
    message.more_to_come = (flags & flag::kMoreToCome) != 0;
    message.exhaust_allowed = (flags & flag::kExhaustAllowed) != 0;
    if (const auto unknown =
            flags & flag::kRequired & ~(flag::kChecksumPresent | flag::kMoreToCome);
        unknown != 0)
        return refuse(
            Error(ErrorCode::IllegalOpMsgFlag,
                  fmt::format("message flags contain illegal bits: 0x{:x}; bits 0 and 1 are known",
                              unknown)),
            true);
    std::size_t end = bytes.size();
    if ((flags & flag::kChecksumPresent) != 0) {
        if (end < kHeaderBytes + 8)
            return refuse(Error(ErrorCode::FailedToParse, "the message ends inside its checksum"),
                          false);
        end -= 4;
        if (load_at<std::uint32_t>(bytes, end) != crc32c(bytes.substr(0, end)))
            return refuse(Error(ErrorCode::ChecksumMismatch,
                                "the checksum of the message does not match its bytes"),
                          true);
    }
    Reader reader(bytes.substr(kHeaderBytes + 4, end - kHeaderBytes - 4));
    if (auto read = read_sections(reader, message); !read)
        return refuse(std::move(read).error(), false);
    if (auto checked = check_body(message); !checked)
        return refuse(std::move(checked).error(), false);
}

/// `{$query: {...}, $readPreference: {...}}` is how old clients wrap a command.
bson::DocumentView unwrap_query(bson::DocumentView document) {
    const auto first = document.empty() ? std::string_view{} : (*document.begin()).key;
    if (first != "$query" && first != "query") return document;
    return (*document.begin()).value.get_document().value_or(document);
}

Result<void> read_query(std::string_view bytes, Message& message) {
    Reader reader(bytes.substr(kHeaderBytes));
    ANGELIA_TRY(reader.number<std::int32_t>("the flags"));
    ANGELIA_TRY_ASSIGN(const auto ns, reader.text("the namespace"));
    ANGELIA_TRY(reader.number<std::int32_t>("numberToSkip"));
    ANGELIA_TRY(reader.number<std::int32_t>("numberToReturn"));
    ANGELIA_TRY_ASSIGN(const auto query, reader.document());
    if (!reader.done())
        ANGELIA_TRY(reader.document());  // the field selector says nothing to a command
    if (!reader.done())
        return Error(ErrorCode::FailedToParse, "bytes behind the documents of OP_QUERY");
    constexpr std::string_view kCommandCollection = ".$cmd";
    if (ns.size() <= kCommandCollection.size() ||
        ns.substr(ns.size() - kCommandCollection.size()) != kCommandCollection) {
        return Error(ErrorCode::UnsupportedOpQueryCommand,
                     fmt::format("OP_QUERY is no longer supported except for the hello family on "
                                 "'<database>.$cmd', not on '{}'",
                                 ns));
    }
    message.database = ns.substr(0, ns.size() - kCommandCollection.size());
    message.body = unwrap_query(query);
    if (message.body.empty())
        return Error(ErrorCode::FailedToParse,
                     "the command document is empty; its first key is the command's name");
    if (message.body.has("$db"))
        return Error(ErrorCode::Location40621, "$db is not allowed in OP_QUERY requests");
    return {};
}

}  // namespace

Header read_header(std::string_view bytes) {
    ANGELIA_CHECK(bytes.size() >= kHeaderBytes);
    return {load_at<std::int32_t>(bytes, 0), load_at<std::int32_t>(bytes, 4),
            load_at<std::int32_t>(bytes, 8), load_at<std::int32_t>(bytes, 12)};
}

bool length_allowed(const Header& header) {
    return header.length >= static_cast<std::int32_t>(kHeaderBytes) &&
           header.length <= static_cast<std::int32_t>(kMessageBytesMax);
}

Message parse_message(std::string_view bytes) {
    Message message;
    message.header = read_header(bytes);
    ANGELIA_CHECK(static_cast<std::size_t>(message.header.length) == bytes.size());
    switch (message.header.op_code) {
        case opcode::kMessage:
            parse_op_msg(bytes, message);
            break;
        case opcode::kQuery:
            message.legacy_query = true;
            if (auto read = read_query(bytes, message); !read)
                message.error = std::move(read).error();
            break;
        case opcode::kCompressed:
            message.error =
                Error(ErrorCode::CommandNotSupported, "OP_COMPRESSED has to be unpacked first");
            message.close = true;
            message.answerable = false;
            break;
        default:
            message.error = Error(
                ErrorCode::CommandNotSupported,
                fmt::format(
                    "opcode {} is not supported; OP_MSG (2013) is, and OP_QUERY (2004) for hello",
                    message.header.op_code));
            message.close = true;
            message.answerable = false;
    }
    return message;
}

ReplyPrefix encode_message_prefix(std::int32_t request_id, std::int32_t response_to,
                                  std::uint32_t flags, std::size_t document_bytes) {
    ReplyPrefix p;
    p.size = kMessagePrefixBytes;
    char* at = p.bytes.data();
    store_at(at, static_cast<std::int32_t>(kMessagePrefixBytes + document_bytes));
    store_at(at + 4, request_id);
    store_at(at + 8, response_to);
    store_at(at + 12, opcode::kMessage);
    store_at(at + 16, flags);
    at[20] = 0;  // section kind
    return p;
}

ReplyPrefix encode_reply_prefix(std::int32_t request_id, std::int32_t response_to, bool failed,
                                std::size_t document_bytes) {
    ReplyPrefix p;
    p.size = kReplyPrefixBytes;
    char* at = p.bytes.data();
    store_at(at, static_cast<std::int32_t>(kReplyPrefixBytes + document_bytes));
    store_at(at + 4, request_id);
    store_at(at + 8, response_to);
    store_at(at + 12, opcode::kReply);
    store_at(at + 16, kReplyAwaitCapable | (failed ? kReplyQueryFailure : 0));
    store_at(at + 20, std::int64_t{0});  // cursor
    store_at(at + 28, std::int32_t{0});  // starting from
    store_at(at + 32, std::int32_t{1});  // number returned
    return p;
}

bson::Document error_document(const Error& error) {
    return bson::make("ok", 0.0, "errmsg", error.message, "code",
                      static_cast<std::int32_t>(error.code), "codeName",
                      error_code_name(error.code));
}

std::string encode_request(std::int32_t request_id, std::uint32_t flags, bson::DocumentView body,
                           const std::vector<Section>& sections) {
    std::string out(kHeaderBytes, '\0');
    append_number(out, flags);
    out.push_back('\0');
    out.append(body.bytes());
    for (const auto& section : sections) {
        out.push_back('\1');
        const std::size_t start = out.size();
        append_number(out, std::int32_t{0});
        out.append(section.identifier);
        out.push_back('\0');
        for (const auto& document : section.documents) out.append(document.bytes());
        store_at(out.data() + start, static_cast<std::int32_t>(out.size() - start));
    }
    const bool checksum = (flags & flag::kChecksumPresent) != 0;
    store_at(out.data(), static_cast<std::int32_t>(out.size() + (checksum ? 4 : 0)));
    store_at(out.data() + 4, request_id);
    store_at(out.data() + 8, std::int32_t{0});
    store_at(out.data() + 12, opcode::kMessage);
    if (checksum) append_number(out, crc32c(out));
    return out;
}

}  // namespace angelia::wire
