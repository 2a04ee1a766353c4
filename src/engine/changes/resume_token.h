// Where a change stream stands, as a document that clients keep and hand back. Format:
// docs/formats/resume_token.md.
#pragma once

#include <angelia/base/result.h>
#include <angelia/bson/document.h>

#include <array>
#include <cstdint>
#include <string>

namespace angelia::engine::changes {

using StoreId = std::array<std::uint8_t, 8>;

/// A plain value. Its hex texts compare, byte by byte, in the order of the events.
struct ResumeToken {
    enum class Kind : std::uint8_t {
        HighWater = 0x00,  ///< everything before `time` has been seen, nothing of `time` itself
        Event = 0x80,      ///< everything up to and including the entry (time, index) has been seen
    };
    bson::Timestamp time;
    Kind kind = Kind::HighWater;
    std::uint32_t index = 0;       ///< place of the entry among those of its time
    bool from_invalidate = false;  ///< the entry's invalidate has been seen too
    /// The entry made no event for the stream that stood there: its token comes with a batch, not
    /// with an event, and fits every stream.
    bool place_only = false;
    /// Of a split event: its first `fragment` documents have been seen, 1 .. their number. 0 = the
    /// event whole.
    std::uint16_t fragment = 0;
    StoreId store{};

    static ResumeToken high_water(bson::Timestamp time, const StoreId& store);
    static ResumeToken event(bson::Timestamp time, std::uint32_t index, const StoreId& store);
    static ResumeToken place(bson::Timestamp time, std::uint32_t index, const StoreId& store);
    static ResumeToken invalidate(bson::Timestamp time, std::uint32_t index, const StoreId& store);

    std::string to_hex() const;
    /// {_data: "<hex>"}
    bson::Document to_document() const;
    /// Errors: InvalidResumeToken (no `_data` string, length, character, version, or a field that
    /// this version never writes).
    static Result<ResumeToken> parse(bson::DocumentView token);
};

}  // namespace angelia::engine::changes
