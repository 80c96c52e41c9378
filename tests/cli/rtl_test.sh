#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs examples/rtl in every installed simulator: the module agrees with the vectors of mx, and one
# with a wrong tie does not. rtl_test.sh MX SOURCE
set -eu
MX=$(realpath "$1")
export MX
rtl=$(realpath "$2")/examples/rtl
if ! command -v iverilog >/dev/null && ! command -v verilator >/dev/null; then
    echo "skipped: neither iverilog nor verilator is here"
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "$*" >&2; exit 1; }

sed 's/w <=  5 \* QUARTER/w <   5 * QUARTER/' "$rtl/mxfp4_quantizer.v" >"$scratch/wrong.v"
cmp -s "$rtl/mxfp4_quantizer.v" "$scratch/wrong.v" && fail "nothing was broken"
for SIMULATOR in iverilog verilator; do
    command -v "$SIMULATOR" >/dev/null || continue
    export SIMULATOR
    BLOCKS=240 "$rtl/run.sh" >"$scratch/log" || fail "$SIMULATOR: the module is wrong: $(cat "$scratch/log")"
    grep -q 'PASS: 240 blocks' "$scratch/log" || fail "$SIMULATOR: nothing was compared: $(cat "$scratch/log")"
    BLOCKS=240 "$rtl/run.sh" "$scratch/wrong.v" >"$scratch/log" && fail "$SIMULATOR: a wrong tie was not seen"
    grep -q 'FAIL: .* differences' "$scratch/log" || fail "$SIMULATOR: no verdict: $(cat "$scratch/log")"
done
