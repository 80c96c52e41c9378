#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measures every figure of docs/performance.md and prints them as Markdown; --update writes them to
# that page. Takes some minutes of an otherwise idle machine and, until it ends, 4 GiB of disk.
#
#   scripts/performance.sh [--update] [MX]      MX: the program, build/release/mx if not given
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C
update=no
[ "${1:-}" != --update ] || { update=yes; shift; }
mx=$(realpath "${1:-build/release/mx}")
size=${MX_PERFORMANCE_SIZE:-4GiB}
page=$PWD/docs/performance.md
scratch=build/performance
rm -rf "$scratch" && mkdir -p "$scratch"
trap 'rm -rf "$PWD/model.safetensors"' EXIT
cd "$scratch"

say() { printf '%s\n' "$*" >&2; }
# calc FORMAT EXPRESSION
calc() { awk "BEGIN { printf \"$1\", $2 }"; }
best=$("$mx" version | sed -n 's/^backend \([a-z0-9]*\) .*(chosen).*/\1/p')
all=$(nproc)

# field FILE RECIPE BACKEND THREADS DTYPE HISTOGRAMS NAME: one figure out of a JSON output.
field() {
    grep -F "{\"recipe\":\"$2\",\"backend\":\"$3\",\"threads\":$4,\"dtype\":\"$5\",\"histograms\":$6," \
        "$1" | sed "s/.*\"$7\":\([-+.e0-9]*\).*/\1/"
}
rate() { field "$1" "$2" "${3:-$best}" "${4:-1}" "${5:-BF16}" "${6:-false}" elements_per_second; }
fraction() {
    field "$1" "$2" "${3:-$best}" "${4:-1}" "${5:-BF16}" "${6:-false}" fraction_of_read_bandwidth
}
least() { sort -g | head -n 1; }

say 'recipes, threads and histograms ...'
recipes=()
plain=()  # without stochastic rounding, columns, tiles and offsets
for format in mxfp4 mxfp8; do
    plain+=("$format" "$format:scale=ceil" "$format:scale=even" "$format:scale=rceil")
    recipes+=("${plain[@]: -4}" "$format:round=stochastic" "$format:block=32x1" "$format:block=4x4"
        "$format:offset=fp16")
done
"$mx" bench "${recipes[@]/#/--recipe=}" --threads "1,$all" --seconds 12 --histograms \
    --json bf16.json --markdown bf16.md --quiet
say 'other dtypes ...'
for dtype in F16 F32; do
    "$mx" bench --recipe mxfp4 --recipe mxfp8 --dtype $dtype --threads 1 --json $dtype.json \
        --markdown $dtype.md --quiet
done
say 'from the cache ...'
"$mx" bench --recipe mxfp4 --size 4194304 --threads 1 --json cached.json --quiet
say 'other backends ...'
"$mx" bench --recipe mxfp4 --recipe mxfp8 --backend all --threads 1 --json backends.json \
    --markdown backends.md --quiet
say 'twelve recipes in one pass ...'
twelve=()
for format in mxfp4 mxfp6 mxfp8; do
    twelve+=("--recipe=$format" "--recipe=$format:scale=ceil" "--recipe=$format:scale=even"
        "--recipe=$format:scale=rceil")
done
"$mx" bench "${twelve[@]}" --together --threads 1 --seconds 6 --json twelve.json \
    --markdown twelve.md --quiet

say 'emulated matrix products ...'
"$mx" bench --gemm --threads "1,$all" --seconds 12 --json products.json --markdown products.md \
    --quiet
"$mx" bench --gemm --accumulate sm100.mxf8f6f4 --accumulate sm100.mxf4 --backend all --threads 1 \
    --json product_backends.json --markdown product_backends.md --quiet
# product MODEL BACKEND THREADS [FILE]: multiply-adds per second.
product() {
    grep -F "{\"accumulator\":\"$1\"," "${4:-products.json}" | grep -F "\"backend\":\"$2\"," |
        grep -F "\"threads\":$3," | sed 's/.*"multiply_adds_per_second":\([-+.e0-9]*\).*/\1/'
}

