// Extended JSON: what was read prints, and reads again to the same.
#include "fuzz_check.h"

#include <angelia/bson/json.h>
#include <angelia/bson/validate.h>

#include <string>
#include <string_view>

namespace bson = angelia::bson;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto first = bson::from_json({reinterpret_cast<const char*>(data), size});
    if (!first) return 0;
    FUZZ_CHECK(bson::validate(first->bytes()).has_value());

    const auto canonical = bson::from_json(bson::to_json(*first, bson::JsonMode::Canonical));
    FUZZ_CHECK(canonical.has_value());
    FUZZ_CHECK(canonical->bytes() == first->bytes());

    // Relaxed text may lose the width of an integer, but no second time.
    const std::string relaxed_text = bson::to_json(*first, bson::JsonMode::Relaxed);
    const auto relaxed = bson::from_json(relaxed_text);
    FUZZ_CHECK(relaxed.has_value());
    FUZZ_CHECK(bson::to_json(*relaxed, bson::JsonMode::Relaxed) == relaxed_text);
    const auto pretty = bson::from_json(bson::to_json_pretty(*first, bson::JsonMode::Canonical));
    FUZZ_CHECK(pretty.has_value());
    FUZZ_CHECK(pretty->bytes() == first->bytes());
    return 0;
}
