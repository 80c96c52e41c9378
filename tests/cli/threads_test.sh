#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same bytes for any number of threads, on difficult data: the program's own bytes read as bf16,
# including NaN and Inf.
set -eu
mx=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
head -c 1048576 "$mx" >data.bin
[ "$(wc -c <data.bin)" -eq 1048576 ]
for threads in 1 2 7; do
    "$mx" analyze data.bin --shape 512x1024 --dtype BF16 --threads $threads --histograms \
        --recipe mxfp8 --recipe mxfp4:scale=even,block=32x1 \
        --recipe mxfp6:round=stochastic,seed=3 --recipe nvfp4 --recipe fp8_128x128 \
        --json out.json --csv out.csv --markdown out.md --html out.html >table
    "$mx" quantize data.bin --shape 512x1024 --dtype BF16 --threads $threads \
        --recipe mxfp4:round=stochastic,seed=5 --packed -o packed.safetensors --quiet
    "$mx" quantize data.bin --shape 512x1024 --dtype BF16 --threads $threads \
        --recipe nvfp4:round=stochastic,seed=5 --packed -o nvfp4.safetensors --quiet
    "$mx" compare data.bin --shape 512x1024 --dtype BF16 --threads $threads --element e4m3,e2m1 \
        --round rtne,stochastic --draws 2 --block 1x32,4x4 --json sweep.json >ranking
    mkdir $threads
    mv sweep.json ranking out.json out.csv out.md out.html table packed.safetensors nvfp4.safetensors $threads
done
diff -r 1 2
diff -r 1 7
# A recipe alone gives the same figures as among others (pages request the parts of the error and
# regret).
"$mx" analyze data.bin --shape 512x1024 --dtype BF16 --histograms --decompose --regret \
    --recipe mxfp4:scale=even,block=32x1 --json alone.json --quiet
alone=$(grep '"recipe":"mxfp4:scale=even,block=32x1","elements"' alone.json)
among=$(grep '"recipe":"mxfp4:scale=even,block=32x1","elements"' 1/out.json)
[ -n "$alone" ] && [ "${alone%,}" = "${among%,}" ]
