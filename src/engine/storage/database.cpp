#include "engine/storage/database.h"

#include "engine/storage/endpoint.h"
#include "engine/storage/rocksdb_options.h"

#include <fmt/format.h>
#include <rocksdb/sst_file_manager.h>

#include <algorithm>
#include <future>

namespace angelia::engine::storage {
namespace {

bool is_lock_conflict(const rocksdb::Status& status) {
    return status.IsIOError() && status.ToString().find("LOCK") != std::string::npos;
}

Error in_use(const std::string& path) {
    return {ErrorCode::DBPathInUse,
            fmt::format("the data folder '{}' is in use by {}; one process may open it at a time",
                        path, endpoint_holder(path))};
}

/// The folder's own entry must survive a power cut too; RocksDB syncs only what is inside it.
rocksdb::Status make_folder(rocksdb::Env& environment, const std::string& path) {
    if (auto s = environment.CreateDirIfMissing(path); !s.ok()) return s;
    const auto slash = path.find_last_of('/');
    const auto parent = slash == std::string::npos ? std::string(".")
                        : slash == 0               ? std::string("/")
                                                   : path.substr(0, slash);
    std::unique_ptr<rocksdb::Directory> directory;
    if (auto s = environment.NewDirectory(parent, &directory); !s.ok()) return s;
    return directory->Fsync();
}

}  // namespace

Database::~Database() {
    for (auto* handle : families) {
        if (handle != nullptr) (void)db->DestroyColumnFamilyHandle(handle);
    }
}

Result<DatabasePtr> Database::open(const Options& options) {
    auto database = std::make_shared<Database>();
    database->environment = options.environment != nullptr
                                ? static_cast<rocksdb::Env*>(options.environment)
                                : rocksdb::Env::Default();
    std::string path = options.path;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    if (options.memory) {
        database->owned_environment.reset(rocksdb::NewMemEnv(database->environment));
        database->environment = database->owned_environment.get();
        path = "/memory";
    } else if (path.empty()) {
        return Error(ErrorCode::BadValue, "the data folder has no name; give a path");
    } else {
        database->log_guard = std::make_shared<LogGuard>(database->environment->GetFileSystem());
        database->owned_environment = rocksdb::NewCompositeEnv(database->log_guard);
        database->environment = database->owned_environment.get();
    }
    if (auto s = make_folder(*database->environment, path); !s.ok()) {
        return Error(ErrorCode::FileStreamFailed,
                     fmt::format("cannot make the data folder '{}': {}", path, s.ToString()));
    }

    auto settings = rocksdb_settings(options, *database->environment, database->background_errors);
    database->files = settings.database.sst_file_manager;

    // A family we do not know was made by a newer version: say so instead of RocksDB's complaint.
    std::vector<std::string> existing;
    if (rocksdb::DB::ListColumnFamilies(settings.database, path, &existing).ok()) {
        for (const auto& name : existing) {
            const auto known = [&](const rocksdb::ColumnFamilyDescriptor& d) {
                return d.name == name;
            };
            if (std::none_of(settings.families.begin(), settings.families.end(), known)) {
                return Error(ErrorCode::CannotMutateObject,
                             fmt::format("the data folder '{}' has a part '{}' that this version "
                                         "({}.{}) does not know: it was written by a "
                                         "newer version; open it with that one",
                                         path, name, kFormatMajor, kFormatMinor));
            }
        }
    }

    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    if (auto s = rocksdb::DB::Open(settings.database, path, settings.families, &handles, &db);
        !s.ok()) {
        if (is_lock_conflict(s)) return in_use(path);
        if (is_out_of_space(s)) return to_error(s, "opening the data folder '" + path + "'");
        return Error(ErrorCode::FileStreamFailed,
                     fmt::format("cannot open the data folder '{}': {}", path, s.ToString()));
    }
    database->db.reset(db);
    std::copy(handles.begin(), handles.end(), database->families.begin());
    return database;
}

rocksdb::Status Database::flush() {
    return nudged_until_done([this] {
        rocksdb::FlushOptions flush;
        flush.wait = true;
        flush.allow_write_stall = true;
        return db->Flush(flush, {families.begin(), families.end()});
    });
}

rocksdb::Status Database::resume() {
    if (auto s = nudged_until_done([this] { return db->Resume(); }); !s.ok()) return s;
    if (auto s = flush(); !s.ok()) return s;
    // A request that got stuck would be carried out instead of the next one, and that one instead
    // of the one after it: all later flushes would be late, until writes stall.
    rocksdb::WriteOptions write;
    write.disableWAL = true;
    if (auto s = db->Delete(write, family(Family::Meta), "storage/nudge"); !s.ok()) return s;
    nudge_flushes();
    return flush();
}

/// RocksDB forgets to carry out a flush that was scheduled when an error came: the request stays in
/// its queue, nothing takes it out, and whoever waits for it, or for the one behind it, waits for
/// ever. Another request takes the next one out of the queue.
rocksdb::Status Database::nudged_until_done(const std::function<rocksdb::Status()>& step) {
    constexpr auto kPatience = std::chrono::seconds(2);
    auto done = std::async(step);
    while (done.wait_for(kPatience) == std::future_status::timeout) nudge_flushes();
    return done.get();
}

void Database::nudge_flushes() {
    // Several at once: the last of them find nothing to do and empty the queue.
    constexpr int kRequests = 4;
    rocksdb::FlushOptions flush;
    flush.wait = false;
    flush.allow_write_stall = true;
    for (int i = 0; i < kRequests; ++i) (void)db->Flush(flush, {families.begin(), families.end()});
}

bool Database::has_room_to_flush() const {
    constexpr std::uint64_t kSpare = 1 << 20;
    std::uint64_t memtables = 0, free = 0;
    (void)db->GetAggregatedIntProperty(rocksdb::DB::Properties::kSizeAllMemTables, &memtables);
    if (!environment->GetFreeSpace(db->GetName(), &free).ok()) return true;  // try it
    return free >= memtables + kSpare;
}

std::uint64_t Database::bytes_held() const {
    std::uint64_t memtables = 0;
    (void)db->GetAggregatedIntProperty(rocksdb::DB::Properties::kSizeAllMemTables, &memtables);
    return files->GetTotalSize() + memtables;
}

bool is_out_of_space(const rocksdb::Status& status) {
    return status.IsNoSpace() || status.subcode() == rocksdb::Status::SubCode::kSpaceLimit ||
           status.ToString().find("No space left") != std::string::npos;
}

bool is_echo(const rocksdb::Status& status) {
    const auto text = status.ToString();
    return text.find("Seen error") != std::string::npos ||
           text.find("previous error") != std::string::npos;
}

Error to_error(const rocksdb::Status& status, std::string_view what) {
    ErrorCode code = ErrorCode::InternalError;
    if (is_out_of_space(status)) code = ErrorCode::OutOfDiskSpace;
    if (status.IsShutdownInProgress()) code = ErrorCode::ShutdownInProgress;
    return {code, fmt::format("{}: {}", what, status.ToString())};
}

}  // namespace angelia::engine::storage
