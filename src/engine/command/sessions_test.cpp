// Session commands: what belongs to a session ends with it, and nothing else does.
#include "engine/command/test_commands.h"

namespace angelia::engine::command::test {
namespace {

constexpr std::string_view kNobodysDigest = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
constexpr std::string_view kOthersDigest = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

class Sessions : public CommandTest {
  protected:
    void SetUp() override { run(R"({"insert": "c", "documents": [{}, {}, {}, {}]})"); }

    static std::string id(char which) {
        const std::string four(4, which);
        return R"({"id": {"$uuid": ")" + four + four + "-" + four + "-4" + four.substr(1) + "-8" +
               four.substr(1) + "-" + four + four + four + R"("}})";
    }
    static std::string id_with_uid(char which, std::string_view digest) {
        std::string text = id(which);
        text.pop_back();
        return text + R"(, "uid": {"$binary": {"base64": ")" + std::string(digest) +
               R"(", "subType": "00"}}})";
    }
    /// An open cursor of this session; "" = of none.
    std::int64_t cursor(const std::string& session) {
        const auto answer = run(R"({"find": "c", "batchSize": 1)" + with(session));
        return answer.body.view().find_path("cursor.id").as_int64();
    }
    /// 0, or the error's code.
    std::int32_t use(std::int64_t cursor, const std::string& session) {
        return code(R"({"getMore": {"$numberLong": ")" + std::to_string(cursor) +
                    R"("}, "collection": "c", "batchSize": 1)" + with(session));
    }
    static std::string with(const std::string& session) {
        return session.empty() ? "}" : R"(, "lsid": )" + session + "}";
    }
    /// Which of four cursors (of sessions a, b, c and of none) are left after the command.
    std::string left_after(const std::string& command) {
        const std::string owners[] = {id('a'), id('b'), id('c'), ""};
        std::int64_t cursors[4];
        for (int i = 0; i < 4; ++i) cursors[i] = cursor(owners[i]);
        EXPECT_EQ(result(command, "admin"), "{}") << command;
        std::string left;
        for (int i = 0; i < 4; ++i) left += use(cursors[i], owners[i]) == 43 ? '.' : "abc-"[i];
        return left;
    }
};

TEST_F(Sessions, StartWithAnIdOfTheirOwn) {
    const auto first = run(R"({"startSession": 1})");
    const auto second = run(R"({"startSession": 1})");
    EXPECT_EQ(first.body.view().find_path("id.id").as_binary().subtype, 4);
    EXPECT_EQ(first.at("timeoutMinutes"), "30");
    EXPECT_NE(first.at("id"), second.at("id"));
}

TEST_F(Sessions, EndWithTheirCursors) {
    EXPECT_EQ(left_after(R"({"endSessions": [)" + id('a') + ", " + id('d') + "]}"), ".bc-");
    EXPECT_EQ(left_after(R"({"killSessions": [)" + id('a') + ", " + id('c') + "]}"), ".b.-");
    EXPECT_EQ(left_after(R"({"refreshSessions": [)" + id('a') + "]}"), "abc-");
    EXPECT_EQ(left_after(R"({"endSessions": []})"), "abc-");
}

TEST_F(Sessions, AllAreKilledAtOnce) {
    EXPECT_EQ(left_after(R"({"killAllSessions": []})"), "...-");
    EXPECT_EQ(left_after(R"({"killAllSessions": [{"user": "u", "db": "admin"}]})"), "abc-")
        << "no session is that user's";
}

