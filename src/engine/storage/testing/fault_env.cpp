#include "engine/storage/testing/fault_env.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

namespace angelia::engine::storage::testing {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
namespace fs = std::filesystem;

namespace {

struct FileState {
    std::uint64_t size = 0;
    std::uint64_t synced = 0;
};
using FileStatePtr = std::shared_ptr<FileState>;

/// A change of a folder that was not synced yet, with what is needed to undo it.
struct FolderChange {
    enum class Kind { Create, Rename, Remove, MakeFolder } kind;
    std::string path;      ///< created, removed, or the new name
    std::string old_path;  ///< Rename: the old name
    std::string backup;    ///< hard link to the file that was replaced or removed; empty: none
    FileStatePtr backup_state;
};

bool is_log(const std::string& path) {
    return path.size() > 4 && path.compare(path.size() - 4, 4, ".log") == 0;
}
std::string folder_of(const std::string& path) { return fs::path(path).parent_path().string(); }

IOStatus power_is_off() { return IOStatus::IOError("the power is off"); }

}  // namespace

class FaultFileSystem final : public rocksdb::FileSystemWrapper {
  public:
    explicit FaultFileSystem(std::uint64_t seed)
        : FileSystemWrapper(rocksdb::FileSystem::Default()), random_(seed) {}
    const char* Name() const override { return "FaultFileSystem"; }

    IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* result,
                             IODebugContext* debug) override;
    IOStatus ReopenWritableFile(const std::string&, const rocksdb::FileOptions&,
                                std::unique_ptr<rocksdb::FSWritableFile>*,
                                IODebugContext*) override {
        return IOStatus::NotSupported("ReopenWritableFile");
    }
    IOStatus ReuseWritableFile(const std::string&, const std::string&, const rocksdb::FileOptions&,
                               std::unique_ptr<rocksdb::FSWritableFile>*,
                               IODebugContext*) override {
        return IOStatus::NotSupported("ReuseWritableFile");
    }
    IOStatus NewRandomRWFile(const std::string&, const rocksdb::FileOptions&,
                             std::unique_ptr<rocksdb::FSRandomRWFile>*, IODebugContext*) override {
        return IOStatus::NotSupported("NewRandomRWFile");
    }
    IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                          std::unique_ptr<rocksdb::FSDirectory>* result,
                          IODebugContext* debug) override;
    IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                        IODebugContext* debug) override;
    IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                        IODebugContext* debug) override;
    IOStatus Truncate(const std::string&, size_t, const IOOptions&, IODebugContext*) override {
        return IOStatus::NotSupported("Truncate");
    }
    IOStatus LinkFile(const std::string&, const std::string&, const IOOptions&,
                      IODebugContext*) override {
        return IOStatus::NotSupported("LinkFile");
    }
    IOStatus CreateDir(const std::string& path, const IOOptions& options,
                       IODebugContext* debug) override;
    IOStatus CreateDirIfMissing(const std::string& path, const IOOptions& options,
                                IODebugContext* debug) override {
        return fs::is_directory(path) ? IOStatus::OK() : CreateDir(path, options, debug);
    }
    IOStatus GetFreeSpace(const std::string& path, const IOOptions& options, uint64_t* free,
                          IODebugContext* debug) override {
        {
            std::lock_guard lock(mutex_);
            if (space_left_) {
                *free = *space_left_;
                return IOStatus::OK();
            }
        }
        return target()->GetFreeSpace(path, options, free, debug);
    }

    // -- from the files
    IOStatus append(rocksdb::FSWritableFile& file, FileState& state, const rocksdb::Slice& data,
                    const IOOptions& options, IODebugContext* debug);
    IOStatus sync(FileState& state, bool log);
    IOStatus sync_folder(const std::string& path);

    // -- from the tests
    void power_cut();
    void power_on(FaultEnvironment::Survivors survivors);
    void set_space(std::optional<std::uint64_t> bytes) {
        std::lock_guard lock(mutex_);
        space_left_ = bytes;
    }
    void fail_next_log_sync() {
        std::lock_guard lock(mutex_);
        fail_log_sync_ = true;
    }
    void hold_log_syncs(bool hold) {
        std::lock_guard lock(mutex_);
        log_syncs_held_ = hold;
        log_syncs_released_.notify_all();
    }
    std::uint64_t log_syncs() const {
        std::lock_guard lock(mutex_);
        return log_syncs_;
    }
    std::uint64_t unsynced_bytes() const {
        std::lock_guard lock(mutex_);
        std::uint64_t bytes = 0;
        for (const auto& [path, state] : states_) bytes += state ? state->size - state->synced : 0;
        return bytes;
    }

  private:
    std::string back_up(const std::string& path);
    void undo(const FolderChange& change);
    void lose_bytes(const std::string& path, FileState& state,
                    FaultEnvironment::Survivors survivors);

    mutable std::mutex mutex_;  // everything below
    std::mt19937_64 random_;
    bool powered_ = true;
    std::map<std::string, FileStatePtr> states_;
    std::map<std::string, std::vector<FolderChange>> changes_;  ///< by folder, oldest first
    std::uint64_t backups_ = 0;
    std::optional<std::uint64_t> space_left_;
    bool fail_log_sync_ = false;
    bool log_syncs_held_ = false;
    std::condition_variable log_syncs_released_;
    std::uint64_t log_syncs_ = 0;
};

