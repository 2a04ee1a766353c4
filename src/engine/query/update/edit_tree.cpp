#include "engine/query/update/edit_tree.h"

namespace angelia::engine::query::update {

using bson::Type;
using bson::ValueView;

void EditNode::expand() {
    if (expanded) return;
    for (const bson::Element& e : value.as_document()) children.emplace_back(e.key, e.value);
    expanded = true;
}

EditNode* EditNode::child(std::string_view part) {
    if (type == Type::Array) {
        const auto index = array_index_of(part);
        if (!index) return nullptr;
        expand();
        return *index < children.size() ? &children[*index] : nullptr;
    }
    if (type != Type::Document) return nullptr;
    expand();
    for (EditNode& c : children) {
        if (c.key == part) return &c;
    }
    return nullptr;
}

void EditNode::replace(ValueView v) {
    value = v;
    type = v.type();
    expanded = false;
    children.clear();
}

void EditNode::write_to(bson::Builder& b, std::string_view as_key) const {
    if (!expanded) {
        b.add(as_key, value);
        return;
    }
    if (type == Type::Document) {
        b.open(as_key);
        for (const EditNode& c : children) c.write_to(b, c.key);
    } else {
        b.open_array(as_key);
        std::uint32_t index = 0;
        for (const EditNode& c : children) c.write_to(b, std::to_string(index++));
    }
    b.close();
}

EditTree::EditTree(bson::DocumentView document)
    : original_(document),
      root_("", ValueView(Type::Document, document.data(), document.size_bytes())) {}

EditTree::Located EditTree::locate(const FieldPath& path) {
    EditNode* node = &root_;
    std::size_t found = 0;
    while (found < path.size()) {
        EditNode* next = node->child(path[found]);
        if (next == nullptr) break;
        node = next;
        ++found;
    }
    return {node, found};
}

ValueView EditTree::value_of(const EditNode& node) {
    if (!node.expanded) return node.value;
    bson::Builder b;
    node.write_to(b, "v");
    const bson::Document whole = b.take();
    return keep(bson::Value(whole.find("v")));
}

ValueView EditTree::keep(bson::Value value) {
    kept_.push_back(std::move(value));
    return kept_.back().view();
}

bson::Document EditTree::to_document() const {
    if (!root_.expanded) return bson::Document(original_);
    std::string buffer;
    buffer.reserve(original_.size_bytes() + 256);  // most updates grow a document a little
    bson::Builder b(std::move(buffer));
    for (const EditNode& c : root_.children) c.write_to(b, c.key);
    return b.take();
}

}  // namespace angelia::engine::query::update
