// The keys of a document in an index: one for each way through its arrays.
#include "engine/query/key_encoding.h"

#include <angelia/bson/builder.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace angelia::engine::query {
namespace {

using bson::Type;
using bson::ValueView;

/// How far the walk along one field of the pattern has come.
struct KeySlot {
    enum class State {
        Walking,
        InArray,  ///< `value` is an array whose elements are still to be taken one by one
        Done,     ///< `value` is the field's part of the key
    };
    ValueView value;
    std::size_t next_part = 0;  ///< parts of the path that are used up
    State state = State::Walking;

    void finish(ValueView v) {
        value = v;
        state = State::Done;
    }
};
using KeySlots = std::vector<KeySlot>;

/// Elements count by position, whatever their names.
ValueView element_at(bson::DocumentView array, std::uint32_t index) {
    for (const bson::Element& e : array) {
        if (index-- == 0) return e.value;
    }
    return {};
}

class KeyWalk {
  public:
    using Emit = std::function<void(const KeySlots&)>;
    KeyWalk(const IndexKeyPattern& pattern, Emit emit)
        : pattern_(pattern), emit_(std::move(emit)) {}

    Result<void> run(bson::DocumentView document) {
        KeySlots slots(pattern_.fields.size());
        for (KeySlot& slot : slots)
            slot.value = ValueView(Type::Document, document.data(), document.size_bytes());
        return advance(std::move(slots));
    }
    bool multikey() const { return multikey_; }

  private:
    const FieldPath& path(std::size_t i) const { return pattern_.fields[i].path; }

    /// Moves each slot forward as far as there is one way only, then takes arrays apart.
    Result<void> advance(KeySlots slots) {
        for (std::size_t i = 0; i < slots.size(); ++i) {
            KeySlot& slot = slots[i];
            const FieldPath& p = path(i);
            while (slot.state == KeySlot::State::Walking) {
                const bool at_end = slot.next_part == p.size();
                if (slot.value.is(Type::Array)) {
                    multikey_ = true;
                    if (!at_end && array_index_of(p[slot.next_part]))
                        return both_readings(std::move(slots), i);
                    slot.state = KeySlot::State::InArray;
                } else if (at_end) {
                    slot.finish(slot.value);
                } else if (slot.value.is(Type::Document)) {
                    slot.value = slot.value.as_document().find(p[slot.next_part++]);
                } else {
                    slot.finish({});
                }
            }
        }
        return expand(slots);
    }

    /// A number behind an array is an index into it, and also a field name in its elements when one
    /// of them has such a field.
    Result<void> both_readings(KeySlots slots, std::size_t i) {
        KeySlot& slot = slots[i];
        const std::string& part = path(i)[slot.next_part];
        const bson::DocumentView array = slot.value.as_document();
        const ValueView at_index = element_at(array, *array_index_of(part));
        const bool as_name = std::any_of(array.begin(), array.end(), [&](const bson::Element& e) {
            return e.value.is(Type::Document) && e.value.as_document().has(part);
        });
        if (as_name) {
            KeySlots named = slots;
            named[i].state = KeySlot::State::InArray;
            ANGELIA_TRY(advance(std::move(named)));
            if (at_index.is_missing()) return {};
        }
        slot.value = at_index;
        ++slot.next_part;
        return advance(std::move(slots));
    }

    Result<void> expand(const KeySlots& slots) {
        const KeySlot* first = nullptr;
        for (const KeySlot& slot : slots) {
            if (slot.state != KeySlot::State::InArray) continue;
            if (first != nullptr && slot.value.data() != first->value.data())
                return parallel(slots);
            first = &slot;
        }
        if (first == nullptr) {
            emit_(slots);
            return {};
        }
        const bson::DocumentView array = first->value.as_document();
        if (array.empty()) return step_into(slots, ValueView(Type::Undefined, array.data(), 0));
        for (const bson::Element& e : array) ANGELIA_TRY(step_into(slots, e.value));
        return {};
    }

    /// Puts one element in the place of the array in all slots that stand at it. Only documents are
    /// entered: an array directly in an array is not unwrapped.
    Result<void> step_into(KeySlots slots, ValueView element) {
        for (std::size_t i = 0; i < slots.size(); ++i) {
            KeySlot& slot = slots[i];
            if (slot.state != KeySlot::State::InArray) continue;
            if (slot.next_part == path(i).size()) {
                slot.finish(element);
            } else if (element.is(Type::Document)) {
                slot.value = element;
                slot.state = KeySlot::State::Walking;
            } else {
                slot.finish({});
            }
        }
        return advance(std::move(slots));
    }