namespace {

class FaultFile final : public rocksdb::FSWritableFileOwnerWrapper {
  public:
    FaultFile(std::unique_ptr<rocksdb::FSWritableFile> file, FileStatePtr state, bool log,
              FaultFileSystem& files)
        : FSWritableFileOwnerWrapper(std::move(file)),
          state_(std::move(state)),
          log_(log),
          files_(files) {}
    IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                    IODebugContext* debug) override {
        return files_.append(*target(), *state_, data, options, debug);
    }
    IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                    const rocksdb::DataVerificationInfo&, IODebugContext* debug) override {
        return Append(data, options, debug);
    }
    IOStatus PositionedAppend(const rocksdb::Slice&, uint64_t, const IOOptions&,
                              IODebugContext*) override {
        return IOStatus::NotSupported("PositionedAppend");
    }
    IOStatus PositionedAppend(const rocksdb::Slice&, uint64_t, const IOOptions&,
                              const rocksdb::DataVerificationInfo&, IODebugContext*) override {
        return IOStatus::NotSupported("PositionedAppend");
    }
    IOStatus Sync(const IOOptions&, IODebugContext*) override { return files_.sync(*state_, log_); }
    IOStatus Fsync(const IOOptions&, IODebugContext*) override {
        return files_.sync(*state_, log_);
    }
    IOStatus RangeSync(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override {
        return IOStatus::OK();
    }  // a hint, no promise
    IOStatus Allocate(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override {
        return IOStatus::OK();
    }

  private:
    FileStatePtr state_;
    bool log_;
    FaultFileSystem& files_;
};

class FaultFolder final : public rocksdb::FSDirectoryWrapper {
  public:
    FaultFolder(std::unique_ptr<rocksdb::FSDirectory> folder, std::string path,
                FaultFileSystem& files)
        : FSDirectoryWrapper(std::move(folder)), path_(std::move(path)), files_(files) {}
    IOStatus Fsync(const IOOptions&, IODebugContext*) override { return files_.sync_folder(path_); }
    IOStatus FsyncWithDirOptions(const IOOptions&, IODebugContext*,
                                 const rocksdb::DirFsyncOptions&) override {
        return files_.sync_folder(path_);
    }

  private:
    std::string path_;
    FaultFileSystem& files_;
};

}  // namespace

std::string FaultFileSystem::back_up(const std::string& path) {
    const auto trash = folder_of(path) + ".trash";
    fs::create_directories(trash);
    auto backup = trash + "/" + std::to_string(++backups_);
    fs::create_hard_link(path, backup);
    return backup;
}

IOStatus FaultFileSystem::NewWritableFile(const std::string& path,
                                          const rocksdb::FileOptions& options,
                                          std::unique_ptr<rocksdb::FSWritableFile>* result,
                                          IODebugContext* debug) {
    std::lock_guard lock(mutex_);
    if (!powered_) return power_is_off();
    FolderChange change{FolderChange::Kind::Create, path, {}, {}, nullptr};
    if (fs::exists(path)) {
        change.backup = back_up(path);
        change.backup_state = states_[path];
        fs::remove(path);  // a new file under this name, the old bytes stay with the backup
    }
    std::unique_ptr<rocksdb::FSWritableFile> file;
    if (auto s = target()->NewWritableFile(path, options, &file, debug); !s.ok()) return s;
    changes_[folder_of(path)].push_back(std::move(change));
    auto state = std::make_shared<FileState>();
    states_[path] = state;
    *result = std::make_unique<FaultFile>(std::move(file), std::move(state), is_log(path), *this);
    return IOStatus::OK();
}

