#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The lines of --verbose on standard error, which change nothing else. verbose_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
fail() { echo "$*" >&2; exit 1; }
unset MX_BACKEND
"$mx" synth -o tiny.safetensors --quiet

# says LINES ARGUMENT...: standard error is these lines with --verbose and empty without; standard
# output is the same.
says() {
    lines=$1
    shift
    "$mx" "$@" >plain 2>stderr
    [ ! -s stderr ] || fail "not asked for: $*: $(cat stderr)"
    "$mx" "$@" --verbose >stdout 2>stderr
    printf '%s' "$lines" >expected
    diff expected stderr || fail "on stderr: $*"
    cmp plain stdout || fail "another result: $*"
    "$mx" "$@" --verbose --quiet >stdout 2>stderr
    diff expected stderr || fail "on stderr: $* --quiet"
}
instead="by backend scalar, as backend"
checked=0
for backend in $("$mx" version | sed -n '/not here/d; s/^backend \([a-z0-9]*\) .*/\1/p'); do
    first="mx: backend $backend, 2 threads
"
    run="--threads 2 --backend $backend"
    says "$first" analyze tiny.safetensors --recipe mxfp4 $run
    case $backend in
    scalar)
        says "$first" analyze tiny.safetensors --recipe nvfp4 --recipe mxfp4 $run
        says "$first" quantize tiny.safetensors --all-tensors -r e4m3 -o e4m3.safetensors $run
        ;;
    neon | sse4 | avx2 | avx512)
        says "$first" analyze tiny.safetensors --recipe nvfp4 --recipe fp8_1x128 \
            --recipe mxfp4:dialect=torchao --recipe nvfp4:four_over_six=mse $run
        recipe=mxfp4:dialect=microxcaling-bf16
        others="mx: recipe $recipe: $instead $backend has no kernels for it
"
        says "$first$others" analyze tiny.safetensors --recipe $recipe --recipe mxfp4 $run
        says "$first$others" compare tiny.safetensors --recipe $recipe --recipe mxfp4 $run
        says "$first$others" cluster tiny.safetensors --recipe $recipe $run
        says "$first$others" diff tiny.safetensors tiny.safetensors --recipe $recipe $run
        says "$first$others" quantize tiny.safetensors --recipe $recipe -o q.safetensors $run
        says "$first" quantize tiny.safetensors --all-tensors -r e4m3 -o e4m3.safetensors $run
        says "${first}mx: casts: $instead $backend has no kernels for them
" quantize tiny.safetensors --all-tensors -r e4m3:dialect=gfloat -o e4m3.safetensors $run
        says "$first" analyze tiny.safetensors --recipe mxfp4 --blocks blocks.h5 $run
        weight=$("$mx" tensors tiny.safetensors --csv - | sed -n 's/^[^,]*,\([^,]*mlp[^,]*weight\),.*/\1/p' | head -1)
        says "${first}mx: accumulator fp32.pairwise: by the plain loop of backend scalar, as backend $backend has no kernels for it
" gemm tiny.safetensors:"$weight" tiny.safetensors:"$weight" --transpose-b -r mxfp4 \
            -m fp32.pairwise -m sm100.mxf8f6f4 $run
        checked=$((checked + 1))
        ;;
    esac
done
[ "$checked" -gt 0 ] || echo 'this processor has no vector backend: scalar only'

# Commands that neither quantize nor multiply name no backend.
for command in synth dequantize tensors; do
    code=0
    "$mx" "$command" --verbose >stdout 2>stderr || code=$?
    [ "$code" -eq 2 ] || fail "$command --verbose: exit code $code"
done
