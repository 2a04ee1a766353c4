#include <angelia/store/open.h>

#include <fmt/format.h>

extern "C" {
// Weak: null when the adapter's library is not part of the program. Defined in
// src/store_embedded/factory.cpp and src/store_mongo/factory.cpp.
[[gnu::weak]] extern const angelia::store::StoreFactory angelia_embedded_factory;
[[gnu::weak]] extern const angelia::store::StoreFactory angelia_mongo_factory;
}

namespace angelia::store {
namespace {

constexpr std::string_view kAllowed =
    "allowed: embedded:DIR, embedded::memory:, mongodb://host[,host...][/database][?options]";

Result<void> check_database(std::string_view name, std::string_view where) {
    const bool bad =
        name.empty() || name.size() > 63 ||
        name.find_first_of(std::string_view("/\\. \"$*<>:|?\0", 13)) != std::string_view::npos;
    if (bad) {
        return {ErrorCode::BadValue, fmt::format("database name '{}' in {} is not allowed: 1 to 63 "
                                                 "bytes without / \\ . space \" $ * < > : | ?",
                                                 name, where)};
    }
    return {};
}

Result<StoreAddress> parse_embedded(StoreAddress address, std::string_view rest) {
    const auto question = rest.find('?');
    std::string_view options =
        question == std::string_view::npos ? std::string_view() : rest.substr(question + 1);
    const std::string_view place = rest.substr(0, question);
    if (place.empty())
        return {ErrorCode::FailedToParse,
                fmt::format("'{}' names no folder; {}", address.text, kAllowed)};
    address.kind =
        place == ":memory:" ? StoreAddress::Kind::EmbeddedMemory : StoreAddress::Kind::Embedded;
    if (address.kind == StoreAddress::Kind::Embedded) address.path = place;
    while (!options.empty()) {
        const auto end = options.find('&');
        const std::string_view pair = options.substr(0, end);
        options = end == std::string_view::npos ? std::string_view() : options.substr(end + 1);
        const auto equals = pair.find('=');
        const std::string key(pair.substr(0, equals));
        const std::string value(equals == std::string_view::npos ? std::string_view()
                                                                 : pair.substr(equals + 1));
        if (key == "database") {
            ANGELIA_TRY(check_database(value, address.text));
            address.database = value;
        } else if (key == "durability" && (value == "strict" || value == "periodic")) {
            address.options[key] = value;
        } else if (key == "name" && address.kind == StoreAddress::Kind::EmbeddedMemory &&
                   !value.empty()) {
            address.options[key] = value;
        } else {
            return {ErrorCode::BadValue,
                    fmt::format(
                        "'{}' in '{}' is not allowed; options: database=NAME, "
                        "durability=strict|periodic{}",
                        pair, address.text,
                        address.kind == StoreAddress::Kind::EmbeddedMemory ? ", name=NAME" : "")};
        }
    }
    return address;
}

/// Position of the path behind the hosts of a MongoDB connection string, or npos.
std::size_t mongo_path(std::string_view text, std::size_t scheme_end) {
    return text.find('/', scheme_end);
}

Result<StoreAddress> parse_mongo(StoreAddress address, std::size_t scheme_end) {
    address.kind = StoreAddress::Kind::MongoDb;
    const std::string_view text = address.text;
    const auto question = text.find('?', scheme_end);
    const auto slash = mongo_path(text.substr(0, question), scheme_end);
    const std::string_view hosts = text.substr(scheme_end, std::min(slash, question) - scheme_end);
    if (hosts.empty() || hosts.back() == '@')
        return {ErrorCode::FailedToParse,
                fmt::format("'{}' names no host; {}", address.describe(), kAllowed)};
    if (slash != std::string_view::npos) {
        const std::string_view path = text.substr(
            slash + 1, question == std::string_view::npos ? question : question - slash - 1);
        if (!path.empty()) {
            ANGELIA_TRY(check_database(path, address.describe()));
            address.database = path;
        }
    }
    return address;
}

}  // namespace

Result<StoreAddress> StoreAddress::parse(std::string_view text) {
    StoreAddress address;
    address.text = text;
    if (text.find('\0') != std::string_view::npos)
        return {ErrorCode::FailedToParse, "a store address holds a zero byte"};
    if (text.substr(0, 9) == "embedded:") return parse_embedded(std::move(address), text.substr(9));
    for (const std::string_view scheme : {"mongodb://", "mongodb+srv://"}) {
        if (text.substr(0, scheme.size()) == scheme)
            return parse_mongo(std::move(address), scheme.size());
    }
    return {ErrorCode::FailedToParse, fmt::format("'{}' is no store address; {}", text, kAllowed)};
}

std::string StoreAddress::describe() const {
    const auto scheme = text.find("://");
    const auto at =
        text.substr(0, text.find('/', scheme == std::string::npos ? 0 : scheme + 3)).rfind('@');
    if (scheme == std::string::npos || at == std::string::npos || at < scheme) return text;
    return text.substr(0, scheme + 3) + text.substr(at + 1);
}

Result<Store> open_store(std::string_view text, const OpenOptions& options) {
    ANGELIA_TRY_ASSIGN(const StoreAddress address, StoreAddress::parse(text));
    const bool mongo = address.kind == StoreAddress::Kind::MongoDb;
    const StoreFactory* factory = mongo ? &angelia_mongo_factory : &angelia_embedded_factory;
    if (factory == nullptr) {
        return {ErrorCode::CommandNotSupported,
                fmt::format("cannot open '{}': the component {} is not linked into this program; "
                            "link it or angelia::angelia",
                            address.describe(), mongo ? "angelia::mongo" : "angelia::embedded")};
    }
    ANGELIA_TRY_ASSIGN(std::shared_ptr<StoreAdapter> adapter, factory->open(address, options));
    return Store(std::move(adapter), address.database);
}

}  // namespace angelia::store
