// The one field an operator acts on, and the record of what was changed.
#pragma once

#include "engine/query/update.h"
#include "engine/query/update/edit_tree.h"

namespace angelia::engine::query::update {

/// What an update changed, in the terms of a change event. The values are taken from the finished
/// tree.
class ChangeLog {
  public:
    void updated(std::string path);
    void removed(std::string path) { removed_.push_back(std::move(path)); }
    bool empty() const { return updated_.empty() && removed_.empty(); }
    UpdateDescription describe(EditTree& tree) const;

  private:
    std::vector<std::string> updated_;
    std::vector<std::string> removed_;
};

class Target {
  public:
    Target(EditTree& tree, ChangeLog& log, const FieldPath& path, const ApplyContext& context);

    const FieldPath& path() const { return path_; }
    const ApplyContext& context() const { return context_; }
    EditTree& tree() { return tree_; }
    ChangeLog& log() { return log_; }

    /// Missing when the path leads nowhere.
    bson::ValueView value() const { return value_; }
    bool exists() const { return !value_.is_missing(); }

    /// Puts `value` (which outlives the tree: operand, or kept) in its place, making what lacks on
    /// the way. Same type and bytes: no change. Errors: PathNotViable, CannotBackfillArray.
    Result<void> set(bson::ValueView value);
    Result<void> set(bson::Value computed) { return set(tree_.keep(std::move(computed))); }
    /// As set() with an array that only grew: the elements from `first_new` on are logged one by
    /// one.
    Result<void> set_grown_array(bson::Value computed, std::size_t first_new, std::size_t count);
    /// Removes the field; an array element becomes null. Does nothing when it is not there.
    void unset();

    /// "{_id: 1}", for messages.
    std::string id_text() const;

  private:
    Result<void> create(bson::ValueView value);
    EditTree& tree_;
    ChangeLog& log_;
    const FieldPath& path_;
    const ApplyContext& context_;
    EditNode* node_;  ///< deepest existing node on the path
    std::size_t parts_found_;
    bson::ValueView value_;
};

/// `{key: value}` for messages.
std::string element_text(std::string_view key, bson::ValueView value);

}  // namespace angelia::engine::query::update
