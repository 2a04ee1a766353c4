// The apply section and the commit.
#include "engine/storage/byte_order.h"
#include "engine/storage/storage_impl.h"

#include <fmt/format.h>

namespace angelia::engine::storage {
namespace {

using SectionClock = std::chrono::steady_clock;

/// What may be applied and not yet synced; above it a writer that does not wait for
/// acknowledgements syncs itself.
constexpr std::uint64_t kBacklogBytesMax = 64 << 20;
/// The persisted clock runs ahead by this, so that a commit lost in a power cut leaves no time that
/// could be given twice.
constexpr std::uint32_t kClockMarkAheadSeconds = 2;
constexpr std::size_t kBatchKeepBytesMax = 4 << 20;

class Section final : public ApplySection {
  public:
    explicit Section(StorageImpl& storage)
        : storage_(storage),
          overlay_(storage.overlay()),
          stored_(storage.database()),
          entered_(SectionClock::now()) {}
    ~Section() override {
        if (!left_) leave();
    }
    bson::Timestamp next_timestamp() override { return storage_.next_timestamp(); }
    void put(Family family, std::string_view key, std::string_view value) override {
        overlay_.put(family, key, value);
    }
    void erase(Family family, std::string_view key) override { overlay_.erase(family, key); }
    void erase_range(Family family, std::string_view lower, std::string_view upper) override {
        overlay_.erase_range(family, lower, upper);
    }
    void append_oplog(bson::Timestamp time, std::uint32_t sub,
                      std::shared_ptr<const std::string> entry) override {
        auto decoded = OplogEntry::decode(time, sub, std::move(entry));
        ANGELIA_CHECK(decoded.has_value());  // it comes from OplogEntry::encode()
        overlay_.append_oplog(std::make_shared<const OplogEntry>(std::move(*decoded)));
    }
    void attach(std::shared_ptr<const void> state) override { storage_.attach(std::move(state)); }
    std::size_t bytes() const override { return overlay_.bytes(); }
    std::size_t mark() override { return overlay_.mark(); }
    void rollback_to(std::size_t mark) override { overlay_.rollback_to(mark); }

    Result<bool> get(Family family, std::string_view key, std::string& value) const override {
        return get_over(overlay_, stored_, family, key, value);
    }
    IteratorPtr iterate(Family family, std::string_view lower,
                        std::string_view upper) const override {
        return merge(stored_.iterate(family, lower, upper), overlay_, family, lower, upper);
    }

    Result<CommitPosition> commit() override {
        ANGELIA_CHECK(!left_);
        auto position = storage_.write(overlay_);
        leave();
        return position;
    }

  private:
    void leave() {
        left_ = true;
        storage_.left_section(entered_);
    }
    StorageImpl& storage_;
    Overlay& overlay_;
    DatabaseReader stored_;
    SectionClock::time_point entered_;
    bool left_ = false;
};

}  // namespace

std::unique_ptr<ApplySection> StorageImpl::begin_apply() {
    if (!options_.memory) help_with_backlog();
    apply_mutex_.lock();
    overlay_.clear();
    attached_.reset();
    return std::make_unique<Section>(*this);
}

void StorageImpl::help_with_backlog() {
    View target;
    std::uint64_t target_bytes = 0;
    {
        std::lock_guard lock(state_mutex_);
        if (applied_bytes_ - synced_bytes_ <= kBacklogBytesMax || write_error_ || closing_) return;
        target = applied_;
        target_bytes = applied_bytes_;
    }
    // Not a wait for the syncer: it may be inside a continuation that waits for a lock of our
    // caller.
    if (const auto s = flush_log(options_.durability == Durability::Strict); !s.ok())
        return stop_writes(s, "syncing the log of", true);
    publish_quietly(target);
    std::lock_guard lock(state_mutex_);
    synced_bytes_ = std::max(synced_bytes_, target_bytes);
}

void StorageImpl::left_section(std::chrono::steady_clock::time_point entered) {
    const auto stay =
        std::chrono::duration_cast<microseconds>(SectionClock::now() - entered).count();
    {
        std::lock_guard lock(state_mutex_);
        apply_us_max_ = std::max(apply_us_max_, static_cast<std::uint64_t>(stay));
    }
    apply_mutex_.unlock();
    if (options_.memory) watermark_.notify();
}

Result<CommitPosition> StorageImpl::write(Overlay& changes) {
    auto position = write_batch(changes);
    std::lock_guard lock(state_mutex_);
    writing_ = false;
    return position;
}

Result<CommitPosition> StorageImpl::write_batch(Overlay& changes) {
    CommitPosition position;
    {
        std::lock_guard lock(state_mutex_);
        if (closing_) return store_closed();
        if (write_error_) return *write_error_;
        if (changes.empty()) return applied_.position;
        writing_ = true;
        position = {applied_.position.sequence + 1, applied_.position.time};
    }
    if (options_.memory) ANGELIA_TRY(check_room(changes));
    for (const auto& entry : changes.oplog())
        position.time = std::max(position.time, entry->time());

    if (batch_.GetDataSize() > kBatchKeepBytesMax) batch_ = rocksdb::WriteBatch();
    batch_.Clear();
    changes.fill(batch_, database_->families);
    auto mark = clock_mark_;
    const auto now = bson::Timestamp::from_uint64(clock_.load());
    if (bson::Timestamp{now.seconds + 1, 0}.as_uint64() >= mark) {
        mark = bson::Timestamp{now.seconds + kClockMarkAheadSeconds, 0}.as_uint64();
        std::string value;
        append_big(value, mark);
        (void)batch_.Put(database_->family(Family::Meta), slice(kClockKey), value);
    }
    rocksdb::WriteOptions options;
    options.disableWAL = options_.memory;
    if (const auto s = database_->db->Write(options, &batch_); !s.ok()) {
        stop_writes(s, "writing to", true);
        std::lock_guard lock(state_mutex_);
        return *write_error_;
    }
    clock_mark_ = mark;
    oplog_.add(position.sequence, changes.oplog());
    View view{snapshot(), position, attached_};
    {
        std::lock_guard lock(state_mutex_);
        if (!view.state) view.state = applied_.state;
        std::swap(applied_, view);
        ++commits_;
        bytes_written_ += batch_.GetDataSize();
        applied_bytes_ += batch_.GetDataSize();
        if (options_.memory) synced_ = position;
        if (syncer_sleeps_) {
            syncer_sleeps_ = false;  // one wake-up is enough
            syncer_wakes_.notify_one();
        }
    }
    if (options_.memory) {
        show(newest());
        oplog_.publish(position.sequence);
        watermark_.raise(position);
        request_trim_if_due();
    }
    return position;
}

Result<void> StorageImpl::check_room(const Overlay& changes) {
    bool full = false;
    {
        std::lock_guard lock(state_mutex_);
        full = memory_full_;
    }
    bytes_since_check_ += changes.bytes();
    if (!full && bytes_since_check_ < options_.memory_bytes_max / 256) return {};
    bytes_since_check_ = 0;
    const auto held = database_->bytes_held();
    full = held + changes.bytes() > options_.memory_bytes_max;
    {
        std::lock_guard lock(state_mutex_);
        memory_full_ = full;
        if (full) keeper_wakes_.notify_one();
    }
    // Deleting must stay possible, or a full store could never be emptied.
    if (!full || !changes.puts_records()) return {};
    return Error(ErrorCode::OutOfDiskSpace,
                 fmt::format("the memory store is full: it holds {} bytes and may hold {}; delete "
                             "something or allow more",
                             held, options_.memory_bytes_max));
}

}  // namespace angelia::engine::storage
