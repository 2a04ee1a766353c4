// Layout of JavaScriptWithScope: int32 total, int32 size of the code with its zero, code, zero,
// scope document.
#pragma once

#include <angelia/bson/document.h>

namespace angelia::bson {

struct CodeWithScope {
    std::string_view code;
    DocumentView scope;
};

/// Only for a value of Type::JavaScriptWithScope. Trusts the bytes.
inline CodeWithScope split_code_with_scope(ValueView v) {
    std::int32_t code_size;
    std::memcpy(&code_size, v.data() + 4, sizeof code_size);
    const auto size = static_cast<std::size_t>(code_size);
    return {{reinterpret_cast<const char*>(v.data() + 8), size - 1},
            DocumentView(v.data() + 8 + size)};
}

}  // namespace angelia::bson
