// $type
#include "engine/query/filter/parse.h"

#include <fmt/format.h>

#include <array>
#include <bitset>

namespace angelia::engine::query::filter {
namespace {

using bson::Type;
using bson::ValueView;

constexpr std::array kStoredTypes{
    Type::Double,    Type::String,    Type::Document,   Type::Array,      Type::Binary,
    Type::Undefined, Type::ObjectId,  Type::Bool,       Type::Date,       Type::Null,
    Type::Regex,     Type::DbPointer, Type::JavaScript, Type::Symbol,     Type::JavaScriptWithScope,
    Type::Int32,     Type::Timestamp, Type::Int64,      Type::Decimal128, Type::MaxKey,
    Type::MinKey};

using TypeSet = std::bitset<256>;

std::size_t bit_of(Type type) { return static_cast<std::size_t>(type); }

class TypeTest final : public Test {
  public:
    explicit TypeTest(TypeSet types) : Test(Kind::Type), types_(types) {}
    bool matches_value(ValueView value) const override { return types_.test(bit_of(value.type())); }

  private:
    TypeSet types_;  ///< Type::Missing is never in it
};

Result<void> add_alias(std::string_view alias, TypeSet& types) {
    if (alias == "number") {
        for (const Type type : {Type::Double, Type::Int32, Type::Int64, Type::Decimal128})
            types.set(bit_of(type));
        return {};
    }
    for (const Type type : kStoredTypes) {
        if (bson::type_alias(type) != alias) continue;
        types.set(bit_of(type));
        return {};
    }
    return bad_value(fmt::format("Unknown type name alias: {}", alias));
}

Result<void> add_type(ValueView operand, TypeSet& types) {
    if (const auto alias = operand.get_string()) return add_alias(*alias, types);
    if (!operand.is_number())
        return Error(ErrorCode::TypeMismatch, "type must be represented as a number or a string");
    const auto code = operand.to_int64();
    for (const Type type : kStoredTypes) {
        // MinKey is -1 to users and 255 in the bytes.
        const std::int64_t number = type == Type::MinKey ? -1 : static_cast<std::int64_t>(type);
        if (code != number) continue;
        types.set(bit_of(type));
        return {};
    }
    return bad_value(
        fmt::format("Invalid numerical type code: {}", operand.to_double().value_or(0)));
}

}  // namespace

Result<TestPtr> parse_type(const FieldOperator& op) {
    TypeSet types;
    if (const auto list = op.operand.get_array()) {
        if (list->empty())
            return Error(ErrorCode::FailedToParse, "$type must match at least one type");
        for (const bson::Element& e : *list) ANGELIA_TRY(add_type(e.value, types));
    } else {
        ANGELIA_TRY(add_type(op.operand, types));
    }
    return TestPtr(std::make_unique<TypeTest>(types));
}

}  // namespace angelia::engine::query::filter
