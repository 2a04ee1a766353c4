// Linked with angelia::mongo only.
#include <angelia/store/open.h>

#include <cstdio>

int main() {
    auto store = angelia::store::open_store("embedded:./data");
    if (store) return 1;
    std::printf("%s\n", store.error().message.c_str());
    return store.error().message.find("angelia::embedded is not linked") == std::string::npos ? 1
                                                                                              : 0;
}
