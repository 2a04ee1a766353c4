#!/usr/bin/env bash
# The demo proves itself, and its proof can fail: one effect fewer and one effect more must each end with exit code 1.
set -uo pipefail
program=$1 input=$2
run() { timeout 100 "$program" demo --input "$input" --seconds 4 --rate 150 --port 0 --no-stay "$@"; }

run || { echo "the demo failed with $?"; exit 1; }
for how in remove-effect add-effect; do
    run --tamper "$how" >/dev/null 2>/tmp/angelia-demo-$$.err
    code=$?
    cat /tmp/angelia-demo-$$.err; rm -f /tmp/angelia-demo-$$.err
    [ $code -eq 1 ] || { echo "$how: exit code $code, not 1"; exit 1; }
done
echo "the proof held, and failed for both tampered stores"
