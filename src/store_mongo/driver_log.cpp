#include "store_mongo/driver_log.h"

#include <mongoc/mongoc.h>

#include <string>

namespace angelia::store::mongo {
namespace {

LogFunction& driver_log_target() {
    static auto* target =
        new LogFunction;  // never destroyed: the driver's threads may log until the process ends
    return *target;
}

LogLevel driver_log_level(mongoc_log_level_t level) {
    switch (level) {
        case MONGOC_LOG_LEVEL_ERROR:
        case MONGOC_LOG_LEVEL_CRITICAL:
            return LogLevel::Error;
        case MONGOC_LOG_LEVEL_WARNING:
            return LogLevel::Warning;
        case MONGOC_LOG_LEVEL_MESSAGE:
        case MONGOC_LOG_LEVEL_INFO:
            return LogLevel::Info;
        case MONGOC_LOG_LEVEL_DEBUG:
        case MONGOC_LOG_LEVEL_TRACE:
            return LogLevel::Debug;
    }
    return LogLevel::Info;
}

void on_driver_log(mongoc_log_level_t level, const char* domain, const char* message, void*) {
    if (const LogFunction& log = driver_log_target())
        log(driver_log_level(level), std::string("libmongoc ") + domain + ": " + message);
}

}  // namespace

void set_driver_log(LogFunction log) {
    driver_log_target() = std::move(log);
    mongoc_log_set_handler(on_driver_log, nullptr);
}

}  // namespace angelia::store::mongo
