// Values of every BSON type, for the tests of this module.
#pragma once

#include <angelia/bson/builder.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace angelia::bson::test {

inline std::string raw_int32(std::int32_t v) {
    return std::string(reinterpret_cast<const char*>(&v), sizeof v);
}

/// One field of a type that Builder has no C++ type for; `value_bytes` as they stand in a document.
inline Document raw_field(std::string_view key, Type type, const std::string& value_bytes) {
    Builder b;
    b.add(key, ValueView(type, reinterpret_cast<const std::uint8_t*>(value_bytes.data()),
                         value_bytes.size()));
    return b.take();
}

inline std::string string_bytes(std::string_view text) {
    return raw_int32(static_cast<std::int32_t>(text.size() + 1)) + std::string(text) +
           std::string(1, '\0');
}

inline Document symbol(std::string_view text) {
    return raw_field("v", Type::Symbol, string_bytes(text));
}
inline Document javascript(std::string_view text) {
    return raw_field("v", Type::JavaScript, string_bytes(text));
}
inline Document db_pointer(std::string_view name, const ObjectId& id) {
    return raw_field(
        "v", Type::DbPointer,
        string_bytes(name) + std::string(reinterpret_cast<const char*>(id.bytes.data()), 12));
}
inline Document code_with_scope(std::string_view code, DocumentView scope) {
    const std::string rest = string_bytes(code) + std::string(scope.bytes());
    return raw_field("v", Type::JavaScriptWithScope,
                     raw_int32(static_cast<std::int32_t>(rest.size() + 4)) + rest);
}
template <class T>
Document one(const T& value) {
    return make("v", value);
}

inline ObjectId object_id(std::uint8_t fill) {
    ObjectId id;
    id.bytes.fill(fill);
    return id;
}

/// `levels` documents inside one another, the outermost counted.
inline Document nested(int levels) {
    Document d;
    for (int i = 1; i < levels; ++i) d = make("d", d);
    return d;
}

/// One document that holds a value of every type.
inline Document all_types() {
    const Document pointer = db_pointer("db.c", object_id(7));
    const Document code = javascript("f()");
    const Document sym = symbol("sym");
    const Document scoped = code_with_scope("g()", make("x", std::int32_t{1}));
    Builder b;
    b.add("double", 1.5)
        .add("string", "text \xC3\xA4")
        .add("document", make("a", std::int32_t{1}))
        .add("array", array(std::int32_t{1}, "two"));
    b.add("binary", BinaryView{0, {"\x00\x01\xFF", 3}})
        .add("old_binary", BinaryView{2, {"\x02\x00\x00\x00hi", 6}});
    b.add("uuid", BinaryView{4, "0123456789abcdef"})
        .add("undefined", Undefined{})
        .add("id", object_id(0x5A))
        .add("bool", true);
    b.add("date", Date{1'700'000'000'123})
        .add("old_date", Date{-1})
        .add("null", Null{})
        .add("regex", RegexView{"^a.*b$", "im"});
    b.add("pointer", pointer["v"]).add("code", code["v"]);
    b.add("symbol", sym["v"]).add("scoped", scoped["v"]);
    b.add("int32", std::int32_t{-7})
        .add("timestamp", Timestamp{12, 34})
        .add("int64", std::int64_t{1} << 60);
    b.add("decimal", Decimal128{15, 0x303E000000000000})
        .add("min", MinKey{})
        .add("max", MaxKey{})
        .add("", "");
    return b.take();
}

}  // namespace angelia::bson::test
