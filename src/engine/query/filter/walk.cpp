// How a path finds values in a document with arrays.
#include "engine/query/filter/node.h"

namespace angelia::engine::query::filter {
namespace {

using bson::Type;
using bson::ValueView;

class PathWalk {
  public:
    PathWalk(const FieldPath& path, const Test& test) : path_(path), test_(test) {}

    /// Walks plain documents from part `at` on; the first array changes the rules.
    bool from_document(bson::DocumentView document, std::size_t at) const {
        for (;;) {
            const ValueView value = document.find(path_[at]);
            ++at;
            if (value.is(Type::Array))
                return at == path_.size() ? at_end(value) : from_array(value.as_document(), at);
            if (at == path_.size()) return test_.matches_value(value);
            if (!value.is(Type::Document))
                return test_.matches_value({});  // a scalar in the middle, or nothing
            document = value.as_document();
        }
    }

  private:
    /// The path ends at an array: each element, then the array as a whole.
    bool at_end(ValueView array) const {
        if (!test_.whole_arrays()) {
            for (const bson::Element& e : array.as_document()) {
                if (test_.matches_value(e.value)) return true;
            }
        }
        return test_.matches_value(array);
    }

    /// The path goes on behind an array: into each element that is a document; a number is an index
    /// as well.
    bool from_array(bson::DocumentView array, std::size_t at) const {
        const auto index = array_index_of(path_[at]);
        std::uint32_t position = 0;  // elements count by position, whatever their names
        for (const bson::Element& e : array) {
            if (e.value.is(Type::Document) && from_document(e.value.as_document(), at)) return true;
            if (index != position++) continue;
            if (at + 1 == path_.size()) {
                if (test_.matches_value(e.value)) return true;
            } else if (e.value.is(Type::Document)) {
                if (from_document(e.value.as_document(), at + 1)) return true;
            } else if (e.value.is(Type::Array)) {
                if (from_array(e.value.as_document(), at + 1)) return true;
            }
        }
        return false;
    }

    const FieldPath& path_;
    const Test& test_;
};

}  // namespace

bool any_value_matches(bson::DocumentView document, const FieldPath& path, const Test& test) {
    return PathWalk(path, test).from_document(document, 0);
}

bool Test::matches_at(bson::DocumentView document, const FieldPath& path) const {
    return any_value_matches(document, path, *this);
}

bool AllOfTest::matches_value(ValueView value) const {
    for (const TestPtr& child : children_) {
        if (!child->matches_value(value)) return false;
    }
    return true;
}

bool AllOfTest::matches_at(bson::DocumentView document, const FieldPath& path) const {
    for (const TestPtr& child : children_) {
        if (!child->matches_at(document, path)) return false;
    }
    return true;
}

bool GroupNode::matches(bson::DocumentView document) const {
    if (kind() == Kind::And) {
        for (const NodePtr& child : children_) {
            if (!child->matches(document)) return false;
        }
        return true;
    }
    bool any = false;
    for (const NodePtr& child : children_) {
        if (child->matches(document)) {
            any = true;
            break;
        }
    }
    return kind() == Kind::Or ? any : !any;
}

}  // namespace angelia::engine::query::filter
