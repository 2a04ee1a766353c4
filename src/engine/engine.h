// The face of the embedded engine: one Engine object per data folder and process, shared by its two
// doors (the wire server and store_embedded). A command is parsed once into one of the small
// structs below; there is one execution path.
//
// Calls that change something end in a continuation: `done` runs exactly once, when the change is
// durable in the sense of the store's mode (or failed). Reads answer at once. Nothing here parks a
// thread. Threads: everything is safe.
#pragma once

#include "engine/changes/oplog.h"
#include "engine/query/matcher.h"
#include "engine/query/update.h"
#include "engine/storage/storage.h"

#include <angelia/bson/builder.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace angelia {
class Executor;
}

namespace angelia::engine {

class ChangeStream;
/// The use of an open transaction for one statement (session/session_table.h); held while the
/// statement runs.
class TransactionStatement;
using StatementPtr = std::shared_ptr<TransactionStatement>;  ///< shared by who asks and who runs it

struct Namespace {
    std::string db;
    std::string collection;
    std::string full() const { return db + "." + collection; }
    auto operator<=>(const Namespace&) const = default;
};
/// Errors: InvalidNamespace (contract 1.7: lengths, characters).
Result<void> check_namespace(const Namespace& ns);

/// Faults that tests plant, to see that they are found (tests/transactions).
enum class TransactionMutant : std::uint8_t {
    None,
    NoConflictCheck,
    LateSnapshot,
    IntentsFreedEarly,
    IndexChangesIgnored,
    CommitInTwoBatches,
};

struct EngineOptions {
    storage::Options storage;
    milliseconds ttl_interval{1000};  ///< pause between passes of the TTL monitor
    milliseconds cursor_idle_timeout{600'000};
    microseconds slow_move{
        100};  ///< a scan that takes so long to the next key remembers the gap; 0 (tests): always
    std::string replica_set_name = "rs0";
    bool enable_test_commands = false;
    // -- for tests
    TransactionMutant transaction_mutant = TransactionMutant::None;
};

// ---- writes

enum class WriteKind : std::uint8_t { Insert, Update, Delete };
enum class ReturnImage : std::uint8_t { None, Before, After };

/// One conditional write. Immutable parts are shared so that a caller may keep them.
struct ConditionalWrite {
    WriteKind kind = WriteKind::Insert;
    Namespace ns;
    bson::Document document;  ///< Insert: the document; `_id` is added in front when missing
    std::shared_ptr<const query::Matcher> filter;  ///< Update, Delete
    std::shared_ptr<const query::Update> update;   ///< Update
    bson::Document sort;  ///< picks the first match (findAndModify); empty = any
    bson::Value hint;     ///< index name or key pattern
    bool multi = false;
    bool upsert = false;
    ReturnImage image = ReturnImage::None;
    std::int32_t stmt_id = -1;  ///< position in the retry record; -1 = index in the list
    /// Runs only if the write at this (smaller) index of the same list took effect (inserted,
    /// modified or deleted at least one document).
    std::optional<std::size_t> only_if;
    /// Runs only if the write at this (smaller) index did not take effect. With `only_if` both must
    /// hold.
    std::optional<std::size_t> unless;
};

struct WriteOutcome {
    std::optional<Error> error;  ///< DuplicateKey carries keyPattern and keyValue in details_bson
    std::int64_t matched = 0;    ///< Update: matched, without an upsert. Delete: deleted. Insert: 1
    std::int64_t modified = 0;   ///< documents whose bytes changed
    bson::Value upserted_id;     ///< missing unless an upsert inserted
    std::optional<bson::Document> image;
    bool retried = false;  ///< answered from the retry record
    bool skipped =
        false;  ///< not run: `only_if`, `unless`, or behind the first error of an ordered list
};

/// Identifies a retryable write: same (lsid, txn_number, stmt_id) is executed once (contract 6.5).
struct RetryKey {
    bson::Document lsid;  ///< {id: UUID}
    std::int64_t txn_number = 0;
};

struct WriteRequest {
    std::vector<ConditionalWrite> writes;  ///< 1 .. 100 000, over any namespaces
    bool ordered = true;                   ///< stop at the first error
    bool atomic = false;  ///< all in one batch, and nothing at all when one fails; else long lists
                          ///< may be split into several batches
    std::optional<RetryKey> retry;
    bool wait_durable = true;  ///< false: w:0, `done` runs after applying
    bool create_collections = true;
    SteadyTime deadline = SteadyTime::max();  ///< MaxTimeMSExpired behind it
    /// For tests of retries: asked about each statement of a retryable write that took effect,
    /// before it is committed. An error undoes the statement and is its outcome. Runs inside the
    /// apply section: takes no lock of the engine, waits for nothing.
    std::function<std::optional<Error>()> before_commit;
    StatementPtr statement;  ///< within a transaction; `retry`, `atomic` and `ordered` mean nothing
                             ///< then: the first error ends the transaction
};

struct WriteResult {
    std::vector<WriteOutcome> outcomes;  ///< same order and size as `writes`
    bson::Timestamp operation_time;
};

/// Runs once; a Result error means that the whole request was refused (bad namespace,
/// TransactionTooOld, no disk space, shutdown). May run on the caller's thread before write()
/// returns (memory mode) or on the syncer's: be short.
using WriteDone = std::function<void(Result<WriteResult>)>;
using Done = std::function<void(Result<bson::Timestamp>)>;

// ---- reads

/// readConcern "snapshot" outside of a transaction (contract 6.4): the state of one moment, which
/// the reply names and which may be asked for again for a while.
struct SnapshotRead {
    bool wanted = false;
    std::optional<bson::Timestamp> at;  ///< a time that an earlier reply named; none = now
};

struct FindSpec {
    Namespace ns;
    bson::Document filter, projection, sort;
    bson::Value hint;
    std::int64_t skip = 0;
    std::int64_t limit = 0;  ///< 0 = none
    std::int64_t batch_size = 101;
    bool single_batch = false;
    bool no_cursor_timeout = false;
    bson::Document lsid;  ///< session the cursor belongs to; empty = none
    SteadyTime deadline = SteadyTime::max();
    StatementPtr statement;  ///< within a transaction
    SnapshotRead snapshot;
};

struct CursorBatch {
    std::int64_t cursor_id = 0;  ///< 0 = exhausted
    std::string ns;              ///< "db.coll" as replies show it
    std::vector<bson::Document>
        documents;  ///< at most 16 MiB together, at least one if there is one
    std::optional<bson::Document> post_batch_resume_token;  ///< change streams
    std::optional<bson::Timestamp> at_cluster_time;         ///< snapshot reads
    bson::Timestamp operation_time;
};

struct AggregateSpec {
    Namespace ns;             ///< collection empty for {aggregate: 1}
    bson::Document pipeline;  ///< the stages, as an array's document
    std::int64_t batch_size = 101;
    bson::Value hint;
    bson::Document lsid;
    SteadyTime deadline = SteadyTime::max();
    StatementPtr statement;
    SnapshotRead snapshot;
};

struct GetMoreSpec {
    std::int64_t cursor_id = 0;
    Namespace ns;                 ///< must be the cursor's (else Unauthorized)
    std::int64_t batch_size = 0;  ///< 0 = no limit but the size
    std::optional<milliseconds>
        max_wait;  ///< change streams: wait so long for the first event (default 1 s)
    bson::Document lsid;
    /// For tests of resuming: asked once the cursor is found and belongs to the caller. An error
    /// ends the cursor, unless it is a change stream's, and is the answer.
    std::function<std::optional<Error>(bool change_stream)> after_checkout;
    StatementPtr statement{};  ///< within a transaction, which must be the cursor's
    /// Change streams: runs a step of the wait where the answer goes out anyway, which saves the
    /// hand-over from a worker. False: not any more. Empty: a worker runs it.
    std::function<bool(std::function<void()>)> run_on{};
};

/// Documents that are there already, handed out as a cursor does.
struct ResultCursorSpec {
    Namespace ns;
    std::vector<bson::Document> documents;
    std::int64_t batch_size = 101;
    bson::Document lsid;
    StatementPtr statement{};
};

struct CountSpec {
    Namespace ns;
    bson::Document filter;
    std::int64_t skip = 0, limit = 0;
    bson::Value hint;
};

struct KilledCursors {
    std::vector<std::int64_t> killed, not_found;
};

struct CollectionInfo {
    std::string name;
    bson::Document options;
    Uuid uuid{};
    std::uint32_t id = 0;
};

struct IndexSpec {
    std::string name;
    bson::Document key;  ///< {a: 1, "b.c": -1}
    bool unique = false;
    bool sparse = false;
    std::optional<std::int64_t> expire_after_seconds;
    bson::Document partial_filter;  ///< empty = none
    bson::Document
        extra;  ///< options given that are only listed back (hidden, collation simple, ...)
};

struct IndexBuild {
    std::int32_t before = 0, after = 0;
    bool created_collection = false;
    bool all_existed = false;
    bson::Timestamp operation_time;
};

/// What collMod changes; what is not given stays.
struct CollectionChange {
    struct IndexChange {
        std::string name;    ///< or, when empty:
        bson::Document key;  ///< its key pattern
        std::optional<std::int64_t> expire_after_seconds;
        std::optional<bool> hidden;
    };
    std::optional<IndexChange> index;
    std::optional<bool> keep_images;  ///< changeStreamPreAndPostImages
};
/// Only what was asked for, and `hidden` only when it did change.
struct CollectionChanged {
    std::optional<std::int64_t> expire_old, expire_new;
    std::optional<bool> hidden_old, hidden_new;
    bson::Timestamp operation_time;
};

struct RenameOptions {
    bool drop_target = false;         ///< a collection that has the new name goes
    std::optional<Uuid> target_uuid;  ///< but only this one
};

struct CollectionStats {
    std::int64_t count = 0;  ///< exact, also after a crash
    std::int64_t bytes = 0;
    std::vector<IndexSpec> indexes;
};

struct WatchSpec {
    enum class Scope : std::uint8_t { Collection, Database, Deployment };
    Scope scope = Scope::Collection;
    Namespace ns;            ///< the collection need not exist
    bson::Document stages;   ///< pipeline behind $changeStream: $match, $project, ...
    bson::Document options;  ///< the $changeStream stage's own document
};

/// What setParameter changes while the engine runs. Threads: safe.
struct RuntimeSettings {
    std::atomic<std::int64_t> transaction_lifetime_seconds{60};  // MongoDB's default
    std::atomic<std::int64_t> snapshot_window_seconds{60};
};

class Engine {
  public:
    /// Errors: those of Storage::open.
    static Result<std::unique_ptr<Engine>> open(EngineOptions options);
    virtual ~Engine() = default;
    /// Ends streams and cursors (ShutdownInProgress), the TTL monitor, then the store. Pending
    /// continuations run first.
    virtual Result<void> close() = 0;

