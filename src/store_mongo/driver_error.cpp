#include "store_mongo/driver_error.h"

#include <angelia/bson/builder.h>
#include <angelia/bson/validate.h>

#include <algorithm>

namespace angelia::store::mongo {
namespace {

constexpr std::size_t kReplyBytesMax = 48 * 1024 * 1024;  // MongoDB limit, "maxMessageSizeBytes"

ErrorCode code_of_driver_error(const bson_error_t& error) {
    const std::string_view text = error.message;
    const bool either = text.find("socket error or timeout") !=
                        std::string_view::npos;  // the driver does not know which
    const bool timeout = !either && (text.find("timed out") != std::string_view::npos ||
                                     text.find("timeout") != std::string_view::npos);
    switch (error.domain) {
        case MONGOC_ERROR_SERVER_SELECTION:
            return ErrorCode::HostUnreachable;
        case MONGOC_ERROR_STREAM:
            if (error.code == MONGOC_ERROR_STREAM_NAME_RESOLUTION) return ErrorCode::HostNotFound;
            return timeout ? ErrorCode::NetworkTimeout : ErrorCode::HostUnreachable;
        case MONGOC_ERROR_CLIENT:
            if (error.code == MONGOC_ERROR_CLIENT_AUTHENTICATE)
                return ErrorCode::AuthenticationFailed;
            return ErrorCode::HostUnreachable;
        case MONGOC_ERROR_SASL:
        case MONGOC_ERROR_SCRAM:
            return ErrorCode::AuthenticationFailed;
        case MONGOC_ERROR_PROTOCOL:
            return ErrorCode::ProtocolError;
        case MONGOC_ERROR_NAMESPACE:
            return ErrorCode::InvalidNamespace;
        case MONGOC_ERROR_BSON:
            return ErrorCode::InvalidBSON;
        case MONGOC_ERROR_COMMAND:
            return error.code == MONGOC_ERROR_COMMAND_INVALID_ARG ? ErrorCode::BadValue
                                                                  : ErrorCode::CommandFailed;
        case MONGOC_ERROR_POOL:
            return ErrorCode::ExceededTimeLimit;
        case MONGOC_ERROR_CURSOR:
            return ErrorCode::CursorNotFound;
        default:
            return ErrorCode::OperationFailed;
    }
}

void take_labels(bson::ValueView labels, Error& error) {
    const auto array = labels.get_array();
    if (!array) return;
    for (const auto& [key, label] : *array) {
        if (const auto text = label.get_string()) error.labels.emplace_back(*text);
    }
}

/// Extra fields that callers ask for, as details.
void take_details(bson::DocumentView reply, Error& error) {
    bson::Builder b;
    for (const char* field : {"keyPattern", "keyValue", "errInfo"}) b.add(field, reply[field]);
    bson::Document details = b.take();
    if (!details.empty()) error.details_bson = std::move(details).take_bytes();
}

}  // namespace

Result<bson::Document> take_document(const bson_t* document) {
    const std::string_view bytes(reinterpret_cast<const char*>(bson_get_data(document)),
                                 document->len);
    bson::ValidateLimits limits;
    limits.bytes_max = kReplyBytesMax;
    limits.nesting_max = bson::kNestingMax + 4;  // cursor.nextBatch.0 stands around each document
    limits.text_utf8 = false;
    ANGELIA_TRY_ASSIGN(const bson::DocumentView view, bson::validate(bytes, limits));
    return bson::Document(view);
}

Error from_server(bson::DocumentView reply) {
    Error error;
    error.code = static_cast<ErrorCode>(
        reply["code"].to_int64().value_or(static_cast<std::int64_t>(ErrorCode::UnknownError)));
    error.message = std::string(
        reply["errmsg"].get_string().value_or("the server reported an error without a text"));
    take_labels(reply["errorLabels"], error);
    take_details(reply, error);
    return error;
}

Error from_driver(const bson_error_t& error, const bson_t* reply) {
    Error out;
    const bool from_reply =
        error.domain == MONGOC_ERROR_SERVER || error.domain == MONGOC_ERROR_WRITE_CONCERN;
    out.code = from_reply ? static_cast<ErrorCode>(error.code) : code_of_driver_error(error);
    out.message = error.message;
    if (reply == nullptr) return out;
    if (const auto document = take_document(reply)) {
        take_labels((*document)["errorLabels"], out);
        take_details(*document, out);
    }
    return out;
}

bool leaves_open(const Error& error) {
    return is_retriable(error.code) || error.code == ErrorCode::ProtocolError ||
           error.has_label("RetryableWriteError");
}

std::vector<WriteError> write_errors(bson::DocumentView reply) {
    std::vector<WriteError> out;
    const auto errors = reply["writeErrors"].get_array();
    if (!errors) return out;
    for (const auto& [key, value] : *errors) {
        const auto one = value.get_document();
        if (!one) continue;
        out.push_back(
            {static_cast<std::size_t>((*one)["index"].to_int64().value_or(0)), from_server(*one)});
    }
    std::sort(out.begin(), out.end(),
              [](const WriteError& a, const WriteError& b) { return a.index < b.index; });
    return out;
}

std::optional<Error> write_concern_error(bson::DocumentView reply) {
    const auto errors = reply["writeConcernErrors"].get_array();
    if (!errors || errors->empty()) return std::nullopt;
    const auto first = errors->begin()->value.get_document();
    if (!first) return std::nullopt;
    Error error = from_server(*first);
    take_labels(reply["errorLabels"], error);
    return error;
}

}  // namespace angelia::store::mongo
