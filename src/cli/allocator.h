// How the programs use the C library's allocator. Libraries leave it alone.
#pragma once

namespace angelia::cli {

/// Freed memory is kept for the next use, up to a bound: blocks of memtables, batches and documents
/// come and go all the time, and the first touch of a fresh page costs more than writing a message
/// into it. First of all in main().
void keep_freed_memory();

}  // namespace angelia::cli