say "a file of $size ..."
"$mx" synth --size "$size" --output model.safetensors --quiet
elements=$("$mx" tensors model.safetensors --json - | grep -o '"elements":[0-9]*' |
    awk -F: '{ n += $2 } END { printf "%.0f", n }')
# seconds_of COMMAND...: wall time of the best of three runs.
seconds_of() {
    local start
    for _ in 1 2 3; do
        start=$EPOCHREALTIME
        "$@" >/dev/null
        calc '%.4f\n' "$EPOCHREALTIME - $start"
    done | least
}
analyze() { "$mx" analyze model.safetensors "$@" --json analysis.json --quiet; }
each_alone() { for recipe in "${twelve[@]}"; do analyze "$recipe" "$@"; done; }
cat model.safetensors >/dev/null  # into the page cache
file_one=$(seconds_of analyze --recipe mxfp4 --threads 1)
file_all=$(seconds_of analyze --recipe mxfp4 --threads "$all")
file_twelve=$(seconds_of analyze "${twelve[@]}" --threads "$all")
file_apart=$(seconds_of each_alone --threads "$all")
# Not by the function: the process that is watched has to be the program itself.
"$mx" analyze model.safetensors --recipe mxfp4 --threads "$all" --json analysis.json --quiet &
while line=$(grep VmHWM /proc/$!/status 2>/dev/null); do
    peak=$(($(echo "$line" | tr -dc 0-9) / 1024))
    sleep 0.02
done
wait $!

if command -v perf >/dev/null 2>&1; then
    say 'profile ...'
    perf record --quiet --output perf.data \
        "$mx" bench --recipe mxfp4 --threads 1 --seconds 6 --quiet 2>/dev/null || true
    perf report --quiet --input perf.data --stdio --sort symbol --percent-limit 1 >profile \
        2>/dev/null || true
fi

# row WHAT TARGET MEASURED FORMAT: TARGET is ">= x" or "<= x", or "-" when there is none.
row() {
    local verdict=no
    if [ "$2" = - ]; then
        verdict=-
    elif awk "BEGIN { exit !($3 $2) }"; then
        verdict=yes
    fi
    printf "| %s | %s | $4 | %s |\n" "$1" "$2" "$3" $verdict
}
ratio() { calc %.4f "$1 / $2"; }
worst() { for pair in "$@"; do ratio "${pair%/*}" "${pair#*/}"; echo; done | least; }

