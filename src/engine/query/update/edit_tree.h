// A document taken apart only along the paths that an update touches.
#pragma once

#include "engine/query/field_path.h"

#include <angelia/bson/builder.h>
#include <angelia/bson/document.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace angelia::engine::query::update {

/// A field or array element: the bytes it had, or children once somebody looked inside.
struct EditNode {
    std::string_view key;   ///< not used in arrays, which count anew
    bson::ValueView value;  ///< while not expanded
    bson::Type type = bson::Type::Missing;
    bool expanded = false;
    std::vector<EditNode> children;

    EditNode(std::string_view k, bson::ValueView v) : key(k), value(v), type(v.type()) {}
    bool is_container() const { return type == bson::Type::Document || type == bson::Type::Array; }
    void expand();
    /// The child that a path part names: a field, or an array element by index; nullptr when there
    /// is none. Expands.
    EditNode* child(std::string_view part);
    void replace(bson::ValueView v);
    void write_to(bson::Builder& b, std::string_view as_key) const;
};

/// Views handed in (keys and values) must outlive the tree. Not thread-safe.
class EditTree {
  public:
    explicit EditTree(bson::DocumentView document);

    EditNode& root() { return root_; }
    bson::DocumentView original() const { return original_; }

    /// How far a path exists: `node` is what parts [0, parts_found) lead to.
    struct Located {
        EditNode* node;
        std::size_t parts_found;
    };
    Located locate(const FieldPath& path);

    /// The value of a node as bytes.
    bson::ValueView value_of(const EditNode& node);
    /// Keeps a computed value as long as the tree lives.
    bson::ValueView keep(bson::Value value);

    bson::Document to_document() const;

  private:
    bson::DocumentView original_;
    EditNode root_;
    std::deque<bson::Value> kept_;  ///< a deque, so that views stay valid
};

}  // namespace angelia::engine::query::update
