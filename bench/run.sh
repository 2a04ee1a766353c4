#!/usr/bin/env bash
# run.sh [ROW | GROUP]: measures all rows, a group (messaging, server), or one (in-process, memory, strict, exclusive-memory, exclusive-strict, saturated, one-way,
# one-way-exclusive, start-memory, start-strict, transaction, transactions, insert, event); JSON goes to bench/results/latest.json.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec build/release/bench/angelia_bench "${1:-}"
