#!/usr/bin/env bash
# The one entry of this repository. Needs bash, git and apt; each verb makes sure of what it needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

YES=0
PROGRAM=build/release/angelia

# ---- what each verb needs: Debian package, or package:command when any program of that name will do
PACKAGES_BUILD=(g++:g++ cmake:cmake ninja-build:ninja pkg-config:pkg-config ccache:ccache
    librocksdb-dev libmongoc-dev libbson-dev libasio-dev libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libintelrdfpmath-dev
    libsnappy-dev zlib1g-dev libzstd-dev)
PACKAGES_TEST=(libgtest-dev python3:python3 python3-venv:@venv nodejs:node npm:npm)
PACKAGES_JAVA=(maven:mvn default-jdk-headless:javac)
PACKAGES_GO=(golang:go)
PACKAGES_LINT=(clang-14 clang-format-14 clang-tidy-14)

say() { printf '%s\n' "$*" >&2; }
die() { say "do: $*"; exit 1; }

have() {  # have <package[:command]>
    local package=${1%%:*} command=
    [[ $1 == *:* ]] && command=${1#*:}
    case $command in
        '') dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ;;
        @venv) python3 -c 'import venv, ensurepip' 2>/dev/null ;;
        *) command -v "$command" >/dev/null 2>&1 ;;
    esac
}

need() {  # need <packages…>: prints what is missing and installs it
    local missing=() p
    for p in "$@"; do have "$p" || missing+=("${p%%:*}"); done
    [ ${#missing[@]} -eq 0 ] && return
    say "Debian packages needed: ${missing[*]}"
    local sudo=
    if [ "$(id -u)" -ne 0 ]; then
        sudo=sudo
        if [ $YES -eq 0 ]; then
            [ -t 0 ] || die "install them, or run again with -y (uses sudo)"
            read -r -p "Install them now with sudo apt-get? [Y/n] " answer
            [[ $answer =~ ^[Nn] ]] && die "nothing was installed"
        fi
    fi
    $sudo apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null || die "apt-get could not install ${missing[*]}"
}

configure() {  # configure <preset> [cmake options]
    local preset=$1; shift
    if [ ! -f "build/$preset/build.ninja" ] || [ $# -gt 0 ]; then
        cmake --preset "$preset" "$@" >"build-$preset.log" 2>&1 || { cat "build-$preset.log" >&2; rm -f "build-$preset.log"; die "configuring failed"; }
        rm -f "build-$preset.log"
    fi
}

ninja_build() {  # ninja_build <preset> <targets…>
    local preset=$1; shift
    NINJA_STATUS='[%f/%t %es] ' ninja -C "build/$preset" "$@" >&2
}

build_program() {
    need "${PACKAGES_BUILD[@]}"
    configure release -DANGELIA_TESTS="$(test -f /usr/include/gtest/gtest.h && echo ON || echo OFF)"
    ninja_build release angelia
}

verb_build() {
    build_program
    say "built $PROGRAM"
}

verb_serve() { build_program; exec "$PROGRAM" serve "$@"; }

verb_demo() {
    build_program
    local input=()
    if [[ " $* " != *" --input "* ]]; then
        mkdir -p .cache
        tools/demo_input.sh .cache/demo-input.ndjson && input=(--input .cache/demo-input.ndjson)
    fi
    exec "$PROGRAM" demo "${input[@]}" "$@"
}

test_clients() {  # real drivers for tests/compat, inside this tree only
    mkdir -p .cache
    if [ ! -x .cache/venv/bin/python ]; then python3 -m venv .cache/venv; fi
    if ! cmp -s tests/compat/requirements.txt .cache/venv/requirements.txt; then
        .cache/venv/bin/pip install -q -r tests/compat/requirements.txt >&2
        cp tests/compat/requirements.txt .cache/venv/requirements.txt
    fi
    mkdir -p .cache/node
    if ! cmp -s tests/compat/package.json .cache/node/package.json || ! cmp -s tests/compat/package-lock.json .cache/node/package-lock.json || [ ! -d .cache/node/node_modules/mongodb ]; then
        cp tests/compat/package.json .cache/node/package.json
        cp tests/compat/package-lock.json .cache/node/package-lock.json
        (cd .cache/node && npm ci --silent --no-audit --no-fund >&2)
    fi
    tools/demo_input.sh .cache/demo-input.ndjson
}

verb_test() {
    local quick=0 long=0 compat='' rest=()
    while [ $# -gt 0 ]; do
        case $1 in
            --quick) quick=1 ;;
            --long) long=1 ;;
            --compat) compat=${2:?--compat needs a name}; shift ;;
            *) rest+=("$1") ;;
        esac
        shift
    done
    case $compat in
        java | go)  # more languages than everyone has; only the program is built
            [ "$compat" = java ] && need "${PACKAGES_JAVA[@]}"
            [ "$compat" = go ] && need "${PACKAGES_GO[@]}"
            build_program
            ANGELIA_PROGRAM=$PWD/$PROGRAM exec "tests/compat/$compat/run.sh" "${rest[@]}"
            ;;
    esac
    if [ $quick -eq 1 ]; then
        need "${PACKAGES_BUILD[@]}" libgtest-dev
        configure release -DANGELIA_TESTS=ON
        ninja_build release unit_tests
        ctest --test-dir build/release -j2 --output-on-failure -L '^unit$' "${rest[@]}"
        return
    fi
    need "${PACKAGES_BUILD[@]}" "${PACKAGES_TEST[@]}"
    test_clients
    configure release -DANGELIA_TESTS=ON
    ninja_build release all
    if [ -n "$compat" ]; then
        ctest --test-dir build/release --output-on-failure --no-tests=error -R "^compat_$compat(_|\$)" "${rest[@]}"
        return
    fi
    ctest --test-dir build/release -j2 --output-on-failure -LE '^long$' "${rest[@]}"
    [ $long -eq 1 ] || return 0
    say "== long: more seeds, kill matrices"
    ANGELIA_LONG=1 ctest --test-dir build/release -j2 --output-on-failure -L '^(long|simulation|end_to_end|faults)$'
    say "== long: asan + ubsan"
    configure asan && ninja_build asan all
    ctest --test-dir build/asan -j2 --output-on-failure -L '^(unit|contract|faults|simulation)$'
    say "== long: tsan"
    configure tsan && ninja_build tsan all
    TSAN_OPTIONS="suppressions=$PWD/tools/tsan.supp" ctest --test-dir build/tsan -j2 --output-on-failure -L '^(unit|contract|simulation)$'
}

