// changes/oplog.h on top of the storage's own oplog.
#include "engine/storage/storage_impl.h"

namespace angelia::engine {
namespace {

class StorageOplog final : public Oplog {
  public:
    explicit StorageOplog(storage::StorageImpl& storage)
        : storage_(storage), log_(storage.oplog()) {}
    Result<Entries> read(OplogPosition after, std::size_t limit, std::size_t bytes_max) override {
        return log_.read(after, limit, bytes_max);
    }
    bson::Timestamp oldest() const override { return log_.oldest(); }
    bson::Timestamp newest_durable() const override { return log_.newest(); }
    ListenerId add_listener(Listener listener) override {
        return log_.add_listener(std::move(listener));
    }
    void remove_listener(ListenerId id) override { log_.remove_listener(id); }
    Result<void> trim() override { return storage_.trim_oplog(log_.due_cut()); }
    Result<void> trim_before(bson::Timestamp time) override { return storage_.trim_oplog(time); }

  private:
    storage::StorageImpl& storage_;
    storage::OplogLog& log_;
};

}  // namespace

std::unique_ptr<Oplog> Oplog::attach(storage::Storage& storage) {
    // There is one implementation of Storage; the oplog is a part of it.
    return std::make_unique<StorageOplog>(static_cast<storage::StorageImpl&>(storage));
}

}  // namespace angelia::engine
