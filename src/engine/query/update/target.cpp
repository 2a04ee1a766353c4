#include "engine/query/update/target.h"

#include <angelia/bson/json.h>

#include <fmt/format.h>

#include <algorithm>

namespace angelia::engine::query::update {
namespace {

using bson::Type;
using bson::ValueView;

constexpr std::size_t kBackfillMax =
    1'500'000;  // MongoDB's limit of nulls that one path may pad an array with

std::string join_parts(const FieldPath& path, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        if (i > 0) text.push_back('.');
        text += path[i];
    }
    return text;
}

bool leads_into(std::string_view outer, std::string_view inner) {
    return inner.size() >= outer.size() && inner.substr(0, outer.size()) == outer &&
           (inner.size() == outer.size() || inner[outer.size()] == '.');
}

ValueView null_value() { return {Type::Null, reinterpret_cast<const std::uint8_t*>(""), 0}; }

}  // namespace

std::string element_text(std::string_view key, ValueView value) {
    if (value.is_missing()) return fmt::format("{{{}: missing}}", key);
    std::string text = bson::to_json(value);
    if (text.size() > 200) text = text.substr(0, 200) + "...";  // a message, not a dump
    return fmt::format("{{{}: {}}}", key, text);
}

// ---- ChangeLog

void ChangeLog::updated(std::string path) {
    // Inside something that is reported as a whole already.
    const bool covered = std::any_of(updated_.begin(), updated_.end(),
                                     [&](const std::string& u) { return leads_into(u, path); });
    if (!covered) updated_.push_back(std::move(path));
}

UpdateDescription ChangeLog::describe(EditTree& tree) const {
    bson::Builder fields;
    for (const std::string& dotted : updated_) {
        const FieldPath path{dotted};
        const auto at = tree.locate(path);
        if (at.parts_found == path.size()) at.node->write_to(fields, dotted);
    }
    bson::Builder removed;
    for (const std::string& dotted : removed_) removed.push(dotted);
    return {fields.take(), bson::Array(removed.take()), bson::Array()};
}

// ---- Target

Target::Target(EditTree& tree, ChangeLog& log, const FieldPath& path, const ApplyContext& context)
    : tree_(tree), log_(log), path_(path), context_(context) {
    const auto at = tree.locate(path);
    node_ = at.node;
    parts_found_ = at.parts_found;
    if (parts_found_ == path.size()) value_ = tree.value_of(*node_);
}

Result<void> Target::set(ValueView value) {
    if (!exists()) return create(value);
    if (value_.identical(value)) return {};
    node_->replace(value);
    value_ = value;
    log_.updated(path_.dotted());
    return {};
}

Result<void> Target::create(ValueView value) {
    EditNode* parent = node_;
    const std::string& first = path_[parts_found_];
    const auto index = array_index_of(first);
    if (!parent->is_container() || (parent->type == Type::Array && !index)) {
        const std::string_view name =
            parts_found_ == 0 ? std::string_view() : std::string_view(path_[parts_found_ - 1]);
        return Error(ErrorCode::PathNotViable,
                     fmt::format("Cannot create field '{}' in element {}", first,
                                 element_text(name, tree_.value_of(*parent))));
    }
    parent->expand();
    if (parent->type == Type::Array) {
        if (*index > parent->children.size() + kBackfillMax) {
            return Error(ErrorCode::CannotBackfillArray,
                         fmt::format("can't backfill more than {} elements", kBackfillMax));
        }
        while (parent->children.size() < *index) parent->children.emplace_back("", null_value());
    }
    const std::size_t created = parts_found_ + 1;
    for (std::size_t i = parts_found_; i < path_.size(); ++i) {
        const bool last = i + 1 == path_.size();
        // Between the first new part and the last there are documents, also for numeric names.
        static const bson::Document nothing;
        const auto empty = nothing.view();
        parent->children.emplace_back(
            path_[i], last ? value : ValueView(Type::Document, empty.data(), empty.size_bytes()));
        EditNode* next = &parent->children.back();
        if (!last) next->expand();
        parent = next;
    }
    node_ = parent;
    parts_found_ = path_.size();
    value_ = value;
    log_.updated(join_parts(path_, created));
    return {};
}

Result<void> Target::set_grown_array(bson::Value computed, std::size_t first_new,
                                     std::size_t count) {
    if (count == 0) return {};
    node_->replace(tree_.keep(std::move(computed)));
    value_ = node_->value;
    for (std::size_t i = 0; i < count; ++i)
        log_.updated(fmt::format("{}.{}", path_.dotted(), first_new + i));
    return {};
}

void Target::unset() {
    if (!exists()) return;
    EditNode* parent = &tree_.root();
    for (std::size_t i = 0; i + 1 < path_.size(); ++i) parent = parent->child(path_[i]);
    if (parent->type == Type::Array) {
        if (value_.is_null()) return;
        node_->replace(null_value());
        value_ = node_->value;
        log_.updated(path_.dotted());
        return;
    }
    parent->children.erase(parent->children.begin() + (node_ - parent->children.data()));
    node_ = parent;
    --parts_found_;
    value_ = {};
    log_.removed(path_.dotted());
}

std::string Target::id_text() const { return element_text("_id", tree_.original().find("_id")); }

}  // namespace angelia::engine::query::update
