#!/usr/bin/env bash
# The layers test must find a planted arrow against the table, a planted third-party header and a module that is not in the table.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/docs"
cp "$source/docs/architecture.md" "$tree/docs/"
cp -r "$source/src" "$source/include" "$source/apps" "$tree/"
"$source/tools/check_layers.sh" "$tree"

expect() {  # expect <file> <line> <words of the complaint>
    mkdir -p "$(dirname "$tree/$1")"
    local before=
    [ -f "$tree/$1" ] && before=$(cat "$tree/$1")
    printf '%s\n' "$2" >>"$tree/$1"
    local said
    if said=$("$source/tools/check_layers.sh" "$tree"); then echo "not found: $2 in $1"; exit 1; fi
    grep -q "$3" <<<"$said" || { echo "wrong complaint: $said"; exit 1; }
    if [ -n "$before" ]; then printf '%s\n' "$before" >"$tree/$1"; else rm "$tree/$1"; fi
}
expect src/bson/document.cpp '#include "engine/engine.h"' 'bson may not include engine'
expect src/wire/planted.cpp '#include <rocksdb/db.h>' 'only src/engine/storage/ may include rocksdb'
expect include/angelia/store/planted.h '#include <bson/bson.h>' 'third-party'
expect src/planted/planted.cpp '#include <vector>' 'not in the table'
echo "every planted arrow was found"
