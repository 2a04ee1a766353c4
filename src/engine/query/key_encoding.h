// Values as bytes whose memcmp order is MongoDB's comparison order, and the keys a document has in
// an index. The format is stored on disk: page docs/formats/index_keys.md.
#pragma once

#include "engine/query/field_path.h"

#include <angelia/base/result.h>
#include <angelia/bson/document.h>

#include <string>
#include <string_view>
#include <vector>

namespace angelia::engine::query {

/// Appends `value` so that memcmp order of the results is bson::compare order (reversed when
/// `descending`) and equal values give equal bytes. No result is a proper prefix of another, so
/// that keys of several values can be put one behind the other. Missing is null. Threads: safe.
void append_key(std::string& out, bson::ValueView value, bool descending = false);

/// The fields of an index (or of a sort) with their directions.
struct IndexKeyPattern {
    struct Field {
        FieldPath path;
        bool descending = false;
    };
    std::vector<Field> fields;

    /// Errors: CannotCreateIndex (no fields, more than 32, an empty or `$` part, a direction that
    /// is not a non-zero number, kinds we do not have: text, hashed, 2d, 2dsphere, wildcard).
    static Result<IndexKeyPattern> parse(bson::DocumentView key);
    bson::Document to_document() const;
};

struct IndexKeys {
    std::vector<std::string>
        keys;  ///< sorted, without duplicates; empty only when `sparse` leaves the document out
    bool multikey = false;  ///< an array stood on the way of some field
};

/// The keys of `document`: arrays give one key for each element (an empty one counts as undefined),
/// a missing field counts as null. `sparse`: documents that have none of the fields get no key.
/// Errors: CannotIndexParallelArrays (two fields of the pattern lead through different arrays).
/// Threads: safe.
Result<IndexKeys> index_keys(const IndexKeyPattern& pattern, bson::DocumentView document,
                             bool sparse);

/// The values of the first key in key order as {field: value}, missing shown as null: `keyValue` of
/// a duplicate key error is found with index_keys() and key_values() on the same document and
/// pattern. Empty when `encoded_key` is none of the document's keys.
bson::Document key_values(const IndexKeyPattern& pattern, bson::DocumentView document,
                          std::string_view encoded_key);

}  // namespace angelia::engine::query
