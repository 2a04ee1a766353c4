// Opening a store by its address. Adapters are found at link time: an address whose adapter is not
// in the program answers with an error that names the library to link.
#pragma once

#include <angelia/store/store.h>

#include <map>

namespace angelia::store {

/// "embedded:DIR", "embedded::memory:" or "mongodb://...", taken apart.
///   embedded:DIR[?option=value&...]   options: database (default "angelia"), durability (strict |
///   periodic) embedded::memory:[?...]           nothing is kept; `name` gives several handles of
///   one process the same store mongodb://, mongodb+srv://        a MongoDB connection string; the
///   database is its path, default "angelia"
struct StoreAddress {
    enum class Kind : std::uint8_t { Embedded, EmbeddedMemory, MongoDb };
    Kind kind = Kind::Embedded;
    std::string text;  ///< as given
    std::string path;  ///< Embedded: the folder
    std::string database = "angelia";
    std::map<std::string, std::string> options;  ///< embedded only

    /// Errors: FailedToParse, BadValue (unknown option, bad database name); both say what is
    /// allowed. Threads: safe.
    static Result<StoreAddress> parse(std::string_view text);
    /// The address without user name and password, for logs and people.
    std::string describe() const;
};

struct OpenOptions {
    LogFunction log = null_log();
    const Clock* clock = &real_clock();
    milliseconds server_selection_timeout{5000};  ///< MongoDB only; the address may say otherwise
};

/// Errors: those of StoreAddress::parse; CommandNotSupported (adapter not linked: names the
/// library); HostUnreachable; DBPathInUse (names the holder); CannotMutateObject (data of a newer
/// version). Threads: safe.
Result<Store> open_store(std::string_view address, const OpenOptions& options = {});

/// What an adapter library defines under a C name that open_store looks for:
/// angelia_embedded_factory, angelia_mongo_factory.
struct StoreFactory {
    Result<std::shared_ptr<StoreAdapter>> (*open)(const StoreAddress& address,
                                                  const OpenOptions& options);
};

}  // namespace angelia::store
