#include "wire/codec.h"

#include <angelia/base/crc32c.h>
#include <angelia/bson/builder.h>

#include <gtest/gtest.h>

#include <cstring>

namespace angelia::wire {
namespace {

bson::Document ping_body() { return bson::make("ping", std::int32_t{1}, "$db", "admin"); }

template <class T>
std::string little_endian(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// A message of any opcode with a correct length.
std::string framed(std::int32_t op_code, std::string_view payload) {
    std::string bytes = little_endian(static_cast<std::int32_t>(kHeaderBytes + payload.size()));
    bytes +=
        little_endian(std::int32_t{7}) + little_endian(std::int32_t{0}) + little_endian(op_code);
    return bytes.append(payload);
}

std::string op_msg(std::uint32_t flags, std::string_view sections) {
    return framed(opcode::kMessage, little_endian(flags).append(sections));
}
std::string body_section(const bson::Document& body) {
    return std::string(1, '\0').append(body.bytes());
}
std::string sequence_section(std::int32_t size, std::string_view rest) {
    return std::string(1, '\1').append(little_endian(size)).append(rest);
}
std::string op_query(std::string_view ns, const bson::Document& query) {
    std::string payload = little_endian(std::int32_t{4}).append(ns);
    payload.push_back('\0');
    return framed(opcode::kQuery, payload + little_endian(std::int32_t{0}) +
                                      little_endian(std::int32_t{-1}) + std::string(query.bytes()));
}

TEST(Codec, ReadsBodyAndSequencesInAnyOrder) {
    const auto body = bson::make("insert", "c", "$db", "app");
    const auto first = bson::make("_id", std::int32_t{1});
    const auto second = bson::make("_id", std::int32_t{2});
    const std::string documents = std::string(first.bytes()).append(second.bytes());
    const std::string sequence =
        sequence_section(static_cast<std::int32_t>(4 + 10 + documents.size()),
                         std::string("documents\0", 10) + documents);
    const std::string bytes = op_msg(0, sequence + body_section(body));

    const Message message = parse_message(bytes);

    ASSERT_FALSE(message.error.has_value()) << message.error->to_string();
    EXPECT_EQ(message.database, "app");
    EXPECT_TRUE(message.body.identical(body));
    ASSERT_EQ(message.sequences.size(), 1u);
    EXPECT_EQ(message.sequences[0].name, "documents");
    ASSERT_EQ(message.sequences[0].documents.size(), 2u);
    EXPECT_TRUE(message.sequences[0].documents[1].identical(second));
}

TEST(Codec, ReadsWhatItEncodes) {
    const auto body = bson::make("insert", "c", "$db", "app");
    const auto document = bson::make("x", "y");
    const std::string bytes =
        encode_request(42, flag::kChecksumPresent | flag::kMoreToCome | flag::kExhaustAllowed, body,
                       {{"documents", {document.view()}}});

    const Message message = parse_message(bytes);

    ASSERT_FALSE(message.error.has_value()) << message.error->to_string();
    EXPECT_EQ(message.header.request_id, 42);
    EXPECT_TRUE(message.more_to_come);
    EXPECT_TRUE(message.exhaust_allowed);
    EXPECT_TRUE(message.sequences.at(0).documents.at(0).identical(document));
}

TEST(Codec, IgnoresUnknownOptionalFlags) {
    const std::string bytes = op_msg(1u << 20, body_section(ping_body()));
    EXPECT_FALSE(parse_message(bytes).error.has_value());
}

TEST(Codec, ReadsLegacyHello) {
    const std::string bytes = op_query("admin.$cmd", bson::make("isMaster", std::int32_t{1}));
    const Message message = parse_message(bytes);
    ASSERT_FALSE(message.error.has_value());
    EXPECT_TRUE(message.legacy_query);
    EXPECT_EQ(message.database, "admin");
    EXPECT_TRUE(message.body.has("isMaster"));
}

TEST(Codec, UnwrapsLegacyQueries) {
    const auto wrapped = bson::make("$query", bson::make("hello", std::int32_t{1}),
                                    "$readPreference", bson::make("mode", "primary"));
    const std::string bytes = op_query("admin.$cmd", wrapped);
    const Message message = parse_message(bytes);
    ASSERT_FALSE(message.error.has_value());
    EXPECT_TRUE(message.body.has("hello"));
}

struct Refused {
    const char* what;
    std::string bytes;
    ErrorCode code;
    bool close;
    bool answerable = true;
};

std::string with_wrong_checksum() {
    std::string bytes = encode_request(1, flag::kChecksumPresent, ping_body());
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    return bytes;
}

std::string many_sequences() {
    std::string sections = body_section(ping_body());
    for (std::size_t i = 0; i <= kSequencesMax; ++i)
        sections += sequence_section(6, std::string(1, static_cast<char>('a' + i)) + '\0');
    return op_msg(0, sections);
}

bson::Document deep(int levels) {
    bson::Builder b;
    b.add("ping", std::int32_t{1}).add("$db", "admin");
    for (int i = 0; i < levels; ++i) b.open("a");
    for (int i = 0; i < levels; ++i) b.close();
    return b.take();
}

class RefusedMessages : public testing::TestWithParam<Refused> {};

TEST_P(RefusedMessages, AreAnsweredWithTheRightCode) {
    const Message message = parse_message(GetParam().bytes);
    ASSERT_TRUE(message.error.has_value());
    EXPECT_EQ(message.error->code, GetParam().code) << message.error->message;
    EXPECT_EQ(message.close, GetParam().close);
    EXPECT_EQ(message.answerable, GetParam().answerable);
    EXPECT_FALSE(message.error->message.empty());
}

const std::string kHalfBody = body_section(ping_body()).substr(0, 12);

INSTANTIATE_TEST_SUITE_P(
    Codec, RefusedMessages,
    testing::Values(
        Refused{"no flags", framed(opcode::kMessage, "ab"), ErrorCode::FailedToParse, false},
        Refused{"no sections", op_msg(0, ""), ErrorCode::FailedToParse, false},
        Refused{"unknown section kind", op_msg(0, body_section(ping_body()) + '\2'),
                ErrorCode::FailedToParse, false},
        Refused{"two bodies", op_msg(0, body_section(ping_body()) + body_section(ping_body())),
                ErrorCode::FailedToParse, false},
        Refused{"only a sequence", op_msg(0, sequence_section(6, std::string("d\0", 2))),
                ErrorCode::FailedToParse, false},
        Refused{"empty body", op_msg(0, body_section(bson::Document())), ErrorCode::FailedToParse,
                false},
        Refused{"cut body", op_msg(0, kHalfBody), ErrorCode::InvalidBSON, false},
        Refused{"bytes behind the body",
                op_msg(0, body_section(ping_body()) + std::string("\0\0", 2)),
                ErrorCode::FailedToParse, false},
        Refused{"too deep", op_msg(0, body_section(deep(201))), ErrorCode::Overflow, false},
        Refused{"sequence longer than the message",
                op_msg(0, body_section(ping_body()) + sequence_section(100, std::string("d\0", 2))),
                ErrorCode::FailedToParse, false},
        Refused{"sequence of negative size",
                op_msg(0, body_section(ping_body()) + sequence_section(-1, std::string("d\0", 2))),
                ErrorCode::FailedToParse, false},
        Refused{"sequence without a name's end",
                op_msg(0, body_section(ping_body()) + sequence_section(6, "dd")),
                ErrorCode::FailedToParse, false},
        Refused{
            "broken document in a sequence",
            op_msg(0, body_section(ping_body()) + sequence_section(9, std::string("d\0\5\0\0", 5))),
            ErrorCode::InvalidBSON, false},
        Refused{"the same sequence twice",
                op_msg(0, body_section(ping_body()) + sequence_section(6, std::string("d\0", 2)) +
                              sequence_section(6, std::string("d\0", 2))),
                ErrorCode::FailedToParse, false},
        Refused{
            "sequence and field",
            op_msg(0, body_section(ping_body()) + sequence_section(9, std::string("ping\0", 5))),
            ErrorCode::FailedToParse, false},
        Refused{"too many sequences", many_sequences(), ErrorCode::TooManyDocumentSequences, false},
        Refused{"no $db", op_msg(0, body_section(bson::make("ping", std::int32_t{1}))),
                ErrorCode::Location40571, false},
        Refused{
            "$db of another type",
            op_msg(0, body_section(bson::make("ping", std::int32_t{1}, "$db", std::int32_t{1}))),
            ErrorCode::TypeMismatch, false},
        Refused{"unknown required flag", op_msg(1u << 2, body_section(ping_body())),
                ErrorCode::IllegalOpMsgFlag, true},
        Refused{"wrong checksum", with_wrong_checksum(), ErrorCode::ChecksumMismatch, true},
        Refused{"checksum flag without room", op_msg(flag::kChecksumPresent, ""),
                ErrorCode::FailedToParse, false},
        Refused{"OP_QUERY with $db",
                op_query("admin.$cmd", bson::make("hello", std::int32_t{1}, "$db", "admin")),
                ErrorCode::Location40621, false},
        Refused{"OP_QUERY on a collection",
                op_query("app.things", bson::make("a", std::int32_t{1})),
                ErrorCode::UnsupportedOpQueryCommand, false},
        Refused{"OP_QUERY cut short", framed(opcode::kQuery, "\0\0"), ErrorCode::FailedToParse,
                false},
        Refused{"OP_QUERY without a namespace's end",
                framed(opcode::kQuery, std::string("\0\0\0\0admin", 9)), ErrorCode::FailedToParse,
                false},
        Refused{"OP_COMPRESSED", framed(opcode::kCompressed, "whatever"),
                ErrorCode::CommandNotSupported, true, false},
        Refused{"OP_INSERT", framed(2002, "whatever"), ErrorCode::CommandNotSupported, true,
                false}),
    [](const auto& refused) {
        std::string name = refused.param.what;
        for (char& c : name)
            if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
        return name;
    });

TEST(Codec, EveryPrefixOfAMessageIsRefusedOrWhole) {
    const auto body = bson::make("insert", "c", "$db", "app");
    const auto document = bson::make("x", "y");
    const std::string whole = encode_request(1, 0, body, {{"documents", {document.view()}}});
    const std::size_t body_end = kHeaderBytes + 5 + body.size_bytes();
    for (std::size_t size = kHeaderBytes; size < whole.size(); ++size) {
        std::string cut = whole.substr(0, size);
        const auto length = static_cast<std::int32_t>(size);
        std::memcpy(cut.data(), &length, 4);
        EXPECT_EQ(parse_message(cut).error.has_value(), size != body_end) << size;
    }
}

TEST(Codec, AllowsLengthsFrom16To48Million) {
    const auto allowed = [](std::int32_t length) {
        return length_allowed(Header{.length = length});
    };
    EXPECT_FALSE(allowed(-1));
    EXPECT_FALSE(allowed(15));
    EXPECT_TRUE(allowed(16));
    EXPECT_TRUE(allowed(48'000'000));
    EXPECT_FALSE(allowed(48'000'001));
}

TEST(Codec, LegacyReplyNeverClaimsFailureOnSuccess) {
    const auto prefix = encode_reply_prefix(5, 4, false, 100);
    const std::string expected = little_endian(std::int32_t{136}) + little_endian(std::int32_t{5}) +
                                 little_endian(std::int32_t{4}) + little_endian(std::int32_t{1}) +
                                 little_endian(std::int32_t{8}) + little_endian(std::int64_t{0}) +
                                 little_endian(std::int32_t{0}) + little_endian(std::int32_t{1});
    EXPECT_EQ(prefix.view(), expected);
    const auto failed = encode_reply_prefix(5, 4, true, 100);
    EXPECT_EQ(failed.view()[16], 8 | 2);
}

TEST(Codec, MessageReplyHasOneBodySection) {
    const auto prefix = encode_message_prefix(5, 4, flag::kMoreToCome, 100);
    EXPECT_EQ(prefix.view(), little_endian(std::int32_t{121}) + little_endian(std::int32_t{5}) +
                                 little_endian(std::int32_t{4}) + little_endian(opcode::kMessage) +
                                 little_endian(flag::kMoreToCome) + std::string(1, '\0'));
}

}  // namespace
}  // namespace angelia::wire