verb_bench() {
    need "${PACKAGES_BUILD[@]}"
    configure release -DANGELIA_BENCH=ON
    ninja_build release angelia benchmarks
    exec bench/run.sh "$@"
}

sources() { git ls-files -co --exclude-standard '*.h' '*.cpp' | while read -r f; do [ -f "$f" ] && echo "$f"; done; }

verb_format() {
    need clang-format-14
    sources | xargs -n 40 -P 2 clang-format-14 -i
}

verb_lint() {
    need "${PACKAGES_BUILD[@]}" "${PACKAGES_LINT[@]}"
    local failed=0
    say "== layers"
    tools/check_layers.sh || failed=1
    say "== format"
    sources | xargs -n 40 -P 2 clang-format-14 --dry-run -Werror 2>.format.log || { head -20 .format.log >&2; say "run ./do format"; failed=1; }
    rm -f .format.log
    say "== clang 14, warnings are errors, thread-safety analysis; clang-tidy"
    configure tidy
    tools/run_tidy.sh || failed=1
    [ $failed -eq 0 ] || die "lint found something"
    say "lint: clean"
}

verb_install() {
    local prefix=/usr/local
    while [ $# -gt 0 ]; do
        case $1 in
            --prefix) prefix=${2:?--prefix needs a folder}; shift ;;
            --prefix=*) prefix=${1#*=} ;;
            *) die "install takes --prefix DIR" ;;
        esac
        shift
    done
    need "${PACKAGES_BUILD[@]}"
    configure release -DANGELIA_TESTS="$(test -f /usr/include/gtest/gtest.h && echo ON || echo OFF)"
    ninja_build release angelia angelia_installed
    cmake --install build/release --prefix "$prefix" >/dev/null
    say "installed below $prefix"
}

verb_help() {
    cat <<'TEXT'
./do demo [options]         real messages through a durable store, with a proof at the end (options: ./do demo --help)
./do test                   everything: builds, installs test clients below .cache/, runs all tests
./do test --quick           unit tests only, no ports
./do test --long            also more seeds, kill matrices, sanitizer builds
./do test --compat NAME     one client: node, python, java, go
./do build                  the program, at build/release/angelia
./do serve [options]        build and start the server
./do bench [options]        speed, as ratios to floors measured in the same run
./do lint                   layers, formatting, clang warnings, clang-tidy
./do format                 formats all sources
./do install [--prefix DIR] libraries, headers, program, CMake package, pkg-config
Options before the verb: -y  install missing Debian packages without asking
TEXT
}

while [ "${1:-}" = -y ]; do YES=1; shift; done
verb=${1:-help}
[ $# -gt 0 ] && shift
[ "${1:-}" = -y ] && { YES=1; shift; }
case $verb in
    demo | test | build | bench | lint | format | serve | install | help) "verb_$verb" "$@" ;;
    -h | --help) verb_help ;;
    *) say "do: no verb '$verb'"; verb_help >&2; exit 2 ;;
esac
