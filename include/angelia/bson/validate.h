// The door: untrusted bytes become a DocumentView here, once.
#pragma once

#include <angelia/base/result.h>
#include <angelia/bson/document.h>

namespace angelia::bson {

struct ValidateLimits {
    std::size_t bytes_max = kDocumentBytesInternalMax;
    int nesting_max = kNestingMax;
    bool text_utf8 = true;  ///< false: strings and keys may hold any bytes, as documents that other
                            ///< programs stored in a MongoDB do
};

/// Checks in one pass that `bytes` starts with a well-formed document and returns a view of it;
/// bytes behind the document are the caller's business (see size_bytes()). Checked: lengths,
/// closing zeros, known types, UTF-8 of strings and keys, bools 0 or 1, nesting, size. Array keys
/// are not checked, as MongoDB does not. Errors: InvalidBSON (what, at which byte),
/// BSONObjectTooLarge, Overflow (nesting). Threads: safe.
Result<DocumentView> validate(std::string_view bytes, const ValidateLimits& limits = {});

/// True when `text` is well-formed UTF-8 (no surrogates, no overlong forms, at most U+10FFFF).
bool is_utf8(std::string_view text) noexcept;

}  // namespace angelia::bson
