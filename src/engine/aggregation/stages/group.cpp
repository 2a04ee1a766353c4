// $group with a constant _id and $sum: one group of everything, as drivers' countDocuments asks for
// it.
#include "engine/aggregation/stage.h"
#include "engine/query/field_path.h"
#include "engine/query/update/arithmetic.h"

#include <angelia/bson/builder.h>

#include <fmt/format.h>

#include <vector>

namespace angelia::engine::aggregation {
namespace {

using bson::Value;
using bson::ValueView;

/// `{<field>: {$sum: <number or "$path">}}`
struct SumField {
    std::string name;
    Value constant;  ///< missing when a path is summed
    query::FieldPath path;

    /// What the document adds; missing when it is no number (those are passed over). An array on
    /// the way is no number.
    ValueView addend(bson::DocumentView document) const {
        if (!constant.is_missing()) return constant.view();
        ValueView value;
        for (std::size_t i = 0; i < path.size(); ++i) {
            value = document.find(path[i]);
            if (i + 1 == path.size()) return value;
            if (!value.is(bson::Type::Document)) return {};
            document = value.as_document();
        }
        return value;
    }
};

/// Integers that outgrow int64 go on as double.
Value add_or_widen(ValueView total, ValueView addend) {
    if (auto sum = query::update::add_numbers(total, addend)) return std::move(*sum);
    return bson::value(*total.to_double() + *addend.to_double());
}

class GroupStage final : public Stage {
  public:
    GroupStage(Value id, std::vector<SumField> sums) : id_(std::move(id)), sums_(std::move(sums)) {}
    std::string_view name() const override { return "$group"; }

    Source run(std::shared_ptr<const Stage> self, Source source) const override {
        return [self = std::move(self), this, source = std::move(source),
                done = false]() mutable -> Result<std::optional<bson::Document>> {
            if (done) return std::optional<bson::Document>();
            done = true;
            return collect(source);
        };
    }

  private:
    Result<std::optional<bson::Document>> collect(Source& source) const {
        std::vector<Value> totals(sums_.size(), bson::value(std::int32_t{0}));
        bool any = false;
        for (;;) {
            ANGELIA_TRY_ASSIGN(const auto document, source());
            if (!document) break;
            any = true;
            for (std::size_t i = 0; i < sums_.size(); ++i) {
                const ValueView addend = sums_[i].addend(document->view());
                if (addend.is_number()) totals[i] = add_or_widen(totals[i].view(), addend);
            }
        }
        if (!any) return std::optional<bson::Document>();
        bson::Builder b;
        b.add("_id", id_);
        for (std::size_t i = 0; i < sums_.size(); ++i) b.add(sums_[i].name, totals[i]);
        return std::optional<bson::Document>(b.take());
    }

    Value id_;
    std::vector<SumField> sums_;
};

Error expression_not_supported(std::string_view where) {
    return {ErrorCode::NotImplemented,
            fmt::format("expressions are not supported yet: {} of $group needs a constant", where)};
}

Result<SumField> parse_sum(const bson::Element& e) {
    if (e.key.find('.') != std::string_view::npos)
        return Error(ErrorCode::Location40235,
                     fmt::format("The field name '{}' cannot contain '.'", e.key));
    if (e.key.starts_with('$'))
        return Error(ErrorCode::Location40236,
                     fmt::format("The field name '{}' cannot be an operator name", e.key));
    const auto accumulator = e.value.get_document();
    if (!accumulator || accumulator->empty() || !accumulator->begin()->key.starts_with('$')) {
        return Error(ErrorCode::Location40234,
                     fmt::format("The field '{}' must be an accumulator object", e.key));
    }
    if (accumulator->count() != 1)
        return Error(ErrorCode::Location40238,
                     fmt::format("The field '{}' must specify one accumulator", e.key));
    const bson::Element a = *accumulator->begin();
    if (a.key != "$sum")
        return Error(ErrorCode::Location15952, fmt::format("unknown group operator '{}'", a.key));
    SumField sum;
    sum.name = std::string(e.key);
    if (a.value.is(bson::Type::Array))
        return Error(ErrorCode::Location40237, "The $sum accumulator is a unary operator");
    const auto text = a.value.get_string();
    if (text && text->size() > 1 && (*text)[0] == '$' && (*text)[1] != '$') {
        ANGELIA_TRY_ASSIGN(sum.path, query::FieldPath::parse(text->substr(1)));
        return sum;
    }
    if (!is_literal(a.value) || a.value.is(bson::Type::Document))
        return expression_not_supported(fmt::format("the $sum '{}'", e.key));
    sum.constant = Value(a.value);
    return sum;
}

}  // namespace

Result<StagePtr> parse_group(ValueView operand) {
    const auto specification = operand.get_document();
    if (!specification)
        return Error(ErrorCode::Location15947, "a group's fields must be specified in an object");
    const ValueView id = specification->find("_id");
    if (id.is_missing())
        return Error(ErrorCode::Location15955, "a group specification must include an _id");
    if (!is_literal(id)) return expression_not_supported("the _id");
    std::vector<SumField> sums;
    for (const bson::Element& e : *specification) {
        if (e.key == "_id") continue;
        ANGELIA_TRY_ASSIGN(SumField sum, parse_sum(e));
        sums.push_back(std::move(sum));
    }
    return StagePtr(std::make_shared<GroupStage>(Value(id), std::move(sums)));
}

}  // namespace angelia::engine::aggregation
