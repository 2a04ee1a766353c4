// The oplog: every change of the store in commit order, written in the same batch as the change.
// Format: docs/formats/oplog.md. The newest entries stay in memory (the tail); older ones are read
// from the store.
#pragma once

#include "engine/storage/storage.h"

#include <angelia/bson/builder.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace angelia::engine {

using Uuid = std::array<std::uint8_t, 16>;

enum class OpKind : char {
    Insert = 'i',
    Update = 'u',   ///< operator update: payload {updatedFields, removedFields, truncatedArrays}
    Replace = 'r',  ///< payload: the new document
    Delete = 'd',
    Command = 'c',  ///< DDL: payload {create|drop|...: name, ...}, see change_streams.h
    Noop = 'n',
};

/// What the write path says about one change. Views need to live only during encode().
struct OplogFields {
    OpKind kind = OpKind::Noop;
    std::string_view db;
    std::string_view collection;  ///< empty for dropDatabase and no-ops
    std::uint32_t collection_id = 0;
    Uuid uuid{};
    bson::ValueView id;  ///< the document's _id; missing for commands
    bson::DocumentView payload;
    bson::Date wall;
    bson::DocumentView lsid;  ///< empty when not a retryable write
    std::int64_t txn_number = 0;
    std::int32_t stmt_id = -1;
    /// Part of a multi-document transaction: its event carries lsid and txnNumber.
    bool in_transaction = false;
    /// The document before and after the change, kept while its collection asks for images; empty
    /// = not kept. A document after a change is kept for updates only (the payload has the others).
    bson::DocumentView before_image, after_image;
};

/// One encoded entry; shared between batch, tail and streams. Immutable. Threads: safe.
class OplogEntry {
  public:
    static std::shared_ptr<const std::string> encode(const OplogFields& fields);
    /// Errors: InternalError when the version byte is unknown or bytes are damaged.
    static Result<OplogEntry> decode(bson::Timestamp time, std::uint32_t sub,
                                     std::shared_ptr<const std::string> bytes);

    bson::Timestamp time() const { return time_; }
    std::uint32_t sub() const { return sub_; }
    OpKind kind() const { return kind_; }
    std::string_view db() const { return db_; }
    std::string_view collection() const { return collection_; }
    std::uint32_t collection_id() const { return collection_id_; }
    const Uuid& uuid() const { return uuid_; }
    bson::ValueView id() const { return id_; }
    bson::DocumentView payload() const { return payload_; }
    bson::Date wall() const { return wall_; }
    bson::DocumentView lsid() const { return lsid_; }
    std::int64_t txn_number() const { return txn_number_; }
    std::int32_t stmt_id() const { return stmt_id_; }
    bool in_transaction() const { return in_transaction_; }
    bson::DocumentView before_image() const { return before_image_; }  ///< empty: not kept
    bson::DocumentView after_image() const { return after_image_; }    ///< empty: not kept
    const std::shared_ptr<const std::string>& bytes() const { return bytes_; }

  private:
    std::shared_ptr<const std::string> bytes_;
    bson::Timestamp time_;
    std::uint32_t sub_ = 0;
    OpKind kind_ = OpKind::Noop;
    std::string_view db_, collection_;
    std::uint32_t collection_id_ = 0;
    Uuid uuid_{};
    bson::ValueView id_;
    bson::DocumentView payload_, lsid_, before_image_, after_image_;
    bson::Date wall_;
    std::int64_t txn_number_ = 0;
    std::int32_t stmt_id_ = -1;
    bool in_transaction_ = false;
};

/// A place between entries: everything up to and including (time, sub) has been read.
struct OplogPosition {
    bson::Timestamp time;
    std::uint32_t sub = 0xFFFFFFFF;
    auto operator<=>(const OplogPosition&) const = default;
};

/// Reading and trimming. Threads: safe.
class Oplog {
  public:
    using Entries = std::vector<std::shared_ptr<const OplogEntry>>;

    /// A face of the storage's oplog; may be attached more than once, must go before the storage.
    static std::unique_ptr<Oplog> attach(storage::Storage& storage);
    virtual ~Oplog() = default;

    /// Up to `limit` durable entries after `after`, oldest first, never one above the durable
    /// watermark, never with a hole. At most `bytes_max` (but at least one entry). Errors:
    /// ChangeStreamHistoryLost when entries after `after` may have been trimmed.
    virtual Result<Entries> read(OplogPosition after, std::size_t limit, std::size_t bytes_max) = 0;

    virtual bson::Timestamp oldest()
        const = 0;  ///< everything at or after it is there; nothing before is promised
    virtual bson::Timestamp newest_durable() const = 0;

    /// Called, in order, with the entries that became durable, on the thread that advanced the
    /// watermark: keep it short.
    using Listener = std::function<void(const Entries&)>;
    enum class ListenerId : std::uint64_t {};
    virtual ListenerId add_listener(Listener listener) = 0;
    virtual void remove_listener(
        ListenerId id) = 0;  ///< on return the listener is not running and will not run

    /// Trims to the configured size: moves the `oldest` mark durably first, then deletes.
    virtual Result<void> trim() = 0;
    /// Everything before `time` goes. For tests and drills.
    virtual Result<void> trim_before(bson::Timestamp time) = 0;
};

}  // namespace angelia::engine