    // -- data
    virtual void write(WriteRequest request, WriteDone done) = 0;
    virtual Result<CursorBatch> find(const FindSpec& spec) = 0;
    /// Not for $changeStream.
    virtual Result<CursorBatch> aggregate(const AggregateSpec& spec) = 0;
    virtual Result<std::int64_t> count(const CountSpec& spec) = 0;
    /// `done` at once, except on a change stream cursor without events: then when one comes or
    /// max_wait is over.
    virtual void get_more(const GetMoreSpec& spec,
                          std::function<void(Result<CursorBatch>)> done) = 0;
    virtual KilledCursors kill_cursors(const Namespace& ns, std::span<const std::int64_t> ids) = 0;
    /// A cursor over `documents`; the first batch comes at once.
    virtual Result<CursorBatch> open_result_cursor(ResultCursorSpec spec) = 0;
    /// Kills the cursors of a session and aborts its transaction (endSessions, or its time is
    /// over). Its retry record stays until it is swept.
    virtual void end_session(bson::DocumentView lsid) = 0;
    /// The same for every session that `chosen` picks; called with the ids of sessions that own
    /// something.
    virtual void kill_sessions(const std::function<bool(bson::DocumentView lsid)>& chosen) = 0;
    /// The session is still used.
    virtual void refresh_session(bson::DocumentView lsid) = 0;

