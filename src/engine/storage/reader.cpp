#include "engine/storage/reader.h"

namespace angelia::engine::storage {
namespace {

/// Keeps the database (and the snapshot) alive while it is used.
class DatabaseIterator final : public Iterator {
  public:
    DatabaseIterator(DatabasePtr database, SnapshotPtr snapshot, Family family,
                     std::string_view lower, std::string_view upper)
        : database_(std::move(database)),
          snapshot_(std::move(snapshot)),
          lower_(lower),
          upper_(upper),
          lower_slice_(lower_),
          upper_slice_(upper_) {
        rocksdb::ReadOptions options;
        if (!lower_.empty()) options.iterate_lower_bound = &lower_slice_;
        if (!upper_.empty()) options.iterate_upper_bound = &upper_slice_;
        if (snapshot_) options.snapshot = snapshot_->get();
        iterator_.reset(database_->db->NewIterator(options, database_->family(family)));
    }
    void seek(std::string_view key) override { iterator_->Seek(slice(key)); }
    void seek_to_first() override { iterator_->SeekToFirst(); }
    void seek_to_last() override { iterator_->SeekToLast(); }
    void seek_before(std::string_view key) override {
        iterator_->SeekForPrev(slice(key));
        if (iterator_->Valid() && iterator_->key() == slice(key)) iterator_->Prev();
    }
    void next() override { iterator_->Next(); }
    void prev() override { iterator_->Prev(); }
    bool valid() const override { return iterator_->Valid(); }
    std::string_view key() const override { return view(iterator_->key()); }
    std::string_view value() const override { return view(iterator_->value()); }
    Result<void> status() const override {
        if (const auto s = iterator_->status(); !s.ok()) return to_error(s, "reading the store");
        return {};
    }

  private:
    DatabasePtr database_;
    SnapshotPtr snapshot_;
    std::string lower_, upper_;
    rocksdb::Slice lower_slice_, upper_slice_;
    std::unique_ptr<rocksdb::Iterator> iterator_;  // last: goes before what it reads from
};

/// What a closed store has to offer.
class ClosedIterator final : public Iterator {
  public:
    void seek(std::string_view) override {}
    void seek_to_first() override {}
    void seek_to_last() override {}
    void seek_before(std::string_view) override {}
    void next() override {}
    void prev() override {}
    bool valid() const override { return false; }
    std::string_view key() const override { return {}; }
    std::string_view value() const override { return {}; }
    Result<void> status() const override { return store_closed(); }
};

}  // namespace

Error store_closed() { return {ErrorCode::ShutdownInProgress, "the store is closed"}; }

Result<bool> DatabaseReader::get(Family family, std::string_view key, std::string& value) const {
    if (database_->closed.load(std::memory_order_acquire)) return store_closed();
    rocksdb::ReadOptions options;
    if (snapshot_) options.snapshot = snapshot_->get();
    const auto s = database_->db->Get(options, database_->family(family), slice(key), &value);
    if (s.IsNotFound()) return false;
    if (!s.ok()) return to_error(s, "reading the store");
    return true;
}

IteratorPtr DatabaseReader::iterate(Family family, std::string_view lower,
                                    std::string_view upper) const {
    if (database_->closed.load(std::memory_order_acquire))
        return std::make_unique<ClosedIterator>();
    return std::make_unique<DatabaseIterator>(database_, snapshot_, family, lower, upper);
}

}  // namespace angelia::engine::storage