TEST_F(Sessions, AreKilledByPattern) {
    const std::string by = R"({"killAllSessionsByPattern": )";
    EXPECT_EQ(left_after(by + "[]}"), "...-");
    EXPECT_EQ(left_after(by + "[{}]}"), "...-");
    EXPECT_EQ(left_after(by + R"([{"lsid": )" + id('b') + "}]}"), "a.c-");
    EXPECT_EQ(left_after(by + R"([{"lsid": )" + id_with_uid('b', kNobodysDigest) + "}]}"), "a.c-");
    EXPECT_EQ(left_after(by + R"([{"lsid": )" + id_with_uid('b', kOthersDigest) + "}]}"), "abc-");
    const auto uid = [](std::string_view digest) {
        return R"([{"uid": {"$binary": {"base64": ")" + std::string(digest) +
               R"(", "subType": "00"}}}]})";
    };
    EXPECT_EQ(left_after(by + uid(kNobodysDigest)), "...-");
    EXPECT_EQ(left_after(by + uid(kOthersDigest)), "abc-");
}

TEST_F(Sessions, AWaitingStreamEndsWithItsSession) {
    const auto opened = run(
        R"({"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {})" + with(id('a')));
    auto waiting = begin(doc(R"({"getMore": {"$numberLong": ")" +
                             std::to_string(opened.body.view().find_path("cursor.id").as_int64()) +
                             R"("}, "collection": "c", "maxTimeMS": 600000)" + with(id('a'))));
    EXPECT_EQ(result(R"({"killSessions": [)" + id('a') + "]}"), "{}");
    ASSERT_EQ(waiting.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    EXPECT_EQ(waiting.get().code(), 237);
}

TEST_F(Sessions, RefuseWhatIsNoSessionAndKillNothing) {
    const auto owned = cursor(id('a'));
    const std::string fine = id('a');
    for (const char* command : {"endSessions", "killSessions", "refreshSessions"}) {
        const std::string begin = std::string("{\"") + command + "\": ";
        EXPECT_EQ(code(begin + "1}"), 14) << command;
        EXPECT_EQ(code(begin + "[" + fine + ", 1]}"), 14) << command;
        EXPECT_EQ(code(begin + "[" + fine + ", {}]}"), 40414) << command;
        EXPECT_EQ(code(begin + "[" + fine + R"(, {"id": 5}]})"), 14) << command;
        EXPECT_EQ(code(begin + "[" + fine +
                       R"(, {"id": {"$binary": {"base64": "AAAA", "subType": "04"}}}]})"),
                  72)
            << command;
        EXPECT_EQ(code(begin + "[" + fine + R"(, {"id": 5, "wings": 1}]})"), 40415) << command;
        EXPECT_EQ(code(begin + "[" + fine + R"(], "wings": 1})"), 40415) << command;
    }
    bson::Builder many;
    many.open_array("endSessions");
    const auto one = doc(fine);
    for (int i = 0; i < 10'001; ++i) many.push(one);
    many.close();
    EXPECT_EQ(run(many.take()).code(), 2);
    EXPECT_EQ(code(R"({"killAllSessions": 1})"), 14);
    EXPECT_EQ(code(R"({"killAllSessions": [1]})"), 14);
    EXPECT_EQ(code(R"({"killAllSessions": [{}]})"), 40414);
    EXPECT_EQ(code(R"({"killAllSessions": [{"user": 1, "db": "a"}]})"), 14);
    EXPECT_EQ(code(R"({"killAllSessions": [{"user": "u", "db": "a", "wings": 1}]})"), 40415);
    const std::string by = R"({"killAllSessionsByPattern": )";
    EXPECT_EQ(code(by + "1}"), 14);
    EXPECT_EQ(code(by + R"([{"wings": 1}]})"), 40415);
    EXPECT_EQ(code(by + R"([{"lsid": 1}]})"), 14);
    EXPECT_EQ(code(by + R"([{"lsid": {}}]})"), 40414);
    EXPECT_EQ(code(by + R"([{"uid": 1}]})"), 14);
    EXPECT_EQ(code(by + R"([{"uid": {"$binary": {"base64": "AAAA", "subType": "00"}}}]})"), 72);
    EXPECT_EQ(code(by + R"([{"users": [{"user": "u", "db": "a"}]}]})"), 238);
    EXPECT_EQ(use(owned, id('a')), 0);
}

}  // namespace
}  // namespace angelia::engine::command::test
