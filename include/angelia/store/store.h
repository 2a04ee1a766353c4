// The store port: what messaging and the outbox ask of a document database, in MongoDB's own
// language of filters and updates. About a dozen verbs, each taking a batch. Adapters: embedded
// engine, any MongoDB. One contract suite runs on all of them (tests/contract/). Several writes
// become one with a transaction: with_transaction(), or a Session of one's own.
//
// `Store` is a cheap handle (copy it); it checks arguments before the adapter sees them. Threads:
// everything is safe; calls block until the store answered (a write: until it is durable in the
// sense of the write concern), never longer than `deadline`.
#pragma once

#include <angelia/base/clock.h>
#include <angelia/base/log.h>
#include <angelia/base/result.h>
#include <angelia/bson/builder.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace angelia::store {

struct CollectionName {
    std::string db;
    std::string collection;
    std::string full() const { return db + "." + collection; }
    auto operator<=>(const CollectionName&) const = default;
};

enum class Acknowledge : std::uint8_t {
    Default,   ///< what the server defaults to
    Majority,  ///< explicit {w: "majority"}: locks and marks ask for it
    None,      ///< {w: 0}: fire and forget
};

/// What the reads of a transaction see.
enum class ReadConcern : std::uint8_t {
    Snapshot,  ///< one moment, whatever others commit meanwhile
    Majority,
    Local,
};

