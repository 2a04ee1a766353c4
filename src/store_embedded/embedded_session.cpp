#include "store_embedded/embedded_session.h"

#include "store_embedded/waiter.h"

#include <angelia/bson/builder.h>

#include <array>
#include <random>

namespace angelia::store_embedded {
namespace {

/// {id: UUID}, version 4 (RFC 9562).
bson::Document random_lsid() {
    std::array<char, 16> bytes{};
    std::random_device random;
    for (auto& byte : bytes) byte = static_cast<char>(random());
    bytes[6] = static_cast<char>((bytes[6] & 0x0F) | 0x40);
    bytes[8] = static_cast<char>((bytes[8] & 0x3F) | 0x80);
    return bson::make("id", bson::BinaryView{4, std::string_view(bytes.data(), bytes.size())});
}

/// The engine in this process does not come back: what MongoDB's clients take for a server that is
/// replaced by another one ends the matter here.
Error labelled(Error error) {
    if (error.code != ErrorCode::ShutdownInProgress) store::label_statement_error(error);
    return error;
}

}  // namespace

engine::RetryKey SessionIds::take() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!free_.empty()) {
            engine::RetryKey key = std::move(free_.back());
            free_.pop_back();
            return key;
        }
    }
    return {random_lsid(), 0};
}

void SessionIds::give_back(engine::RetryKey key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(key));
}

EmbeddedSession::EmbeddedSession(const void* store, std::shared_ptr<engine::Engine> engine,
                                 std::shared_ptr<SessionIds> ids)
    : SessionCore(store), engine_(std::move(engine)), ids_(std::move(ids)), key_(ids_->take()) {}

Result<void> EmbeddedSession::start(const store::TransactionOptions&) {
    ++key_.txn_number;
    return {};
}

Result<void> EmbeddedSession::commit(const store::TransactionOptions& options, bool) {
    Waiter<bson::Timestamp> waiter;
    engine_->commit_transaction({key_.lsid.copy(), key_.txn_number}, waiter.done());
    ANGELIA_TRY(waiter.wait(options.max_commit_time));
    return {};
}

void EmbeddedSession::abort() {
    // The engine has ended it already after an error.
    (void)engine_->abort_transaction({key_.lsid.copy(), key_.txn_number});
}

void EmbeddedSession::release() {
    // The engine need not hear of it: cursors ended with their transaction, and the id is used
    // again.
    engine_.reset();
    ids_->give_back(std::move(key_));
}

Statement::~Statement() {
    if (statement_) statement_->finish();
}

Result<Statement> Statement::begin(const store::CallOptions& options, const void* store) {
    ANGELIA_TRY_ASSIGN(store::SessionUse use, store::SessionUse::begin(options, store));
    Statement made(std::move(use));
    if (!made.use_.in_transaction()) return made;
    auto& session = made.use_.as<EmbeddedSession>();
    auto begun = session.engine().begin_statement(session.key(), made.use_.first_statement());
    if (!begun) return labelled(std::move(begun).error());
    made.statement_ = std::move(begun).value();
    return made;
}

Error Statement::failed(Error error) {
    if (!statement_) return error;
    statement_->fail();
    statement_->finish();
    return labelled(std::move(error));
}

}  // namespace angelia::store_embedded
