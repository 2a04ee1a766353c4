#!/usr/bin/env bash
# Runs the Go driver against `angelia serve` (ANGELIA_PROGRAM). Modules and what Go builds stay below .cache/ of the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
cache=$PWD/../../../.cache/go
mkdir -p "$cache"
export GOFLAGS='-mod=mod -modcacherw' GOMODCACHE=$cache/modules GOCACHE=$cache/build
go test -vet=off -count=1 -timeout 300s -v "$@" .
