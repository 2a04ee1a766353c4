// Wire messages as anybody may send them: one message of the input's length. Nothing crashes; an
// accepted message is what its bytes say.
#include "fuzz_check.h"

#include "wire/codec.h"

#include <angelia/bson/validate.h>

#include <cstring>
#include <string>

namespace bson = angelia::bson;
namespace wire = angelia::wire;

namespace {

bool inside(std::string_view whole, std::string_view part) {
    return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

void check_accepted(std::string_view bytes, const wire::Message& message) {
    FUZZ_CHECK(inside(bytes, message.body.bytes()));
    FUZZ_CHECK(!message.body.empty());
    FUZZ_CHECK(bson::validate(message.body.bytes()).has_value());
    FUZZ_CHECK(message.sequences.size() <= wire::kSequencesMax);
    for (const auto& sequence : message.sequences) {
        FUZZ_CHECK(inside(bytes, sequence.name));
        FUZZ_CHECK(!message.body.has(sequence.name));
        for (const auto& document : sequence.documents)
            FUZZ_CHECK(inside(bytes, document.bytes()) &&
                       bson::validate(document.bytes()).has_value());
    }
    if (message.legacy_query) return;
    // Written again, it means the same.
    std::vector<wire::Section> sections;
    for (const auto& sequence : message.sequences)
        sections.push_back({sequence.name, sequence.documents});
    const std::uint32_t flags = (message.more_to_come ? wire::flag::kMoreToCome : 0) |
                                (message.exhaust_allowed ? wire::flag::kExhaustAllowed : 0) |
                                wire::flag::kChecksumPresent;
    const std::string again =
        wire::encode_request(message.header.request_id, flags, message.body, sections);
    const wire::Message same = wire::parse_message(again);
    FUZZ_CHECK(!same.error.has_value());
    FUZZ_CHECK(same.body.identical(message.body) &&
               same.sequences.size() == message.sequences.size() &&
               same.database == message.database);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < wire::kHeaderBytes) return 0;
    std::string bytes(reinterpret_cast<const char*>(data), size);
    const auto length = static_cast<std::int32_t>(size);
    std::memcpy(bytes.data(), &length, sizeof length);
    FUZZ_CHECK(wire::length_allowed(wire::read_header(bytes)));
    const wire::Message message = wire::parse_message(bytes);
    if (message.error) {
        FUZZ_CHECK(!message.error->message.empty());
        FUZZ_CHECK(bson::validate(wire::error_document(*message.error).bytes()).has_value());
    } else {
        check_accepted(bytes, message);
    }
    return 0;
}
