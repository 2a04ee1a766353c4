#include "engine/changes/split_event.h"

#include <angelia/bson/builder.h>

#include <algorithm>

namespace angelia::engine::changes {
namespace {

/// `_id` and `splitEvent`, generously.
constexpr std::size_t kFragmentHeadBytes = 256;
/// Fragment numbers have two bytes in a token.
constexpr std::size_t kFragmentsMax = 0xFFFF;

std::size_t element_bytes(const bson::Element& e) {
    return 1 + e.key.size() + 1 + e.value.bytes().size();
}

std::vector<bson::Element> fields_by_size(bson::DocumentView event) {
    std::vector<bson::Element> fields;
    for (const bson::Element& e : event)
        if (e.key != "_id") fields.push_back(e);
    std::stable_sort(fields.begin(), fields.end(),
                     [](const bson::Element& a, const bson::Element& b) {
                         return element_bytes(a) < element_bytes(b);
                     });
    return fields;
}

}  // namespace

Result<std::vector<bson::Document>> split_event(bson::DocumentView event, const ResumeToken& token,
                                                std::size_t bytes_max) {
    std::vector<std::vector<bson::Element>> shares;
    std::size_t bytes = 0;
    for (const bson::Element& field : fields_by_size(event)) {
        const std::size_t size = element_bytes(field);
        if (kFragmentHeadBytes + size > bytes_max)
            return Error(ErrorCode::BSONObjectTooLarge,
                         "Splitting change event failed: the field '" + std::string(field.key) +
                             "' alone has " + std::to_string(size) +
                             " bytes, a fragment may have " + std::to_string(bytes_max));
        if (shares.empty() || bytes + size > bytes_max) {
            shares.emplace_back();
            bytes = kFragmentHeadBytes;
        }
        shares.back().push_back(field);
        bytes += size;
    }
    if (shares.size() > kFragmentsMax)
        return Error(ErrorCode::BSONObjectTooLarge,
                     "Splitting change event failed: it needs too many fragments");
    std::vector<bson::Document> fragments;
    ResumeToken place = token;
    for (std::size_t i = 0; i < shares.size(); ++i) {
        place.fragment = static_cast<std::uint16_t>(i + 1);
        bson::Builder b;
        b.add("_id", place.to_document());
        b.add("splitEvent", bson::make("fragment", static_cast<std::int32_t>(i + 1), "of",
                                       static_cast<std::int32_t>(shares.size())));
        for (const bson::Element& field : shares[i]) b.add(field.key, field.value);
        fragments.push_back(b.take());
    }
    return fragments;
}

}  // namespace angelia::engine::changes
