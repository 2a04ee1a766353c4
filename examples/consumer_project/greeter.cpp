// Two nodes on one embedded store: one answers, one asks.
#include <angelia/angelia.h>

#include <cstdio>

int main() {
    using namespace std::chrono_literals;
    auto store = angelia::open_store("embedded::memory:").value_or_throw();

    angelia::Messaging responder{store, {.id = "responder"}};
    responder
        .listen("greet",
                [](const angelia::Message& m) -> angelia::Reply {
                    return angelia::answer("hello " + m.value.value_or("you"));
                })
        .value_or_throw();
    responder.start().value_or_throw();

    angelia::Messaging asker{store, {.id = "asker"}};
    asker.start().value_or_throw();
    auto reply = asker.request({.topic = "greet", .value = "world"}, 5s).value_or_throw();
    std::printf("%s\n", reply.msg.value_or("").c_str());
    return reply.msg == "hello world" ? 0 : 1;
}