    Result<void> parallel(const KeySlots& slots) const {
        std::string names;
        for (std::size_t i = 0; i < slots.size(); ++i) {
            if (slots[i].state == KeySlot::State::InArray)
                names += fmt::format(" [{}]", path(i).dotted());
        }
        return Error(ErrorCode::CannotIndexParallelArrays, "cannot index parallel arrays" + names);
    }

    const IndexKeyPattern& pattern_;
    Emit emit_;
    bool multikey_ = false;
};

bool no_field_there(const KeySlots& slots) {
    return std::all_of(slots.begin(), slots.end(),
                       [](const KeySlot& s) { return s.value.is_missing(); });
}

std::string encode_slots(const IndexKeyPattern& pattern, const KeySlots& slots) {
    std::string key;
    for (std::size_t i = 0; i < slots.size(); ++i)
        append_key(key, slots[i].value, pattern.fields[i].descending);
    return key;
}

Error bad_key_pattern(std::string message) {
    return {ErrorCode::CannotCreateIndex, std::move(message)};
}

}  // namespace

Result<IndexKeys> index_keys(const IndexKeyPattern& pattern, bson::DocumentView document,
                             bool sparse) {
    IndexKeys result;
    KeyWalk walk(pattern, [&](const KeySlots& slots) {
        if (sparse && no_field_there(slots)) return;
        result.keys.push_back(encode_slots(pattern, slots));
    });
    ANGELIA_TRY(walk.run(document));
    result.multikey = walk.multikey();
    std::sort(result.keys.begin(), result.keys.end());
    result.keys.erase(std::unique(result.keys.begin(), result.keys.end()), result.keys.end());
    return result;
}

bson::Document key_values(const IndexKeyPattern& pattern, bson::DocumentView document,
                          std::string_view encoded_key) {
    bson::Document result;
    KeyWalk walk(pattern, [&](const KeySlots& slots) {
        if (!result.empty() || encode_slots(pattern, slots) != encoded_key) return;
        bson::Builder b;
        for (std::size_t i = 0; i < slots.size(); ++i) {
            const std::string& name = pattern.fields[i].path.dotted();
            if (slots[i].value.is_missing()) {
                b.add(name, bson::Null{});
            } else {
                b.add(name, slots[i].value);
            }
        }
        result = b.take();
    });
    if (!walk.run(document))
        return {};  // parallel arrays have no keys, so none of them is `encoded_key`
    return result;
}

Result<IndexKeyPattern> IndexKeyPattern::parse(bson::DocumentView key) {
    IndexKeyPattern pattern;
    for (const bson::Element& e : key) {
        if (e.key.empty()) return bad_key_pattern("Index keys cannot be an empty field.");
        ANGELIA_TRY_ASSIGN(FieldPath path, FieldPath::parse(e.key));
        Field field{std::move(path), false};
        for (const std::string& part : field.path.parts()) {
            if (part.empty())
                return bad_key_pattern(
                    fmt::format("Index key '{}' cannot contain an empty path component", e.key));
            if (part[0] == '$') {
                return bad_key_pattern(fmt::format(
                    "Index key contains an illegal field name '{}': wildcard indexes and names "
                    "starting with '$' are not supported",
                    e.key));
            }
        }
        if (const auto kind = e.value.get_string()) {
            return bad_key_pattern(
                fmt::format("Unknown or unsupported index plugin '{}' for key '{}': use 1 or -1",
                            *kind, e.key));
        }
        const auto direction = e.value.to_double();
        if (!direction || *direction == 0 || *direction != *direction) {
            return bad_key_pattern(fmt::format(
                "Values in v:2 index key pattern must be non-zero numbers, which '{}' is not",
                e.key));
        }
        field.descending = *direction < 0;
        for (const Field& other : pattern.fields) {
            if (other.path == field.path)
                return bad_key_pattern(fmt::format("Index key '{}' is given twice", e.key));
        }
        pattern.fields.push_back(std::move(field));
    }
    if (pattern.fields.empty()) return bad_key_pattern("Index keys cannot be empty.");
    if (pattern.fields.size() > 32) return bad_key_pattern("An index may have at most 32 fields");
    return pattern;
}

bson::Document IndexKeyPattern::to_document() const {
    bson::Builder b;
    for (const Field& field : fields)
        b.add(field.path.dotted(), std::int32_t{field.descending ? -1 : 1});
    return b.take();
}

}  // namespace angelia::engine::query
