// The validator against libbson, and everything that trusts validated bytes.
#include "fuzz_check.h"

#include <angelia/bson/compare.h>
#include <angelia/bson/json.h>
#include <angelia/bson/validate.h>

#include "bson/libbson_oracle.h"

#include <string_view>

namespace bson = angelia::bson;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const auto ours = bson::validate(bytes);
    // Bytes behind the document are allowed here and unknown to libbson.
    const bool whole = ours && ours->size_bytes() == size;
    const bool within_limits =
        ours || (ours.error().code != angelia::ErrorCode::Overflow &&
                 ours.error().code != angelia::ErrorCode::BSONObjectTooLarge);
    if (within_limits) FUZZ_CHECK(whole == bson::oracle::libbson_accepts(bytes));
    if (!ours) return 0;

    const bson::DocumentView document = *ours;
    FUZZ_CHECK(bson::compare(document, document) == 0);
    for (const auto mode : {bson::JsonMode::Canonical, bson::JsonMode::Relaxed}) {
        // A stored {"$oid": 1} cannot be told from a value, so reading back may fail, but it may
        // not crash.
        const auto again = bson::from_json(bson::to_json(document, mode));
        if (again) FUZZ_CHECK(bson::validate(again->bytes()).has_value());
    }
    return 0;
}
