// $replaceRoot and $replaceWith: the document becomes what an expression says. Expressions here are
// field paths, documents made of them, literals and $mergeObjects.
#include "engine/aggregation/stage.h"

#include <angelia/bson/builder.h>

#include <fmt/format.h>

#include <deque>

namespace angelia::engine::aggregation {
namespace {

/// The value of `expression` for a document; missing when a path leads nowhere. Values that are
/// made stand in `kept`.
class RootEvaluation {
  public:
    explicit RootEvaluation(bson::DocumentView root) : root_(root) {}

    bson::ValueView value(bson::ValueView expression) {
        if (const auto text = expression.get_string()) return text_value(expression, *text);
        const auto document = expression.get_document();
        if (!document) return expression;
        if (!document->empty() && document->begin()->key == "$literal")
            return document->begin()->value;
        if (!document->empty() && document->begin()->key == "$mergeObjects")
            return merged(document->begin()->value);
        bson::Builder b;
        for (const bson::Element& e : *document) {
            const bson::ValueView v = value(e.value);
            if (!v.is_missing()) b.add(e.key, v);
        }
        return keep(b.take());
    }

  private:
    bson::ValueView whole() const {
        return {bson::Type::Document, root_.data(), root_.size_bytes()};
    }
    bson::ValueView text_value(bson::ValueView expression, std::string_view text) const {
        if (!text.starts_with('$')) return expression;
        if (text == "$$ROOT" || text == "$$CURRENT") return whole();
        return root_.find_path(text.substr(1));
    }
    bson::ValueView merged(bson::ValueView operand) {
        bson::Document result;
        const auto merge = [&](bson::ValueView part) {
            const auto document = value(part).get_document();
            if (!document) return;
            bson::Builder b;
            for (const bson::Element& e : result.view()) {
                const bson::ValueView newer = document->find(e.key);
                b.add(e.key, newer.is_missing() ? e.value : newer);
            }
            for (const bson::Element& e : *document)
                if (result.view().find(e.key).is_missing()) b.add(e.key, e.value);
            result = b.take();
        };
        if (const auto list = operand.get_array()) {
            for (const bson::Element& e : *list) merge(e.value);
        } else {
            merge(operand);
        }
        return keep(std::move(result));
    }
    bson::ValueView keep(bson::Document document) {
        kept_.push_back(std::move(document));
        const bson::DocumentView view = kept_.back().view();
        return {bson::Type::Document, view.data(), view.size_bytes()};
    }

    bson::DocumentView root_;
    std::deque<bson::Document> kept_;
};

/// Errors: NotImplemented for what RootEvaluation does not know.
Result<void> check_root_expression(bson::ValueView expression) {
    if (const auto text = expression.get_string()) {
        if (text->starts_with("$$") && *text != "$$ROOT" && *text != "$$CURRENT")
            return Error(ErrorCode::NotImplemented,
                         fmt::format("the variable {} is not supported yet", *text));
        if (*text == "$")
            return Error(ErrorCode::FailedToParse, "'$' by itself is not a valid field path");
        return {};
    }
    if (expression.is(bson::Type::Array) && !is_literal(expression))
        return Error(ErrorCode::NotImplemented,
                     "arrays with expressions are not supported yet in a new root");
    const auto document = expression.get_document();
    if (!document) return {};
    for (const bson::Element& e : *document) {
        if (e.key == "$literal" && document->count() == 1) return {};
        if (e.key == "$mergeObjects" && document->count() == 1) {
            const auto list = e.value.get_array();
            if (!list) return check_root_expression(e.value);
            for (const bson::Element& part : *list) ANGELIA_TRY(check_root_expression(part.value));
            return {};
        }
        if (e.key.starts_with('$'))
            return Error(ErrorCode::NotImplemented,
                         fmt::format("the expression {} is not supported yet", e.key));
        ANGELIA_TRY(check_root_expression(e.value));
    }
    return {};
}

class ReplaceRootStage final : public PerDocumentStage {
  public:
    explicit ReplaceRootStage(bson::Value expression) : expression_(std::move(expression)) {}
    std::string_view name() const override { return "$replaceRoot"; }
    Result<std::optional<bson::Document>> transform(bson::Document document) const override {
        RootEvaluation evaluation(document.view());
        const bson::ValueView root = evaluation.value(expression_.view());
        const auto replaced = root.get_document();
        if (!replaced)
            return Error(
                ErrorCode::Location40228,
                fmt::format("'newRoot' expression must evaluate to an object, but resulting value "
                            "was of type: {}",
                            root.is_missing() ? "missing" : bson::type_alias(root.type())));
        return std::optional<bson::Document>(bson::Document(*replaced));
    }

  private:
    bson::Value expression_;
};

Result<StagePtr> make_replace_root(bson::ValueView expression) {
    ANGELIA_TRY(check_root_expression(expression));
    return StagePtr(std::make_shared<ReplaceRootStage>(bson::Value(expression)));
}

}  // namespace

Result<StagePtr> parse_replace_root(bson::ValueView operand) {
    const auto specification = operand.get_document();
    if (!specification)
        return Error(
            ErrorCode::Location40229,
            fmt::format("expected an object as specification for $replaceRoot stage, got {}",
                        bson::type_alias(operand.type())));
    bson::ValueView root;
    for (const bson::Element& e : *specification) {
        if (e.key != "newRoot")
            return Error(ErrorCode::Location40415,
                         fmt::format("BSON field '$replaceRoot.{}' is an unknown field.", e.key));
        root = e.value;
    }
    if (root.is_missing())
        return Error(ErrorCode::Location40231, "no newRoot specified for the $replaceRoot stage");
    return make_replace_root(root);
}

Result<StagePtr> parse_replace_with(bson::ValueView operand) { return make_replace_root(operand); }

}  // namespace angelia::engine::aggregation
