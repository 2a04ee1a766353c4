#include "cli/allocator.h"

#include <malloc.h>

namespace angelia::cli {

void keep_freed_memory() {
    constexpr int kMiB = 1 << 20;
    // Refused values leave the defaults, which only cost time.
    (void)mallopt(M_ARENA_MAX, 2);  // as many as cores; each keeps what it has
    (void)mallopt(M_MMAP_THRESHOLD, 4 * kMiB);
    (void)mallopt(M_TRIM_THRESHOLD, 64 * kMiB);
    (void)mallopt(M_TOP_PAD, kMiB);
}

}  // namespace angelia::cli
