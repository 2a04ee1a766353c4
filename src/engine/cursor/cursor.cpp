#include "engine/cursor/cursor.h"

#include "engine/session/session_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace angelia::engine {

Result<FilledBatch> fill_batch(Cursor& cursor, std::int64_t batch_size) {
    FilledBatch batch;
    std::size_t bytes = 0;
    while (batch_size < 0 || static_cast<std::int64_t>(batch.documents.size()) < batch_size) {
        std::optional<bson::Document> document = std::move(cursor.pending);
        cursor.pending.reset();
        if (!document) {
            ANGELIA_TRY_ASSIGN(document, cursor.source.next());
        }
        if (!document) {
            batch.exhausted = true;
            break;
        }
        if (!batch.documents.empty() && bytes + document->size_bytes() > kBatchReplyBytesMax) {
            cursor.pending = std::move(document);
            break;
        }
        bytes += document->size_bytes();
        batch.documents.push_back(std::move(*document));
    }
    // A batch that came out exactly full leaves the cursor open, unless a limit ends it
    // (contract 3.7).
    if (!batch.exhausted && !cursor.pending && cursor.source.finished()) batch.exhausted = true;
    cursor.source.pause();
    return batch;
}

CursorRegistry::CursorRegistry(Core& core) : core_(core) {
    std::random_device device;
    random_state_ = (std::uint64_t{device()} << 32) ^ device();
}

