#!/usr/bin/env bash
# Compares the table of allowed arrows in docs/architecture.md with the #include lines of every source file, and holds fenced
# third-party headers to their module. Prints each line that breaks the table; exit 1 if there is one.
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

files=$(find src include apps -name '*.h' -o -name '*.cpp' -o -name '*.def' | sort)
# shellcheck disable=SC2086
awk -v table=docs/architecture.md '
FILENAME == table {
    if ($0 ~ /^\| [a-z_]+ \| `/ && split($0, cell, / *\| */) >= 5) {
        module = cell[2]
        known[module] = 1
        allowed[module] = " " module " "
        n = split(cell[4], names, /, */)
        for (i = 1; i <= n; i++) allowed[module] = allowed[module] names[i] " "
    }
    next
}
FNR == 1 {
    module = ""
    path = FILENAME
    split(path, p, "/")
    if (p[1] == "src") module = p[2]
    else if (path == "include/angelia/angelia.h") module = "angelia"
    else if (p[1] == "include") module = p[3]
    else if (p[1] == "apps") module = "apps"
    test = (path ~ /_(test|bench)\.cpp$/ || path ~ /\/testing\//)
    if (!(module in known)) { print path ": module \"" module "\" is not in the table"; bad = 1 }
}
/^#include/ {
    header = $2
    gsub(/[<>"]/, "", header)
    parts = split(header, h, "/")
    target = ""
    if (header == "angelia/angelia.h") target = "angelia"
    else if (h[1] == "angelia" && parts > 2) target = h[2]
    else if (parts > 1 && (h[1] in known)) target = h[1]
    if (!test && target != "" && index(allowed[module], " " target " ") == 0) {
        print path ":" FNR ": " module " may not include " target " (" header ")"; bad = 1
    }
    fence = ""
    if (h[1] == "rocksdb") fence = "src/engine/storage/"
    else if (h[1] ~ /^mongoc/) fence = "src/store_mongo/"
    else if (h[1] ~ /^asio/) fence = "src/wire/"
    else if (header == "snappy.h" || header == "zlib.h" || header == "zstd.h") fence = "src/wire/compression."
    else if (h[1] == "CLI") fence = "src/cli/"
    else if (h[1] == "nlohmann") fence = "src/bson/"
    else if (h[1] ~ /^pcre2/) fence = "src/engine/query/"
    else if (h[1] == "spdlog") fence = "src/cli/"
    if (fence != "" && !test && index(path, fence) != 1) { print path ":" FNR ": only " fence " may include " header; bad = 1 }
    if (p[1] == "include" && h[1] != "angelia" && header ~ /[\/.]/) {
        print path ":" FNR ": public headers name no third-party library (" header ")"; bad = 1
    }
}
END { exit bad }
' docs/architecture.md $files