    // -- transactions (contract 6.2). Errors: session/session_table.h
    /// The use of a transaction for one statement; `start` opens it, on the newest durable state or
    /// on that of a moment which a snapshot read named. Any error of a statement ends the
    /// transaction: call fail() on it then.
    virtual Result<StatementPtr> begin_statement(const RetryKey& key, bool start,
                                                 std::optional<bson::Timestamp> at = {}) = 0;
    /// `done` with the time of the commit, once it is durable. May be called again.
    virtual void commit_transaction(const RetryKey& key, Done done) = 0;
    virtual Result<void> abort_transaction(const RetryKey& key) = 0;
    /// `create` inside a transaction.
    virtual Result<void> create_collection_in(const StatementPtr& statement, const Namespace& ns,
                                              bson::Document options) = 0;
    /// `createIndexes` inside a transaction, on a collection that it made.
    virtual Result<IndexBuild> create_indexes_in(const StatementPtr& statement, const Namespace& ns,
                                                 const std::vector<IndexSpec>& specs) = 0;

    // -- change streams
    /// For in-process readers: no cursor id, no wire. See changes/change_stream.h.
    virtual Result<std::shared_ptr<ChangeStream>> watch(const WatchSpec& spec) = 0;
    /// For the command: a cursor over a new stream, with an empty first batch and its token.
    virtual Result<CursorBatch> open_change_stream_cursor(const WatchSpec& spec,
                                                          std::int64_t batch_size,
                                                          bson::Document lsid) = 0;

