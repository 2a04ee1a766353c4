#!/usr/bin/env bash
# clang's own warnings (as errors, with thread-safety analysis) and clang-tidy over the sources of libraries and program. Preset `tidy` must be
# configured. Both read the unity batches, so that heavy headers are parsed once per batch.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/tidy
NINJA_STATUS='[%f/%t %es] ' ninja -k0 -C "$build" angelia >&2
files=$(grep -o '"file": "[^"]*"' "$build/compile_commands.json" | cut -d'"' -f4 | grep -E '/(unity_|main\.cpp)' | sort -u)
count=$(wc -l <<<"$files")
[ "$count" -gt 10 ] || { echo "clang-tidy found only $count batches: is the preset configured?" >&2; exit 1; }
echo "clang-tidy over $count batches" >&2
xargs -n 1 -P 2 clang-tidy-14 -p "$build" --quiet --warnings-as-errors='*' <<<"$files" 2>"$build/tidy-noise.log" || {
    grep -vE 'warnings? (generated|treated)|Suppressed|Use -header-filter' "$build/tidy-noise.log" >&2
    exit 1
}
