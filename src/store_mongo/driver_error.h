// The one place that looks at what the driver and the server report.
#pragma once

#include "store_mongo/mongoc_ptr.h"

#include <angelia/base/result.h>
#include <angelia/store/store.h>

namespace angelia::store::mongo {

/// What went wrong: the server's code and labels, or HostUnreachable, NetworkTimeout, HostNotFound,
/// AuthenticationFailed and so on for the driver's own.
Error from_driver(const bson_error_t& error, const bson_t* reply = nullptr);

/// The error of a reply document with ok: 0, or of an element of writeErrors.
Error from_server(bson::DocumentView reply);

/// It is unknown whether a write took effect, or another try may help.
bool leaves_open(const Error& error);

/// `writeErrors` of a bulk's reply.
std::vector<WriteError> write_errors(bson::DocumentView reply);
/// The first of `writeConcernErrors` of a bulk's reply, if any.
std::optional<Error> write_concern_error(bson::DocumentView reply);

/// The bytes of a reply, checked: a server is not trusted to send well-formed BSON. Text of other
/// writers may be no UTF-8.
Result<bson::Document> take_document(const bson_t* document);

}  // namespace angelia::store::mongo
