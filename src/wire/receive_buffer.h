// The bytes a connection has received and not yet used. A message being executed keeps the block it
// stands in alive, so its documents are never copied; a block that nobody else holds is used again.
#pragma once

#include "wire/codec.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

namespace angelia::wire {

inline constexpr std::size_t kBlockBytes = 16 * 1024;  // what a connection keeps
inline constexpr std::size_t kBlockBytesKept =
    1024 * 1024;  // a larger block is given back once it is empty

/// Not thread-safe, except that other threads may hold and release what share() gave them.
class ReceiveBuffer {
  public:
    ReceiveBuffer() : block_(make_block(kBlockBytes)) {}

    std::string_view unread() const { return {block_->data.get() + begin_, end_ - begin_}; }
    void consume(std::size_t n) { begin_ += n; }
    /// Keeps the current block alive.
    std::shared_ptr<const void> share() const { return block_; }

    /// Makes room behind the unread bytes for at least one more byte of a message that will be
    /// `message_bytes` long (0 = not known yet). A block grows by doubling up to that length, so a
    /// large message is moved a few times only, and an announced length costs nothing before its
    /// bytes come.
    void make_room(std::size_t message_bytes) {
        const std::size_t held = end_ - begin_;
        const bool mine = only_holder();
        if (held == 0 && mine) {
            begin_ = end_ = 0;
            if (block_->size > kBlockBytesKept) block_ = make_block(kBlockBytes);
        }
        const std::size_t rest = message_bytes > held ? message_bytes - held : kRoomWanted;
        const std::size_t wanted = std::min(rest, kRoomWanted);
        if (room_bytes() >= wanted) return;
        if (mine && held <= begin_ &&
            block_->size - held >=
                wanted) {  // costs no more than the bytes used up since the last time
            std::memmove(block_->data.get(), block_->data.get() + begin_, held);
        } else {
            const std::size_t enough = std::max({message_bytes, kBlockBytes, held + wanted});
            auto bigger = make_block(
                std::max(std::min(held * 2, enough), std::max(kBlockBytes, held + wanted)));
            std::memcpy(bigger->data.get(), block_->data.get() + begin_, held);
            block_ = std::move(bigger);
        }
        begin_ = 0;
        end_ = held;
    }
    char* room() { return block_->data.get() + end_; }
    std::size_t room_bytes() const { return block_->size - end_; }
    void received(std::size_t n) { end_ += n; }

  private:
    static constexpr std::size_t kRoomWanted = 2048;

    struct Block {
        std::unique_ptr<char[]> data;
        std::size_t size = 0;
    };
    static std::shared_ptr<Block> make_block(std::size_t size) {
        auto b = std::make_shared<Block>();
        b->data = std::unique_ptr<char[]>(new char[size]);  // not zeroed
        b->size = size;
        return b;
    }
    bool only_holder() {
        if (block_.use_count() != 1) return false;
        // use_count() orders nothing. Going through the counter once more makes what other holders
        // did before letting go visible here.
        auto probe = block_;
        probe.reset();
        return true;
    }

    std::shared_ptr<Block> block_;  // shared with the requests that are being executed
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

}  // namespace angelia::wire
