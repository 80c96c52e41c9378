#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same bytes in whatever floating-point environment mx starts: a preloaded library sets it, as one
# linked with -ffast-math does. floating_point_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
skip() { echo "skipped: $*"; exit 77; }
cat >mode.c <<'END'
#define _GNU_SOURCE
#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <xmmintrin.h>
static void small_as_zero(unsigned bits) { _mm_setcsr(_mm_getcsr() | bits); }
#else
static void small_as_zero(unsigned bits) {
    (void)bits;
    __asm__ volatile("msr fpcr, %0" : : "r"(1ul << 24));
}
#endif
__attribute__((constructor)) static void set(void) {
    const char* const mode = getenv("TEST_MODE");
    if (mode == NULL) return;
    if (strcmp(mode, "ftz") == 0) small_as_zero(0x8000);
    if (strcmp(mode, "daz") == 0) small_as_zero(0x0040);
    if (strcmp(mode, "up") == 0) fesetround(FE_UPWARD);
    if (strcmp(mode, "down") == 0) fesetround(FE_DOWNWARD);
    if (strcmp(mode, "zero") == 0) fesetround(FE_TOWARDZERO);
    if (strcmp(mode, "traps") == 0) feenableexcept(FE_ALL_EXCEPT);
}
END
cat >probe.c <<'END'
int main(void) {
    volatile float x = 1.5f, y = 0x1p-24f;
    return x + y == x ? 0 : 1;
}
END
{ cc -O1 -shared -fPIC -o mode.so mode.c -lm && cc -o probe probe.c; } >log 2>&1 || skip "no C compiler"
./probe && ! LD_PRELOAD=./mode.so TEST_MODE=up ./probe || skip "a preloaded library cannot set the mode"
LD_PRELOAD=./mode.so "$mx" version >/dev/null 2>&1 || skip "this mx runs with no preloaded library"

# Any bits, with NaN, Inf and subnormals, and those of a model.
head -c 65536 "$mx" >any.bin
"$mx" synth -o model.safetensors -q
"$mx" analyze model.safetensors -q --json results.json
shape="--shape 64x256 --dtype F32"
any="any.bin $shape --threads 2"
recipes="-r mxfp4 -r mxfp8:scale=rceil -r mxfp6:scale=even -r nvfp4 -r mxint8 -r mxfp4:scale=search
    -r mxfp4:round=stochastic -r nvfp4:dialect=te -r fp8_1x128 --decompose --histograms --regret"
commands='analyze scalar compare cluster cluster_scalar rosetta diff quantize packed dequantize cast gemm
    layer train llama synth vectors show plan report speedups explain formats'
run() { # COMMAND
    case $1 in
    analyze) set -- analyze $any $recipes -q --json - ;;
    scalar) set -- analyze $any $recipes -q --json - --backend scalar ;;
    compare) set -- compare $any --element e4m3,e2m1 -q --json - ;;
    cluster) set -- cluster $any -r mxfp8:scale=floor -r nvfp4 -q --json - ;;
    cluster_scalar) set -- cluster $any -r mxfp8:scale=floor -r nvfp4 -q --json - --backend scalar ;;
    rosetta) set -- rosetta $any -r mxfp4:scale=even -r mxfp4:scale=rceil -q --json - ;;
    diff) set -- diff model.safetensors other.safetensors -q --json - ;;
    quantize) set -- quantize $any -r nvfp4:transform=hadamard -q -o - ;;
    packed) set -- quantize $any -r mxfp4:scale=even --packed -q -o - ;;
    dequantize) set -- dequantize packed.safetensors -q -o - ;;
    cast) set -- quantize $any -r e4m3 -q -o - ;;
    gemm) set -- gemm x.npy x.npy --transpose-b -r mxfp8 -m fp32.fma -m sm100.mxf8f6f4 -q --json - ;;
    layer) set -- layer --x x.npy --w x.npy --dy x.npy -r mxfp8 -q --json - ;;
    train) set -- train proxy --width 32 --depth 2 --batch 32 --steps 4 -r mxfp8 --threads 2 -q --json - ;;
    llama) set -- train llama --steps 1 -r mxfp4 --threads 2 -q --json - ;;
    synth) set -- synth -q -o - ;;
    vectors) set -- vectors -r mxfp4:scale=rceil -q -o - ;;
    show) set -- show any.bin $shape -r mxfp4 --json - ;;
    plan) set -- plan results.json --bits 5 --json - ;;
    report) set -- report results.json --html - ;;
    speedups) set -- study speedups --profile b200 -c mxfp8 --json - ;;
    explain) set -- explain nvfp4:scale=two-level ;;
    formats) set -- explain formats --json - ;;
    esac
    "$mx" "$@"
}
"$mx" synth -o other.safetensors --seed 7 -q
"$mx" quantize $any -r nvfp4 --packed -q -o packed.safetensors
"$mx" quantize model.safetensors -t 'model.layers.0.self_attn.q_proj.weight' -r mxfp8 -q -o x.npy
for command in $commands; do run $command >"plain.$command" || { echo "$command without a mode"; exit 1; }; done

different=
for mode in ftz daz up down zero traps; do
    for command in $commands; do
        code=0
        TEST_MODE=$mode LD_PRELOAD=$scratch/mode.so run $command >out 2>message || code=$?
        [ $code -eq 0 ] && cmp -s out "plain.$command" || different="$different $command/$mode($code)"
    done
done
[ -z "$different" ] || { echo "other bytes under a mode:$different"; exit 1; }