figures() {
    echo '## Figures'
    echo
    echo "Measured by \`scripts/performance.sh\` on $(date -u +%Y-%m-%d): $(sed -n \
        's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $all cores, backend $best,"
    "$mx" version --csv - | tr -d '\r' | sed -n 's/^compiler,/compiler /p; s/^version,/mx /p' | paste -sd, |
        sed 's/,/, /; s/$/./'
    echo
    echo '| what | target | measured | reached |'
    echo '|---|---|---|---|'
    b=bf16.json
    row 'BF16, 1 thread, slowest of mxfp4, mxfp8 under four rules: G elements/s' '>= 2.5' \
        "$(for r in "${plain[@]}"; do calc '%.4f\n' "$(rate $b "$r") * 1e-9"; done | least)" %.2f
    row 'the same, of the read bandwidth (0.14 would do instead on a slower machine)' - \
        "$(for r in "${plain[@]}"; do fraction $b "$r"; done | least)" %.3f
    row 'F32, 1 thread, mxfp4 and mxfp8, of the read bandwidth' '>= 0.25' \
        "$(for r in mxfp4 mxfp8; do fraction F32.json $r "$best" 1 F32; done | least)" %.3f
    row 'BF16, 1 thread, mxfp4 in the cache (4 million elements), times in memory' - \
        "$(ratio "$(rate cached.json mxfp4)" "$(rate $b mxfp4)")" %.2f
    row "$all threads, times one" '>= 1.8' "$(worst \
        "$(rate $b mxfp4 "$best" "$all")/$(rate $b mxfp4)" \
        "$(rate $b mxfp8 "$best" "$all")/$(rate $b mxfp8)")" %.2f
    row 'stochastic rounding, times nearest' '>= 0.5' "$(worst \
        "$(rate $b mxfp4:round=stochastic)/$(rate $b mxfp4)" \
        "$(rate $b mxfp8:round=stochastic)/$(rate $b mxfp8)")" %.2f
    for block in 32x1 4x4; do
        row "blocks of $block, times rows" '>= 0.5' "$(worst \
            "$(rate $b mxfp4:block=$block)/$(rate $b mxfp4)" \
            "$(rate $b mxfp8:block=$block)/$(rate $b mxfp8)")" %.2f
    done
    row 'with histograms, times without' '>= 0.333' "$(worst \
        "$(rate $b mxfp4 "$best" 1 BF16 true)/$(rate $b mxfp4)" \
        "$(rate $b mxfp8 "$best" 1 BF16 true)/$(rate $b mxfp8)")" %.2f
    row 'twelve recipes in one pass, in memory, times twelve passes' '<= 0.8' \
        "$(sed -n 's/.*"fraction_of_separate_passes":\([-+.e0-9]*\).*/\1/p' twelve.json)" %.2f
    row "twelve recipes in one run over a file of $size, times twelve runs" '<= 0.8' \
        "$(ratio "$file_twelve" "$file_apart")" %.2f
    row "\`mx analyze\` of that file, mxfp4, 1 thread, times in memory" '>= 0.6' \
        "$(ratio "$elements / $file_one" "$(rate $b mxfp4)")" %.2f
    row "the same, $all threads" '>= 0.6' \
        "$(ratio "$elements / $file_all" "$(rate $b mxfp4 "$best" "$all")")" %.2f
    row 'its peak memory, MiB' '< 300' "$peak" %d
    if [ "$best" = avx512 ]; then
        row 'AVX2, times AVX-512' '>= 0.5' "$(worst \
            "$(rate backends.json mxfp4 avx2)/$(rate backends.json mxfp4)" \
            "$(rate backends.json mxfp8 avx2)/$(rate backends.json mxfp8)")" %.2f
    fi
    row "mxfp4, 1 thread, times ggml's 0.26 G elements/s" '>= 10' \
        "$(calc %.4f "$(rate $b mxfp4) / 0.26e9")" %.1f
    row "mxfp4, 1 thread, times CPFloat's 0.18 G elements/s" '>= 13' \
        "$(calc %.4f "$(rate $b mxfp4) / 0.18e9")" %.1f
    row "mxfp4, $all threads, times microxcaling's 0.03 G elements/s" '>= 150' \
        "$(calc %.4f "$(rate $b mxfp4 "$best" "$all") / 0.03e9")" %.0f
    while read -r model target; do
        row "emulated product, $model, 1 thread: G multiply-adds/s" "$target" \
            "$(calc %.4f "$(product "$model" "$best" 1) * 1e-9")" %.2f
    done <<'MODELS'
sm100.mxf8f6f4 >= 1
sm100.mxf4 >= 2
sm100.mxf4nvf4 >= 2
sm90.wgmma.fp8 -
sm100.f16 -
sm100.tf32 -
MODELS
    row "mxf8f6f4, mxf4 and mxf4nvf4, $all threads, times one" '>= 1.8' "$(worst \
        "$(product sm100.mxf8f6f4 "$best" "$all")/$(product sm100.mxf8f6f4 "$best" 1)" \
        "$(product sm100.mxf4 "$best" "$all")/$(product sm100.mxf4 "$best" 1)" \
        "$(product sm100.mxf4nvf4 "$best" "$all")/$(product sm100.mxf4nvf4 "$best" 1)")" %.2f
    for model in sm100.mxf8f6f4 sm100.mxf4; do
        row "$model, 1 thread, times the plain loop" - "$(ratio \
            "$(product $model "$best" 1 product_backends.json)" \
            "$(product $model scalar 1 product_backends.json)")" %.0f
    done
    for part in bf16 F16 F32 backends twelve products product_backends; do
        echo
        sed 's/^## /### /; s/^# /### /' $part.md
    done
    if [ -s profile ]; then
        echo
        echo '### Profile: mxfp4, BF16, 1 thread; the two memory loops are the bandwidths'
        echo
        echo '```'
        grep -v '^ *$' profile | cut -c 1-100
        echo '```'
    fi
}

if [ $update = yes ]; then
    { sed '/^## Figures/,$d' "$page" && figures; } >page.md
    mv page.md "$page"
else
    figures
fi
