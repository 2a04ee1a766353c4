#!/usr/bin/env bash
# install_test.sh SOURCE BUILD: installs into a fresh prefix, builds examples/consumer_project against it with CMake, and its mongo_only
# program with pkg-config; runs both.
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --build "$build" --target angelia angelia_installed >/dev/null
cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$source/examples/consumer_project" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$work/build"
"$work/build/greeter"
"$work/build/transfer"
"$work/build/mongo_only"
if ldd "$work/build/mongo_only" | grep -i rocksdb; then echo "angelia::mongo drags RocksDB in"; exit 1; fi
"$work/prefix/bin/angelia" version
pc=$(find "$work/prefix" -name pkgconfig -type d)
sed -i "s|^prefix=.*|prefix=$work/prefix|" "$pc"/*.pc
PKG_CONFIG_PATH=$pc g++ "$source/examples/consumer_project/mongo_only.cpp" -o "$work/by_pkg_config" $(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs angelia-mongo)
"$work/by_pkg_config"
