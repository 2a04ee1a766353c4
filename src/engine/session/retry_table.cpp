// Stored form: "retry/head/<lsid>" = {txn, used, more, s: [{i, n, m, u?, g?}], t?: true},
// "retry/more/<lsid><number>" = {s: [...]}, "retry/image/<lsid><statement>" = document.
// `t`: the number is that of a committed transaction, which has no statements here.
#include "engine/session/retry_table.h"

#include "engine/catalog/catalog.h"

#include <fmt/format.h>

namespace angelia::engine {

namespace {

// The head is rewritten with every batch of its transaction number, so it stays small; further
// statements go to records of their own.
constexpr std::size_t kHeadStatementsMax = 64;

// lsid bytes begin with their length, so no key is a prefix of another session's.
std::string retry_head_prefix() { return "retry/head/"; }
std::string retry_head_key(std::string_view lsid) {
    return retry_head_prefix() + std::string(lsid);
}
std::string retry_more_key(std::string_view lsid, std::int32_t number) {
    return "retry/more/" + std::string(lsid) + encode_u32(static_cast<std::uint32_t>(number));
}
std::string retry_image_key(std::string_view lsid, std::int32_t stmt_id) {
    return "retry/image/" + std::string(lsid) + encode_u32(static_cast<std::uint32_t>(stmt_id));
}

void encode_statement(bson::Builder& b, const StatementResult& s) {
    b.push_document().add("i", s.stmt_id).add("n", s.matched).add("m", s.modified);
    b.add("u", s.upserted_id);
    if (s.has_image) b.add("g", true);
    b.close();
}

void decode_statements(bson::ValueView list, std::map<std::int32_t, StatementResult>& out) {
    const auto array = list.get_array();
    if (!array) return;
    for (const auto& element : *array) {
        const auto d = element.value.get_document();
        if (!d) continue;
        StatementResult s;
        s.stmt_id = static_cast<std::int32_t>((*d)["i"].to_int64().value_or(0));
        s.matched = (*d)["n"].to_int64().value_or(0);
        s.modified = (*d)["m"].to_int64().value_or(0);
        if (auto u = (*d)["u"]) s.upserted_id = bson::Value(u);
        s.has_image = (*d)["g"].truthy();
        out[s.stmt_id] = std::move(s);
    }
}

}  // namespace

Result<RetryTable::Session*> RetryTable::load(const storage::Reader& reader, const RetryKey& key) {
    const std::string lsid(key.lsid.bytes());
    if (auto it = sessions_.find(lsid); it != sessions_.end()) {
        ages_.splice(ages_.begin(), ages_, it->second.age);
        return &it->second;
    }
    Session session;
    std::string bytes;
    ANGELIA_TRY_ASSIGN(bool found, reader.get(storage::Family::Meta, retry_head_key(lsid), bytes));
    if (found) {
        const bson::DocumentView head{std::string_view(bytes)};
        session.txn_number = head["txn"].to_int64().value_or(-1);
        session.committed_transaction = head["t"].truthy();
        session.more_records = static_cast<std::int32_t>(head["more"].to_int64().value_or(0));
        decode_statements(head["s"], session.statements);
        session.head_statements = session.statements.size();
        for (std::int32_t i = 0; i < session.more_records; ++i) {
            std::string more;
            ANGELIA_TRY_ASSIGN(bool there,
                               reader.get(storage::Family::Meta, retry_more_key(lsid, i), more));
            if (there)
                decode_statements(bson::DocumentView{std::string_view(more)}["s"],
                                  session.statements);
        }
    }
    while (sessions_.size() >= kRetrySessionsCachedMax) {
        sessions_.erase(ages_.back());
        ages_.pop_back();
    }
    ages_.push_front(lsid);
    session.age = ages_.begin();
    return &sessions_.emplace(lsid, std::move(session)).first->second;
}

Result<void> RetryTable::check(const storage::Reader& reader, const RetryKey& key) {
    ANGELIA_TRY_ASSIGN(Session * session, load(reader, key));
    if (key.txn_number < session->txn_number)
        return Error(ErrorCode::TransactionTooOld,
                     fmt::format("Retryable write with txnNumber {} is prohibited on this session "
                                 "because a newer retryable write with txnNumber {} "
                                 "has already started on it.",
                                 key.txn_number, session->txn_number));
    if (key.txn_number == session->txn_number && session->committed_transaction)
        return Error(
            ErrorCode::NoSuchTransaction,
            fmt::format("txnNumber {} of this session was used by a transaction, it cannot "
                        "be that of a retryable write",
                        key.txn_number));
    return {};
}

Result<LastTransaction> RetryTable::last(const storage::Reader& reader,
                                         const bson::Document& lsid) {
    ANGELIA_TRY_ASSIGN(Session * session, load(reader, RetryKey{lsid.copy(), 0}));
    return LastTransaction{session->txn_number, session->committed_transaction};
}

Result<const StatementResult*> RetryTable::find(const storage::Reader& reader, const RetryKey& key,
                                                std::int32_t stmt_id) {
    ANGELIA_TRY_ASSIGN(Session * session, load(reader, key));
    const StatementResult* found = nullptr;
    if (session->txn_number == key.txn_number) {
        auto it = session->statements.find(stmt_id);
        if (it != session->statements.end()) found = &it->second;
    }
    return found;
}

Result<std::optional<bson::Document>> RetryTable::image(const storage::Reader& reader,
                                                        const RetryKey& key, std::int32_t stmt_id) {
    std::string bytes;
    ANGELIA_TRY_ASSIGN(bool found, reader.get(storage::Family::Meta,
                                              retry_image_key(key.lsid.bytes(), stmt_id), bytes));
    std::optional<bson::Document> image;
    if (found) image = bson::Document::from_trusted_bytes(std::move(bytes));
    return image;
}

void RetryTable::erase_stored(storage::ApplySection& section, const std::string& lsid,
                              const Session& session) {
    for (const auto& [stmt_id, s] : session.statements)
        if (s.has_image) section.erase(storage::Family::Meta, retry_image_key(lsid, stmt_id));
    for (std::int32_t i = 0; i < session.more_records; ++i)
        section.erase(storage::Family::Meta, retry_more_key(lsid, i));
}

Result<void> RetryTable::record(storage::ApplySection& section, const RetryKey& key,
                                PendingStatements statements, bson::Date now) {
    ANGELIA_TRY_ASSIGN(Session * session, load(section, key));
    const std::string lsid(key.lsid.bytes());
    if (session->txn_number != key.txn_number) {
        erase_stored(section, lsid, *session);
        session->txn_number = key.txn_number;
        session->statements.clear();
        session->head_statements = 0;
        session->more_records = 0;
        session->committed_transaction = false;
    }
    if (statements.committed_transaction) {
        session->committed_transaction = true;
        const auto head =
            bson::make("txn", session->txn_number, "used", now, "more", std::int32_t{0}, "t", true);
        section.put(storage::Family::Meta, retry_head_key(lsid), head.bytes());
        return {};
    }
    for (const auto& [stmt_id, image] : statements.images)
        section.put(storage::Family::Meta, retry_image_key(lsid, stmt_id), image.bytes());
    const bool into_head =
        session->more_records == 0 &&
        session->statements.size() + statements.results.size() <= kHeadStatementsMax;
    if (!into_head) {
        bson::Builder more;
        more.open_array("s");
        for (const auto& s : statements.results) encode_statement(more, s);
        section.put(storage::Family::Meta, retry_more_key(lsid, session->more_records),
                    more.close().take().bytes());
        ++session->more_records;
    }
    // Once there are further records the head keeps the statements it had.
    std::vector<StatementResult> head;
    if (into_head) {
        for (auto& s : statements.results) session->statements[s.stmt_id] = std::move(s);
        session->head_statements = session->statements.size();
        bson::Builder b;
        b.add("txn", session->txn_number)
            .add("used", now)
            .add("more", std::int32_t{0})
            .open_array("s");
        for (const auto& [stmt_id, s] : session->statements) encode_statement(b, s);
        section.put(storage::Family::Meta, retry_head_key(lsid), b.close().take().bytes());
        return {};
    }
    std::string stored;
    bson::Builder b;
    b.add("txn", session->txn_number).add("used", now).add("more", session->more_records);
    if (session->head_statements > 0) {
        ANGELIA_TRY_ASSIGN(bool found,
                           section.get(storage::Family::Meta, retry_head_key(lsid), stored));
        if (found) b.add("s", bson::DocumentView{std::string_view(stored)}["s"]);
    }
    section.put(storage::Family::Meta, retry_head_key(lsid), b.take().bytes());
    for (auto& s : statements.results) session->statements[s.stmt_id] = std::move(s);
    return {};
}

void RetryTable::forget(const RetryKey& key) {
    auto it = sessions_.find(std::string(key.lsid.bytes()));
    if (it == sessions_.end()) return;
    ages_.erase(it->second.age);
    sessions_.erase(it);
}

Result<std::size_t> RetryTable::sweep(storage::ApplySection& section, bson::Date now,
                                      std::size_t limit) {
    const std::string prefix = retry_head_prefix();
    const std::string lower = sweep_at_.empty() ? prefix : sweep_at_;
    auto it = section.iterate(storage::Family::Meta, lower, storage::prefix_end(prefix));
    std::vector<std::string> expired;
    std::size_t seen = 0;
    for (it->seek_to_first(); it->valid() && seen < limit; it->next(), ++seen) {
        const bson::DocumentView head{it->value()};
        const auto used = head["used"].get_date();
        if (!used || now.millis - used->millis < kRetryIdle.count()) continue;
        expired.emplace_back(it->key().substr(prefix.size()));
    }
    ANGELIA_TRY(it->status());
    sweep_at_ = it->valid() ? std::string(it->key()) : std::string();
    it.reset();
    for (const auto& lsid : expired) {
        RetryKey key{bson::Document::from_trusted_bytes(lsid), 0};
        ANGELIA_TRY_ASSIGN(Session * session, load(section, key));
        erase_stored(section, lsid, *session);
        section.erase(storage::Family::Meta, retry_head_key(lsid));
        forget(key);
    }
    return expired.size();
}

}  // namespace angelia::engine
