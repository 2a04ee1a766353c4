#include "cli/allocator.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
    angelia::cli::keep_freed_memory();
    return angelia::cli::run(argc, argv);
}