    // -- collections and indexes
    virtual void create_collection(
        const Namespace& ns, bson::Document options, Done done,
        SteadyTime deadline = SteadyTime::max()) = 0;  ///< NamespaceExists
    virtual void drop_collection(
        const Namespace& ns, std::function<void(Result<std::int32_t>)> done,
        SteadyTime deadline =
            SteadyTime::max()) = 0;  ///< number of indexes it had; NamespaceNotFound
    virtual void drop_database(const std::string& db, Done done,
                               SteadyTime deadline = SteadyTime::max()) = 0;
    /// NamespaceNotFound, IndexNotFound, InvalidOptions, BadValue
    virtual void modify_collection(const Namespace& ns, CollectionChange change,
                                   std::function<void(Result<CollectionChanged>)> done,
                                   SteadyTime deadline = SteadyTime::max()) = 0;
    /// NamespaceNotFound, NamespaceExists, IllegalOperation, InvalidNamespace. No data is moved.
    virtual void rename_collection(const Namespace& from, const Namespace& to,
                                   RenameOptions options, Done done,
                                   SteadyTime deadline = SteadyTime::max()) = 0;
    virtual void create_indexes(const Namespace& ns, std::vector<IndexSpec> specs,
                                std::function<void(Result<IndexBuild>)> done,
                                SteadyTime deadline = SteadyTime::max()) = 0;
    /// `which`: a name, a key pattern, "*", or an array of names.
    virtual void drop_indexes(const Namespace& ns, bson::Value which,
                              std::function<void(Result<std::int32_t>)> done,
                              SteadyTime deadline = SteadyTime::max()) = 0;
    virtual std::vector<std::string> list_databases() = 0;
    virtual std::vector<CollectionInfo> list_collections(const std::string& db) = 0;
    virtual Result<CollectionStats> collection_stats(
        const Namespace& ns) = 0;  ///< NamespaceNotFound
    virtual Result<std::vector<IndexSpec>> list_indexes(
        const Namespace& ns) = 0;  ///< NamespaceNotFound
    /// Checks records against indexes and back, and the oplog against records: the reply document
    /// of the `validate` command.
    virtual Result<bson::Document> validate(const Namespace& ns) = 0;

    // -- time, state
    virtual storage::Storage& storage() = 0;
    virtual Oplog& oplog() = 0;
    virtual const EngineOptions& options() const = 0;
    virtual RuntimeSettings& settings() = 0;
    virtual bson::Timestamp operation_time() const = 0;  ///< newest durable
    /// For timers of the doors (awaitable hello, failCommand's block): one lane, never for long
    /// work.
    virtual Executor& timers() = 0;
    /// For work over 1 ms; bounded.
    virtual Executor& workers() = 0;
    /// Runs one pass of the TTL monitor now (tests); returns the number of documents deleted.
    virtual Result<std::int64_t> run_ttl_pass() = 0;
    /// Pause between passes of the TTL monitor; set_ holds from now on, also for a pass that is
    /// waiting.
    /// Aborts transactions that are open too long and forgets idle sessions; runs every second by
    /// itself.
    virtual void sweep_sessions() = 0;
    virtual milliseconds ttl_interval() const = 0;
    virtual void set_ttl_interval(milliseconds interval) = 0;
    /// Engine counters for serverStatus: cursors, streams, ttl, write path.
    virtual bson::Document status() const = 0;
};

}  // namespace angelia::engine
