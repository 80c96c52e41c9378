#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Simulates mxfp4_quantizer.v on vectors of mx, in Icarus Verilog or else in Verilator.
# run.sh [MODULE.v]: another module of the same name and ports. Environment: MX (mx), BLOCKS (960),
# SIMULATOR (iverilog or verilator).
set -eu
here=$(dirname "$(realpath "$0")")
module=$(realpath "${1:-$here/mxfp4_quantizer.v}")
testbench=$here/mxfp4_quantizer_tb.v
blocks=${BLOCKS:-960}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"${MX:-mx}" vectors --recipe mxfp4 --count "$blocks" -o vectors.safetensors --hex hex --quiet
simulator=${SIMULATOR:-$(command -v iverilog || command -v verilator || echo none)}
case $simulator in
*iverilog)
    "$simulator" -g2001 -Wall -Wno-timescale -P "mxfp4_quantizer_tb.BLOCKS=$blocks" -o simulation \
        "$testbench" "$module"
    vvp -n simulation >log
    ;;
*verilator)
    "$simulator" --binary -Wno-fatal --top-module mxfp4_quantizer_tb "-GBLOCKS=$blocks" \
        "$testbench" "$module" >build.log 2>&1 || { cat build.log >&2; exit 2; }
    obj_dir/Vmxfp4_quantizer_tb >log
    ;;
*)
    echo "run.sh: needs iverilog or verilator (Debian: apt install iverilog)" >&2
    exit 77
    ;;
esac
grep -v '^- ' log
grep -q '^PASS' log