Result<std::int64_t> CursorRegistry::add(CursorPtr cursor) {
    std::lock_guard lock(mutex_);
    if (closed_) return Error(ErrorCode::ShutdownInProgress, "the engine is shutting down");
    if (cursors_.size() >= kCursorsMax)
        return Error(
            ErrorCode::TemporarilyUnavailable,
            fmt::format(
                "{} cursors are open, no more are allowed; kill some or use a larger batchSize",
                kCursorsMax));
    std::int64_t id = 0;
    do {
        // splitmix64
        std::uint64_t z = (random_state_ += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        id = static_cast<std::int64_t>((z ^ (z >> 31)) >> 1);
    } while (id == 0 || cursors_.count(id) != 0);
    cursor->id = id;
    cursor->last_used = core_.clock().steady_now();
    if (cursor->no_timeout && !cursor->lsid.empty()) {
        kept_sessions_[std::string(cursor->lsid.view().bytes())] = cursor->last_used;
        any_kept_ = true;
    }
    ++opened_;
    cursors_.emplace(id, std::move(cursor));
    return id;
}

Result<CursorPtr> CursorRegistry::check_out(const GetMoreSpec& spec) {
    std::lock_guard lock(mutex_);
    if (closed_) return Error(ErrorCode::ShutdownInProgress, "the engine is shutting down");
    auto it = cursors_.find(spec.cursor_id);
    if (it == cursors_.end())
        return Error(ErrorCode::CursorNotFound,
                     fmt::format("cursor id {} not found", spec.cursor_id));
    auto& cursor = it->second;
    if (cursor->shown_ns != spec.ns.full() && cursor->ns != spec.ns)
        return Error(ErrorCode::Unauthorized,
                     fmt::format("Requested getMore on namespace '{}', but cursor belongs to a "
                                 "different namespace {}",
                                 spec.ns.full(), cursor->shown_ns));
    if (!cursor->lsid.view().identical(spec.lsid))
        return Error(
            ErrorCode::Unauthorized,
            fmt::format("Cannot run getMore on cursor {}, which was not created in this session",
                        spec.cursor_id));
    const auto number = spec.statement
                            ? std::optional(spec.statement->transaction().key().txn_number)
                            : std::nullopt;
    if (cursor->txn_number != number)
        return Error(
            cursor->txn_number ? ErrorCode::Location50741 : ErrorCode::Location50740,
            cursor->txn_number
                ? fmt::format("Cannot run getMore on cursor {}, which was created in transaction "
                              "{}, outside of it",
                              spec.cursor_id, *cursor->txn_number)
                : fmt::format("Cannot run getMore on cursor {}, which was not created in a "
                              "transaction, within transaction {}",
                              spec.cursor_id, *number));
    if (cursor->in_use)
        return Error(ErrorCode::CursorInUse,
                     fmt::format("cursor id {} is already in use", spec.cursor_id));
    cursor->in_use = true;
    return cursor;
}

bool CursorRegistry::check_in(const CursorPtr& cursor) {
    std::lock_guard lock(mutex_);
    cursor->in_use = false;
    cursor->on_kill = nullptr;
    cursor->last_used = core_.clock().steady_now();
    return !cursor->killed;
}

void CursorRegistry::remove(const CursorPtr& cursor) {
    CursorPtr dropped;
    std::lock_guard lock(mutex_);
    auto it = cursors_.find(cursor->id);
    if (it == cursors_.end() || it->second != cursor) return;
    dropped = std::move(it->second);
    cursors_.erase(it);
}

void CursorRegistry::set_on_kill(const CursorPtr& cursor, std::function<void(Error)> on_kill) {
    {
        std::lock_guard lock(mutex_);
        if (!cursor->killed || !on_kill) {
            cursor->on_kill = std::move(on_kill);
            return;
        }
    }
    on_kill(Error(ErrorCode::CursorKilled, "cursor was killed"));
}

KilledCursors CursorRegistry::kill(const Namespace& ns, std::span<const std::int64_t> ids) {
    KilledCursors result;
    Gone gone;
    {
        std::lock_guard lock(mutex_);
        for (const auto id : ids) {
            auto it = cursors_.find(id);
            if (it == cursors_.end() ||
                (it->second->ns != ns && it->second->shown_ns != ns.full())) {
                result.not_found.push_back(id);
                continue;
            }
            it->second->killed = true;
            auto on_kill = std::move(it->second->on_kill);
            it->second->on_kill = nullptr;
            gone.emplace_back(std::move(it->second), std::move(on_kill));
            cursors_.erase(it);
            result.killed.push_back(id);
            ++killed_;
        }
    }
    end_killed(std::move(gone));
    return result;
}

void CursorRegistry::end_killed(Gone gone) {
    for (auto& [cursor, on_kill] : gone) {
        if (on_kill) on_kill(Error(ErrorCode::CursorKilled, "cursor was killed"));
        if (cursor->stream) cursor->stream->close();
    }
}

void CursorRegistry::kill_sessions(const std::function<bool(bson::DocumentView lsid)>& chosen) {
    kill_if([&](const Cursor& cursor) { return !cursor.lsid.empty() && chosen(cursor.lsid); });
}

void CursorRegistry::kill_transaction(const RetryKey& key) {
    kill_if([&](const Cursor& cursor) {
        return cursor.txn_number == key.txn_number && cursor.lsid.view().identical(key.lsid);
    });
}

void CursorRegistry::kill_if(const std::function<bool(const Cursor&)>& chosen) {
    Gone gone;
    {
        std::lock_guard lock(mutex_);
        for (auto it = cursors_.begin(); it != cursors_.end();) {
            auto& cursor = it->second;
            if (!chosen(*cursor)) {
                ++it;
                continue;
            }
            cursor->killed = true;
            auto on_kill = std::move(cursor->on_kill);
            cursor->on_kill = nullptr;
            gone.emplace_back(std::move(cursor), std::move(on_kill));
            it = cursors_.erase(it);
            ++killed_;
        }
    }
    end_killed(std::move(gone));
}

void CursorRegistry::keep_session(bson::DocumentView lsid) {
    if (!any_kept_.load(std::memory_order_relaxed)) return;
    std::lock_guard lock(mutex_);
    const auto found = kept_sessions_.find(std::string(lsid.bytes()));
    if (found != kept_sessions_.end()) found->second = core_.clock().steady_now();
}

bool CursorRegistry::expired(const Cursor& cursor, SteadyTime now) const {
    if (cursor.in_use) return false;
    if (!cursor.no_timeout) return now - cursor.last_used >= core_.options.cursor_idle_timeout;
    const auto session = kept_sessions_.find(std::string(cursor.lsid.view().bytes()));
    return session != kept_sessions_.end() && now - session->second >= kSessionIdle;
}

void CursorRegistry::expire_idle() {
    std::vector<CursorPtr> gone;
    const auto now = core_.clock().steady_now();
    {
        std::lock_guard lock(mutex_);
        std::unordered_map<std::string, SteadyTime> kept;
        for (auto it = cursors_.begin(); it != cursors_.end();) {
            auto& cursor = it->second;
            if (!expired(*cursor, now)) {
                if (const auto session =
                        kept_sessions_.find(std::string(cursor->lsid.view().bytes()));
                    cursor->no_timeout && session != kept_sessions_.end())
                    kept.insert(*session);
                ++it;
                continue;
            }
            cursor->killed = true;
            gone.push_back(std::move(cursor));
            it = cursors_.erase(it);
            ++timed_out_;
        }
        kept_sessions_ = std::move(kept);
        any_kept_ = !kept_sessions_.empty();
    }
    for (auto& cursor : gone)
        if (cursor->stream) cursor->stream->close();
}

void CursorRegistry::close_all(const Error& reason) {
    Gone gone;
    {
        std::lock_guard lock(mutex_);
        closed_ = true;
        for (auto& [id, cursor] : cursors_) {
            cursor->killed = true;
            gone.emplace_back(cursor, std::move(cursor->on_kill));
            cursor->on_kill = nullptr;
        }
        cursors_.clear();
    }
    for (auto& [cursor, on_kill] : gone)
        if (on_kill) on_kill(reason);
}

CursorRegistry::Counts CursorRegistry::counts() const {
    std::lock_guard lock(mutex_);
    return {static_cast<std::int64_t>(cursors_.size()), opened_, timed_out_, killed_};
}

}  // namespace angelia::engine