IOStatus FaultFileSystem::NewDirectory(const std::string& path, const IOOptions& options,
                                       std::unique_ptr<rocksdb::FSDirectory>* result,
                                       IODebugContext* debug) {
    std::unique_ptr<rocksdb::FSDirectory> folder;
    if (auto s = target()->NewDirectory(path, options, &folder, debug); !s.ok()) return s;
    *result = std::make_unique<FaultFolder>(std::move(folder), path, *this);
    return IOStatus::OK();
}

IOStatus FaultFileSystem::DeleteFile(const std::string& path, const IOOptions& options,
                                     IODebugContext* debug) {
    std::lock_guard lock(mutex_);
    if (!powered_) return power_is_off();
    if (!fs::exists(path)) return target()->DeleteFile(path, options, debug);
    FolderChange change{FolderChange::Kind::Remove, path, {}, back_up(path), states_[path]};
    if (auto s = target()->DeleteFile(path, options, debug); !s.ok()) return s;
    if (space_left_ && change.backup_state) *space_left_ += change.backup_state->size;
    states_.erase(path);
    changes_[folder_of(path)].push_back(std::move(change));
    return IOStatus::OK();
}

IOStatus FaultFileSystem::RenameFile(const std::string& from, const std::string& to,
                                     const IOOptions& options, IODebugContext* debug) {
    std::lock_guard lock(mutex_);
    if (!powered_) return power_is_off();
    if (folder_of(from) != folder_of(to))
        return IOStatus::NotSupported("RenameFile across folders");
    FolderChange change{FolderChange::Kind::Rename, to, from, {}, nullptr};
    if (fs::exists(to)) {
        change.backup = back_up(to);
        change.backup_state = states_[to];
    }
    if (auto s = target()->RenameFile(from, to, options, debug); !s.ok()) return s;
    states_[to] = states_[from];
    states_.erase(from);
    changes_[folder_of(to)].push_back(std::move(change));
    return IOStatus::OK();
}

IOStatus FaultFileSystem::CreateDir(const std::string& path, const IOOptions& options,
                                    IODebugContext* debug) {
    std::lock_guard lock(mutex_);
    if (!powered_) return power_is_off();
    if (auto s = target()->CreateDir(path, options, debug); !s.ok()) return s;
    changes_[folder_of(path)].push_back({FolderChange::Kind::MakeFolder, path, {}, {}, nullptr});
    return IOStatus::OK();
}

IOStatus FaultFileSystem::append(rocksdb::FSWritableFile& file, FileState& state,
                                 const rocksdb::Slice& data, const IOOptions& options,
                                 IODebugContext* debug) {
    std::lock_guard lock(mutex_);
    if (!powered_) return power_is_off();
    auto fitting = data;
    if (space_left_ && *space_left_ < fitting.size())
        fitting = rocksdb::Slice(data.data(), *space_left_);
    if (auto s = file.Append(fitting, options, debug); !s.ok()) return s;
    state.size += fitting.size();
    if (space_left_) *space_left_ -= fitting.size();
    if (fitting.size() == data.size()) return IOStatus::OK();
    auto full = IOStatus::NoSpace("No space left on device");
    full.SetRetryable(true);  // as RocksDB's own file system says it
    return full;
}

IOStatus FaultFileSystem::sync(FileState& state, bool log) {
    std::unique_lock lock(mutex_);
    const auto covered = state.size;
    if (log) {
        ++log_syncs_;
        log_syncs_released_.wait(lock, [this] { return !log_syncs_held_; });
        if (powered_ && fail_log_sync_) {
            fail_log_sync_ = false;
            return IOStatus::IOError("the device did not take the sync");
        }
    }
    if (!powered_) return power_is_off();
    state.synced = std::max(state.synced, covered);
    return IOStatus::OK();
}