struct TransactionOptions {
    ReadConcern read_concern = ReadConcern::Snapshot;
    Acknowledge acknowledge = Acknowledge::Default;  ///< of the commit; not None
    milliseconds max_commit_time{30'000};            ///< behind it the commit's outcome is unknown

    // -- with_transaction only
    /// No new attempt begins after so long (the drivers' limit).
    milliseconds retry_for{120'000};
    const Clock* clock = &real_clock();
    /// How to wait between attempts; empty: sleep. Simulations turn their clock.
    std::function<void(microseconds)> pause;
    std::uint64_t jitter_seed = 0;  ///< of the back-off; 0 = a random one
};

/// Reads and writes of one client, one after another: they see what was written in the session
/// before (causal consistency), and between start and commit they are a transaction. Ask a store
/// for one, name it in CallOptions::session of that store's verbs.
///
/// A transaction sees one moment and its own writes. A statement that fails ends it, also when only
/// one write of a batch failed: the verb answers with that error, nothing of the transaction
/// remains, and what is left to do is abort. It ends by itself after a minute (servers'
/// transactionLifetimeLimitSeconds), when the session is destroyed and when the store is closed.
/// Errors carry the drivers' labels: TransientTransactionError, the whole transaction may be tried
/// again; UnknownTransactionCommitResult, the commit may. with_transaction() does both.
///
/// Threads: one call at a time; another one at the same time is refused with
/// ConflictingOperationInProgress and changes nothing.
class Session {
  public:
    virtual ~Session() = default;
    /// The next verbs of this session are one transaction; the server hears of it with the first.
    /// Errors: ConflictingOperationInProgress (one is open), InvalidOptions, IllegalOperation (the
    /// server has no transactions; says what to do), ShutdownInProgress.
    virtual Result<void> start_transaction(const TransactionOptions& options = {}) = 0;
    /// Makes everything visible and durable at once. May be called again when the outcome is
    /// unknown. Errors: NoSuchTransaction, WriteConflict, and those of writes.
    virtual Result<void> commit_transaction() = 0;
    /// Nothing of the transaction remains. That the server has ended it already, or cannot be
    /// reached, is no error. Errors: NoSuchTransaction (none was started, or it was aborted),
    /// TransactionCommitted.
    virtual Result<void> abort_transaction() = 0;
    /// From start to commit or abort; a statement that failed does not change it.
    virtual bool in_transaction() const = 0;
};

struct CallOptions {
    Acknowledge acknowledge = Acknowledge::Default;
    milliseconds timeout{30'000};
    Session* session = nullptr;  ///< not owned; of the same store
    /// The caller sends the same writes again when an error leaves open whether they took effect,
    /// and twice does no harm: an adapter may use what is not repeated by itself.
    bool repeatable = false;
};

/// One failed write of a batch.
struct WriteError {
    std::size_t index = 0;  ///< position in the batch
    Error error;            ///< DuplicateKey, BSONObjectTooLarge, ...
};

struct InsertResult {
    std::int64_t inserted = 0;
    std::vector<WriteError> errors;  ///< with ordered = false: one per failed document
};

struct UpdateOp {
    bson::Document filter;
    bson::Document update;  ///< operators, or a whole document (replacement)
    bool multi = false;
    bool upsert = false;
};

struct UpdateResult {
    std::int64_t matched = 0;  ///< without upserts
    std::int64_t modified = 0;
    std::vector<std::pair<std::size_t, bson::Value>> upserted;  ///< position in the batch, _id
    std::vector<WriteError> errors;
    /// Per operation, in order: did it modify or upsert something? Empty where the adapter cannot
    /// tell (a batch on a MongoDB server).
    std::vector<bool> effective;
};

struct DeleteOp {
    bson::Document filter;
    bool multi = false;
};

struct DeleteResult {
    std::int64_t deleted = 0;
    std::vector<WriteError> errors;
};

/// One write of a bulk; `document` for inserts.
struct BulkOp {
    enum class Kind : std::uint8_t { Insert, Update, Delete } kind = Kind::Insert;
    CollectionName collection;
    bson::Document document;
    UpdateOp update;
    DeleteOp remove;
};
struct BulkResult {
    std::int64_t inserted = 0, matched = 0, modified = 0, deleted = 0, upserted = 0;
    std::vector<WriteError> errors;
    /// Per operation, in order: did it insert, change or delete something? Empty where the adapter
    /// cannot tell.
    std::vector<bool> effective;
};

struct FindRequest {
    CollectionName collection;
    bson::Document filter, projection, sort;
    std::int64_t skip = 0;
    std::int64_t limit =
        0;  ///< 0 = all; the result is held in memory, so set one where it may be large
};

struct FindAndModifyRequest {
    CollectionName collection;
    bson::Document filter, sort, projection;
    bson::Document update;  ///< ignored when `remove`
    bool remove = false;
    bool upsert = false;
    bool return_new = false;
};

/// Claims several documents: for each candidate a lock document is inserted, and the documents
/// whose lock was won are updated if they still match `condition`. The embedded engine does both in
/// one commit; on MongoDB it is one unordered insert and conditional updates, and a crash between
/// them leaves a lock whose lease runs out, never a lost message.
struct ClaimRequest {
    CollectionName locks;
    CollectionName documents;
    struct Candidate {
        bson::Document lock;       ///< `_id` = the document's `_id`
        bson::Document condition;  ///< filter on `documents`, includes `_id`
        bson::Document update;  ///< operators for the won document; must change something: adapters
                                ///< differ on whether an update without effect claims
        /// When set: a lock that exists and equals this filter (its exact old values) is taken over
        /// by replacing it.
        std::optional<bson::Document> take_over;
    };
    std::vector<Candidate> candidates;
    bool return_documents = true;  ///< the claimed documents as they are after the update
};
struct ClaimResult {
    enum class Outcome : std::uint8_t {
        Claimed,
        Locked,   ///< somebody else holds the lock
        Changed,  ///< lock won, but the document is gone or no longer matches; the lock was
                  ///< released again
    };
    struct Entry {
        Outcome outcome = Outcome::Locked;
        std::optional<Error> error;  ///< why it failed, when it was not another holder or a change:
                                     ///< a bad lock (Locked) or update (Changed)
        std::optional<bson::Document> document;  ///< when claimed and asked for
    };
    std::vector<Entry> entries;  ///< same order and size as candidates
};

struct IndexDefinition {
    std::string name;
    bson::Document key;
    bool unique = false;
    bool sparse = false;
    std::optional<std::int32_t> expire_after_seconds;
};

struct WatchRequest {
    CollectionName collection;
    bson::Document
        stages;  ///< as an array's document: stages behind $changeStream, e.g. [{$match: ...}]
    bool update_lookup = false;
    std::optional<bson::Document> resume_after;
    std::optional<bson::Timestamp> start_at;
    std::int32_t batch_size = 100;
    milliseconds max_wait{2500};  ///< heartbeat: at most so long without a reply
};

/// What a watch tells its owner; called one after another, never at the same time, from a thread of
/// the adapter or, on an embedded store in memory, inside the store call of the thread that wrote:
/// hand work on, do no I/O, take no lock that is held during store calls.
struct WatchEvents {
    /// A reply of the server, also an empty one (the first after on_started, and heartbeats).
    /// `token`: adopt it once all of `events` were handed over.
    std::function<void(std::vector<bson::Document> events, const bson::Document& token)> on_batch;
    /// The stream (re)started. `gap`: events may have been missed since the last token (fresh
    /// start, history lost): look at the collection.
    std::function<void(bool gap)> on_started;
    /// The stream is down; the adapter goes on trying (with back-off) until the Watch is closed,
    /// unless `fatal` (change streams not supported here).
    std::function<void(const Error& error, bool fatal)> on_error;
};

/// A running watch. Destroying it closes it; afterwards no function of its WatchEvents runs.
class Watch {
  public:
    virtual ~Watch() = default;
    virtual void close() = 0;
    virtual bool live() const = 0;  ///< last reply younger than max_wait + 10 s
};

/// What was found out by trying, never inferred from a version.
struct Capabilities {
    bool change_streams = false;
    bool transactions = false;
    bool start_after = false;
    bool batch_tokens = false;      ///< postBatchResumeToken
    bool fills_timestamps = false;  ///< empty top-level Timestamp on insert
    bool ttl_indexes = false;
    std::string topology;  ///< "replica set rs0", "standalone", "sharded", "embedded"
    std::string server_version;
};

struct ServerTime {
    bson::Date now;  ///< server's wall clock
    microseconds round_trip{0};
};

/// For `doctor` and people only; messaging never uses it.
class Diagnostics {
  public:
    virtual ~Diagnostics() = default;
    virtual Result<bson::Document> run_command(std::string_view db, bson::DocumentView command) = 0;
    /// Hours that the change log reaches back; an error where it may not be read.
    virtual Result<double> log_window_hours() = 0;
    virtual Result<microseconds> write_latency(const CollectionName& scratch, int writes) = 0;
};

/// The port. Implemented by adapters, wrapped by Store.
class StoreAdapter {
  public:
    virtual ~StoreAdapter() = default;
    virtual Result<InsertResult> insert(const CollectionName&, std::span<const bson::DocumentView>,
                                        bool ordered, const CallOptions&) = 0;
    virtual Result<std::vector<bson::Document>> find(const FindRequest&, const CallOptions&) = 0;
    virtual Result<UpdateResult> update(const CollectionName&, std::vector<UpdateOp>, bool ordered,
                                        const CallOptions&) = 0;
    virtual Result<std::optional<bson::Document>> find_and_modify(FindAndModifyRequest,
                                                                  const CallOptions&) = 0;
    virtual Result<DeleteResult> remove(const CollectionName&, std::vector<DeleteOp>, bool ordered,
                                        const CallOptions&) = 0;
    virtual Result<BulkResult> bulk_write(std::vector<BulkOp>, bool ordered,
                                          const CallOptions&) = 0;
    virtual Result<ClaimResult> claim(ClaimRequest, const CallOptions&) = 0;
    virtual Result<std::int64_t> count(const CollectionName&, bson::DocumentView filter,
                                       const CallOptions&) = 0;
    virtual Result<void> ensure_indexes(const CollectionName&, std::vector<IndexDefinition>,
                                        const CallOptions&) = 0;
    virtual Result<void> drop(const CollectionName&, const CallOptions&) = 0;  ///< absent is fine
    virtual Result<std::vector<std::string>> list_collections(std::string_view db,
                                                              const CallOptions&) = 0;
    virtual Result<std::unique_ptr<Watch>> watch(WatchRequest, WatchEvents) = 0;
    virtual Result<ServerTime> server_time(const CallOptions&) = 0;
    virtual Result<Capabilities> capabilities() = 0;  ///< probed once, then cached
    virtual Result<std::unique_ptr<Session>> start_session() = 0;
    virtual std::unique_ptr<Diagnostics> diagnostics() = 0;
    /// "embedded:./data", "mongodb://127.0.0.1:27027/..." without secrets.
    virtual std::string describe() const = 0;
    virtual Result<void> close() = 0;
};

namespace detail {
template <class R>
struct ValueOf {};
template <class T>
struct ValueOf<Result<T>> {
    using Type = T;
};
template <>
struct ValueOf<Result<void>> {};
}  // namespace detail

/// What applications hold. Same verbs as the port, arguments checked: non-empty names, documents
/// within limits, batches 1..100 000 (an empty batch answers at once with an empty result). Errors
/// of every verb: InvalidNamespace, BSONObjectTooLarge, HostUnreachable, NetworkTimeout,
/// MaxTimeMSExpired, ShutdownInProgress, and those of the server.
///
/// In a transaction: insert, find, update, find_and_modify, remove, bulk_write and count. claim,
/// ensure_indexes, drop and list_collections are refused with OperationNotSupportedInTransaction
/// before the server hears of them; the transaction goes on. capabilities, server_time, watch and
/// diagnostics are no part of a session. In a session `acknowledge` is not None, in its transaction
/// it is Default (the transaction's options say how the commit is acknowledged): InvalidOptions.
class Store {
  public:
    Store() = default;
    explicit Store(std::shared_ptr<StoreAdapter> adapter, std::string database = "angelia")
        : adapter_(std::move(adapter)), database_(std::move(database)) {}

    const std::string& database() const {
        return database_;
    }  ///< from the URI's path, default "angelia"
    CollectionName collection(std::string name) const { return {database_, std::move(name)}; }

    Result<InsertResult> insert(const CollectionName&, std::span<const bson::DocumentView>,
                                bool ordered = true, const CallOptions& = {});
    Result<InsertResult> insert(const CollectionName&, bson::DocumentView document,
                                const CallOptions& = {});
    Result<std::vector<bson::Document>> find(const FindRequest&, const CallOptions& = {});
    Result<UpdateResult> update(const CollectionName&, std::vector<UpdateOp>, bool ordered = true,
                                const CallOptions& = {});
    Result<UpdateResult> update_one(const CollectionName&, bson::DocumentView filter,
                                    bson::DocumentView update, bool upsert = false,
                                    const CallOptions& = {});
    Result<std::optional<bson::Document>> find_and_modify(FindAndModifyRequest,
                                                          const CallOptions& = {});
    Result<DeleteResult> remove(const CollectionName&, std::vector<DeleteOp>, bool ordered = true,
                                const CallOptions& = {});
    Result<BulkResult> bulk_write(std::vector<BulkOp>, bool ordered = true,
                                  const CallOptions& = {});
    Result<ClaimResult> claim(ClaimRequest, const CallOptions& = {});
    Result<std::int64_t> count(const CollectionName&, bson::DocumentView filter,
                               const CallOptions& = {});
    Result<void> ensure_indexes(const CollectionName&, std::vector<IndexDefinition>,
                                const CallOptions& = {});
    Result<void> drop(const CollectionName&, const CallOptions& = {});
    Result<std::vector<std::string>> list_collections(const CallOptions& = {});
    Result<std::unique_ptr<Watch>> watch(WatchRequest, WatchEvents);
    Result<ServerTime> server_time(const CallOptions& = {});
    Result<Capabilities> capabilities();
    /// The store's session, for the caller alone; the connection it may hold is kept until it is
    /// destroyed. Errors: ShutdownInProgress, ExceededTimeLimit (all connections in use).
    Result<std::unique_ptr<Session>> start_session();
    /// Runs `work` in a transaction and commits it. `work` names the session it is given in the
    /// options of its verbs, and returns their errors as they are, labels included.
    ///
    /// A TransientTransactionError (of a statement or of the commit) runs the whole of `work`
    /// again, an UnknownTransactionCommitResult only the commit, with growing pauses and until
    /// `retry_for` is over: `work` may run several times, so what it does besides the store must
    /// bear that, and what it computes starts from nothing each time. Any other error aborts and is
    /// returned. When `work` throws, the transaction is aborted too and the exception becomes an
    /// error: an angelia::Exception the one it carries (so value_or_throw() may be used inside),
    /// others OperationFailed with their text. When `work` itself commits or aborts, that is the
    /// end. Errors: the last one of `work` or of the commit; an error with the label
    /// UnknownTransactionCommitResult leaves open whether it was committed.
    Result<void> with_transaction(const std::function<Result<void>(Session&)>& work,
                                  const TransactionOptions& options = {});
    /// The same for work with a result: with_transaction([&](Session& tx) -> Result<T> {...}).
    template <class Work,
              class T = typename detail::ValueOf<std::invoke_result_t<Work&, Session&>>::Type>
    Result<T> with_transaction(Work work, const TransactionOptions& options = {}) {
        std::optional<T> value;
        const std::function<Result<void>(Session&)> store_value = [&](Session& tx) -> Result<void> {
            ANGELIA_TRY_ASSIGN(value, work(tx));
            return {};
        };
        ANGELIA_TRY(with_transaction(store_value, options));
        return *std::move(value);
    }
    std::unique_ptr<Diagnostics> diagnostics();
    std::string describe() const;
    Result<void> close();  ///< later calls answer ShutdownInProgress
    const std::shared_ptr<StoreAdapter>& adapter() const { return adapter_; }

  private:
    std::shared_ptr<StoreAdapter> adapter_;  ///< shared by all handles of one open store
    std::string database_ = "angelia";
};

}  // namespace angelia::store
