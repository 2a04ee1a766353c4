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
    Create,  // this one and the next two only with showExpandedEvents
    CreateIndexes,
    DropIndexes,
    Invalidate,  // made by the stream, behind a drop or dropDatabase
};
inline constexpr std::size_t kOperationCount = 11;

std::string_view operation_name(Operation operation);
bool is_expanded_only(Operation operation);
Operation operation_of(const OplogEntry& entry);

/// Views into the entry. The collection is empty for dropDatabase.
struct EventNamespace {
    std::string_view db;
    std::string_view collection;
};
EventNamespace namespace_of(const OplogEntry& entry);

/// The options that change the bytes of an event; streams of equal shape share them.
struct EventShape {
    bool expanded = false;
    bool null_after_image = false;   ///< update: `fullDocument: null` (there are no stored images)
    bool null_before_image = false;  ///< update, replace, delete: `fullDocumentBeforeChange: null`
    std::uint8_t key() const {
        return static_cast<std::uint8_t>((expanded ? 1 : 0) | (null_after_image ? 2 : 0) |
                                         (null_before_image ? 4 : 0));
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
