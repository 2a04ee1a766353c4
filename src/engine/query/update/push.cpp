// $push with $each, $position, $slice, $sort
#include "engine/query/sort.h"
#include "engine/query/update/operator.h"

#include <angelia/bson/compare.h>

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine::query::update {
namespace {

using bson::Type;
using bson::ValueView;

bson::Value array_of(const std::vector<ValueView>& elements) {
    bson::Builder b;
    b.open_array("v");
    for (const ValueView e : elements) b.push(e);
    b.close();
    const bson::Document whole = b.take();
    return bson::Value(whole.find("v"));
}

struct PushModifiers {
    std::vector<ValueView> values;
    std::optional<std::int64_t> position;
    std::optional<std::int64_t> slice;
    int sort_whole = 0;  ///< ±1: sort the elements themselves
    std::optional<SortSpec> sort_fields;
};

class PushOperator final : public Operator {
  public:
    explicit PushOperator(PushModifiers modifiers) : m_(std::move(modifiers)) {}

    Result<void> apply(Target& target) const override {
        std::vector<ValueView> elements;
        if (target.exists()) {
            const auto array = target.value().get_array();
            if (!array) {
                return bad_operand(
                    fmt::format("The field '{}' must be an array but is of type {} in document {}",
                                target.path().dotted(), bson::type_alias(target.value().type()),
                                target.id_text()));
            }
            for (const bson::Element& e : *array) elements.push_back(e.value);
        }
        const std::size_t before = elements.size();
        const std::size_t at = insert_position(before);
        elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(at), m_.values.begin(),
                        m_.values.end());
        const bool sorted = m_.sort_whole != 0 || m_.sort_fields.has_value();
        if (sorted) ANGELIA_TRY(sort(elements));
        const std::size_t unsliced = elements.size();
        if (m_.slice) slice(elements);
        const bool only_grew =
            target.exists() && at == before && !sorted && elements.size() == unsliced;
        if (only_grew) return target.set_grown_array(array_of(elements), before, m_.values.size());
        return target.set(array_of(elements));
    }

  private:
    std::size_t insert_position(std::size_t size) const {
        if (!m_.position) return size;
        const auto signed_size = static_cast<std::int64_t>(size);
        if (*m_.position >= 0) return static_cast<std::size_t>(std::min(*m_.position, signed_size));
        return static_cast<std::size_t>(*m_.position < -signed_size ? 0
                                                                    : signed_size + *m_.position);
    }

    Result<void> sort(std::vector<ValueView>& elements) const {
        if (!m_.sort_fields) {
            std::stable_sort(elements.begin(), elements.end(),
                             [&](const ValueView& a, const ValueView& b) {
                                 return bson::compare(a, b) * m_.sort_whole < 0;
                             });
            return {};
        }
        struct Keyed {
            std::string key;
            ValueView value;
        };
        std::vector<Keyed> keyed;
        for (const ValueView e : elements) {
            const auto document = e.get_document();
            ANGELIA_TRY_ASSIGN(std::string key, m_.sort_fields->sort_key(
                                                    document ? *document : bson::DocumentView()));
            keyed.push_back({std::move(key), e});
        }
        std::stable_sort(keyed.begin(), keyed.end(),
                         [](const Keyed& a, const Keyed& b) { return a.key < b.key; });
        for (std::size_t i = 0; i < keyed.size(); ++i) elements[i] = keyed[i].value;
        return {};
    }

    void slice(std::vector<ValueView>& elements) const {
        const auto size = static_cast<std::int64_t>(elements.size());
        if (*m_.slice >= size) return;
        if (*m_.slice >= 0) {
            elements.resize(static_cast<std::size_t>(*m_.slice));
        } else if (*m_.slice > -size) {
            elements.erase(elements.begin(),
                           elements.begin() + static_cast<std::ptrdiff_t>(size + *m_.slice));
        }
    }

    PushModifiers m_;
};

Result<void> parse_push_sort(ValueView operand, PushModifiers& m) {
    if (const auto fields = operand.get_document()) {
        if (fields->empty())
            return bad_operand("The $sort pattern is empty when it should be a set of fields.");
        ANGELIA_TRY_ASSIGN(m.sort_fields, SortSpec::parse(*fields));
        if (m.sort_fields->natural() != 0)
            return bad_operand("The $sort of $push cannot be $natural");
        return {};
    }
    const auto direction = operand.to_int64();
    if (direction != 1 && direction != -1)
        return bad_operand("The $sort element value must be either 1 or -1");
    m.sort_whole = static_cast<int>(*direction);
    return {};
}

Result<std::int64_t> integer_clause(const bson::Element& e) {
    const auto number = e.value.to_int64();
    if (number) return *number;
    return bad_operand(
        fmt::format("The value for {} must be an integer value but was given type: {}", e.key,
                    bson::type_alias(e.value.type())));
}

bool is_push_clause(std::string_view name) {
    return name == "$each" || name == "$position" || name == "$slice" || name == "$sort";
}

Result<PushModifiers> parse_push_modifiers(bson::DocumentView clauses) {
    PushModifiers m;
    const ValueView each = clauses.find("$each");
    if (each.is_missing()) return bad_operand("$push with $position, $slice or $sort needs $each");
    if (!each.is(Type::Array)) {
        return bad_operand(
            fmt::format("The argument to $each in $push must be an array but it was of type: {}",
                        bson::type_alias(each.type())));
    }
    for (const bson::Element& e : each.as_document()) m.values.push_back(e.value);
    for (const bson::Element& e : clauses) {
        if (e.key == "$position") {
            ANGELIA_TRY_ASSIGN(m.position, integer_clause(e));
        } else if (e.key == "$slice") {
            ANGELIA_TRY_ASSIGN(m.slice, integer_clause(e));
        } else if (e.key == "$sort") {
            ANGELIA_TRY(parse_push_sort(e.value, m));
        } else if (e.key != "$each") {
            return bad_operand(fmt::format("Unrecognized clause in $push: {}", e.key));
        }
    }
    return m;
}

}  // namespace

Result<Operation> parse_push(const OperatorArguments& arguments) {
    PushModifiers modifiers;
    const auto clauses = arguments.operand.get_document();
    if (clauses && std::any_of(clauses->begin(), clauses->end(),
                               [](const bson::Element& e) { return is_push_clause(e.key); })) {
        ANGELIA_TRY_ASSIGN(modifiers, parse_push_modifiers(*clauses));
    } else {
        modifiers.values.push_back(arguments.operand);
    }
    return make_operation(arguments.path, std::make_unique<PushOperator>(std::move(modifiers)));
}

}  // namespace angelia::engine::query::update