IOStatus FaultFileSystem::sync_folder(const std::string& path) {
    std::lock_guard lock(mutex_);
    if (!powered_) return power_is_off();
    for (const auto& change : changes_[path]) {
        if (!change.backup.empty()) fs::remove(change.backup);
    }
    changes_.erase(path);
    return IOStatus::OK();
}

void FaultFileSystem::power_cut() {
    std::lock_guard lock(mutex_);
    powered_ = false;
    log_syncs_held_ = false;
    log_syncs_released_.notify_all();
}

void FaultFileSystem::undo(const FolderChange& change) {
    switch (change.kind) {
        case FolderChange::Kind::Create:
            fs::remove(change.path);
            states_.erase(change.path);
            break;
        case FolderChange::Kind::Rename:
            fs::rename(change.path, change.old_path);
            states_[change.old_path] = states_[change.path];
            states_.erase(change.path);
            break;
        case FolderChange::Kind::Remove:
            break;
        case FolderChange::Kind::MakeFolder:
            fs::remove_all(change.path);
            for (auto at = states_.begin(); at != states_.end();)
                at = folder_of(at->first) == change.path ? states_.erase(at) : std::next(at);
            break;
    }
    if (!change.backup.empty()) {
        fs::rename(change.backup, change.path);
        states_[change.path] = change.backup_state;
    }
}

void FaultFileSystem::lose_bytes(const std::string& path, FileState& state,
                                 FaultEnvironment::Survivors survivors) {
    if (state.synced == state.size) return;
    auto left = state.synced;
    if (survivors == FaultEnvironment::Survivors::RandomPrefix)
        left += random_() % (state.size - state.synced + 1);
    fs::resize_file(path, left);
    if (left > state.synced && random_() % 3 == 0) {
        // The length reached the disk, the last of the bytes did not.
        const auto from = state.synced + random_() % (left - state.synced);
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(from));
        file << std::string(left - from, '\0');
    }
    state.size = state.synced = left;
}

void FaultFileSystem::power_on(FaultEnvironment::Survivors survivors) {
    std::lock_guard lock(mutex_);
    // Folders inside folders first: undoing an outer MakeFolder takes everything with it.
    for (auto folder = changes_.rbegin(); folder != changes_.rend(); ++folder) {
        auto& changes = folder->second;
        std::size_t survive = 0;
        if (survivors == FaultEnvironment::Survivors::RandomPrefix)
            survive = random_() % (changes.size() + 1);
        for (auto i = changes.size(); i-- > survive;) undo(changes[i]);
        for (std::size_t i = 0; i < survive; ++i) {
            if (!changes[i].backup.empty()) fs::remove(changes[i].backup);
        }
    }
    changes_.clear();
    for (auto& [path, state] : states_) {
        if (state && fs::exists(path)) lose_bytes(path, *state, survivors);
    }
    powered_ = true;
    fail_log_sync_ = false;
}

struct FaultEnvironment::Environment {
    std::unique_ptr<rocksdb::Env> env;
};

FaultEnvironment::FaultEnvironment(std::uint64_t seed)
    : files_(std::make_shared<FaultFileSystem>(seed)),
      environment_(new Environment{rocksdb::NewCompositeEnv(files_)}) {}
FaultEnvironment::~FaultEnvironment() = default;

void* FaultEnvironment::environment() const { return environment_->env.get(); }
void FaultEnvironment::power_cut() { files_->power_cut(); }
void FaultEnvironment::power_on(Survivors survivors) { files_->power_on(survivors); }
void FaultEnvironment::fill_disk_after(std::uint64_t bytes) { files_->set_space(bytes); }
void FaultEnvironment::free_disk() { files_->set_space(std::nullopt); }
void FaultEnvironment::fail_next_log_sync() { files_->fail_next_log_sync(); }
void FaultEnvironment::hold_log_syncs() { files_->hold_log_syncs(true); }
void FaultEnvironment::release_log_syncs() { files_->hold_log_syncs(false); }
std::uint64_t FaultEnvironment::log_syncs() const { return files_->log_syncs(); }
std::uint64_t FaultEnvironment::unsynced_bytes() const { return files_->unsynced_bytes(); }

}  // namespace angelia::engine::storage::testing
