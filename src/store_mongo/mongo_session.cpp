#include "store_mongo/mongo_session.h"

#include "store/transaction_rules.h"
#include "store_mongo/driver_error.h"
#include "store_mongo/mongo_store.h"

#include <algorithm>
#include <cstdint>

namespace angelia::store::mongo {
namespace {

using TransactionOptionsPtr =
    std::unique_ptr<mongoc_transaction_opt_t, DestroyWith<&mongoc_transaction_opts_destroy>>;
using ReadConcernPtr =
    std::unique_ptr<mongoc_read_concern_t, DestroyWith<&mongoc_read_concern_destroy>>;
using WriteConcernPtr =
    std::unique_ptr<mongoc_write_concern_t, DestroyWith<&mongoc_write_concern_destroy>>;

const char* level_of(ReadConcern concern) {
    switch (concern) {
        case ReadConcern::Snapshot:
            return MONGOC_READ_CONCERN_LEVEL_SNAPSHOT;
        case ReadConcern::Majority:
            return MONGOC_READ_CONCERN_LEVEL_MAJORITY;
        case ReadConcern::Local:
            return MONGOC_READ_CONCERN_LEVEL_LOCAL;
    }
    return MONGOC_READ_CONCERN_LEVEL_SNAPSHOT;
}

TransactionOptionsPtr driver_options(const TransactionOptions& options) {
    TransactionOptionsPtr out(mongoc_transaction_opts_new());
    const ReadConcernPtr read(mongoc_read_concern_new());
    mongoc_read_concern_set_level(read.get(), level_of(options.read_concern));
    mongoc_transaction_opts_set_read_concern(out.get(), read.get());
    if (options.acknowledge == Acknowledge::Majority) {
        const WriteConcernPtr write(mongoc_write_concern_new());
        mongoc_write_concern_set_wmajority(
            write.get(), static_cast<std::int32_t>(
                             std::min<std::int64_t>(options.max_commit_time.count(), INT32_MAX)));
        mongoc_transaction_opts_set_write_concern(out.get(), write.get());
    }
    const ReadPreferencePtr primary(mongoc_read_prefs_new(MONGOC_READ_PRIMARY));
    mongoc_transaction_opts_set_read_prefs(out.get(), primary.get());
    mongoc_transaction_opts_set_max_commit_time_ms(out.get(), options.max_commit_time.count());
    return out;
}

}  // namespace

Result<void> append_session(bson::Builder& options, const Connection& connection) {
    if (connection.session == nullptr) return {};
    ReplyBson named;
    bson_error_t error{};
    if (!mongoc_client_session_append(connection.session, named.mutable_bson(), &error))
        return from_driver(error);
    ANGELIA_TRY_ASSIGN(const bson::Document fields, take_document(named.get()));
    options.add_all(fields);
    return {};
}

Error statement_error(Error error) {
    if (is_network_error(error.code)) label_statement_error(error);
    return error;
}

Result<std::shared_ptr<MongoSession>> MongoSession::open(const void* store, PooledClient client,
                                                         std::shared_ptr<Learned> learned) {
    std::shared_ptr<MongoSession> made(
        new MongoSession(store, std::move(client), std::move(learned)));
    const SessionOptionsPtr options(mongoc_session_opts_new());
    mongoc_session_opts_set_causal_consistency(options.get(), true);
    bson_error_t error{};
    made->session_.reset(mongoc_client_start_session(made->client_->get(), options.get(), &error));
    if (made->session_ == nullptr) return from_driver(error);
    return made;
}

Connection MongoSession::connection() const {
    Connection out(client_->get());
    out.session = session_.get();
    return out;
}

Result<void> MongoSession::start(const TransactionOptions& options) {
    ANGELIA_TRY(check_no_standalone(client_->get(), *learned_));
    bson_error_t error{};
    if (!mongoc_client_session_start_transaction(session_.get(), driver_options(options).get(),
                                                 &error))
        return from_driver(error);
    return {};
}

Result<void> MongoSession::commit(const TransactionOptions&, bool) {
    ReplyBson reply;
    bson_error_t error{};
    // Called again, the driver asks for majority by itself.
    if (!mongoc_client_session_commit_transaction(session_.get(), reply.out(), &error))
        return from_driver(error, reply.get());
    return {};
}

void MongoSession::abort() {
    bson_error_t error{};
    (void)mongoc_client_session_abort_transaction(session_.get(), &error);
}

void MongoSession::release() {
    session_.reset();
    client_.reset();
}

}  // namespace angelia::store::mongo
