// Reading RocksDB behind the interfaces of storage.h. Internal to this folder.
#pragma once

#include "engine/storage/database.h"

namespace angelia::engine::storage {

class Snapshot {
  public:
    explicit Snapshot(DatabasePtr database)
        : database_(std::move(database)), snapshot_(database_->db->GetSnapshot()) {}
    ~Snapshot() { database_->db->ReleaseSnapshot(snapshot_); }
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;
    const rocksdb::Snapshot* get() const { return snapshot_; }

  private:
    DatabasePtr database_;
    const rocksdb::Snapshot* snapshot_;
};

/// The newest applied state, or a snapshot. Threads: safe.
class DatabaseReader final : public Reader {
  public:
    explicit DatabaseReader(DatabasePtr database, SnapshotPtr snapshot = nullptr)
        : database_(std::move(database)), snapshot_(std::move(snapshot)) {}
    Result<bool> get(Family family, std::string_view key, std::string& value) const override;
    IteratorPtr iterate(Family family, std::string_view lower,
                        std::string_view upper) const override;

  private:
    DatabasePtr database_;
    SnapshotPtr snapshot_;
};

Error store_closed();

}  // namespace angelia::engine::storage
