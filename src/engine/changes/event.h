// From an oplog entry to the document that a client of a change stream sees. Contract:
// docs/formats/change_events.md.
#pragma once

#include "engine/changes/oplog.h"
#include "engine/changes/resume_token.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace angelia::engine::changes {

enum class Operation : std::uint8_t {
    None,  ///< no event: no-ops, and commands this version does not know
    Insert,
    Update,
    Replace,
    Delete,
    Drop,
    DropDatabase,
    Rename,
    Create,  // this one and the next three only with showExpandedEvents
    CreateIndexes,
    DropIndexes,
    Modify,
    Invalidate,  // made by the stream, behind what ends it
};
inline constexpr std::size_t kOperationCount = 13;

std::string_view operation_name(Operation operation);
bool is_expanded_only(Operation operation);
Operation operation_of(const OplogEntry& entry);

/// Views into the entry. The collection is empty for dropDatabase.
struct EventNamespace {
    std::string_view db;
    std::string_view collection;
    std::string_view to_db = {};  ///< with the next one: the new name in a rename, else empty
    std::string_view to_collection = {};
};
EventNamespace namespace_of(const OplogEntry& entry);

/// The options that change the bytes of an event; streams of equal shape share them.
struct EventShape {
    bool expanded = false;
    bool after_image = false;   ///< update: `fullDocument` is the image that was kept, or null
    bool before_image = false;  ///< update, replace, delete: `fullDocumentBeforeChange` likewise
    std::uint8_t key() const {
        return static_cast<std::uint8_t>((expanded ? 1 : 0) | (after_image ? 2 : 0) |
                                         (before_image ? 4 : 0));
    }
};

/// The event of an entry whose operation is neither None nor Invalidate.
bson::Document encode_event(const OplogEntry& entry, Operation operation, const EventShape& shape,
                            const StoreId& store);
/// The invalidate behind the event of `entry`.
bson::Document encode_invalidate(const OplogEntry& entry, const StoreId& store);
/// The event with `fullDocument` behind its fields: the document, or null.
bson::Document with_full_document(bson::DocumentView event,
                                  const std::optional<bson::Document>& document);
/// Only what is known without encoding, in the event's own form: {operationType, ns}.
bson::Document encode_probe(Operation operation, const EventNamespace& ns);

}  // namespace angelia::engine::changes
