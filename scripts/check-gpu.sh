#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks everything that needs an NVIDIA GPU, on a machine that has one and CUDA 13: builds, runs the
# tests marked gpu, compute-sanitizer, a recording of the card and its verification, the commands
# with --backend cuda against the processor's bytes, and the benchmarks. Takes about an hour, needs
# no network and no other rights than to use the card, and changes no setting of it.
#
#   scripts/check-gpu.sh [--build DIR] [--output DIR] [--quick]
#
#   --build DIR   a build that is there already; nothing is configured or built
#   --output DIR  where everything is written (gpu-check-DEVICE-DATE in the current folder)
#   --quick       a smaller file, one case of many under compute-sanitizer, a short recording
#
# A step that fails does not stop the others. Exit code: 0 when nothing failed, 1 when something did,
# 77 when there is no device and nothing else failed.
set -u
export LC_ALL=C
source_dir=$(cd "$(dirname "$0")/.." && pwd)
build=
output=
quick=no
while [ $# -gt 0 ]; do
    case $1 in
        --build) build=${2:?"--build: which folder?"}; shift ;;
        --output) output=${2:?"--output: which folder?"}; shift ;;
        --quick) quick=yes ;;
        *) sed -n '3,/^set/{/^#/s/^# \{0,1\}//p;}' "$0" >&2; exit 2 ;;
    esac
    shift
done
built=no
[ -z "$build" ] || { built=yes; build=$(realpath "$build") || exit 2; }
[ -n "$build" ] || build=$source_dir/build/gpu

# The folder gets its name when the device is known; until then, and where there is none, "none".
started=$(date -u +%Y%m%d-%H%M%S)
work=${output:-$PWD/gpu-check-none-$started}
if [ -e "$work" ] && [ -n "$(ls -A "$work" 2>/dev/null)" ]; then
    echo "$work is there already; choose another --output" >&2
    exit 2
fi
mkdir -p "$work" || exit 1
work=$(realpath "$work")
# Beside the results: files of some GiB are made there.
scratch=$(mktemp -d "$(dirname "$work")/.gpu-check-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
# timeout has a process group of its own, which a terminal's interrupt does not reach.
running=
stop() {
    [ -z "$running" ] || { kill "$running"; wait "$running"; } 2>/dev/null
    echo "stopped; what there is lies in $work" >&2
    exit "$1"
}
trap 'stop 130' INT
trap 'stop 143' TERM
mx=$build/mx
results=()
failed=0
device=no

say() { printf '%s\n' "$*" | tee -a "$work/log.txt"; }
# note STEP OUTCOME [WHY]
note() {
    results+=("$(printf '%-34s %-8s %s' "$1" "$2" "${3:-}")")
    say "== $1: $2${3:+: $3}"
    [ "$2" != failed ] || failed=1
}
# step NAME SECONDS COMMAND...: in a log of its own. 77 is skipped, all but 0 has failed.
step() {
    local name=$1 limit=$2 code=0 start=$SECONDS
    shift 2
    local file=$work/${name//[ \/]/-}.log
    say "== $name (at most $limit s): $*"
    timeout -k 20 "$limit" "$@" >"$file" 2>&1 </dev/null &
    running=$!
    wait "$running" || code=$?
    running=
    cat "$file" >>"$work/log.txt"
    local last
    last=$(grep -v '^ *$' "$file" | tail -n 1 | cut -c 1-160)
    case $code in
        0) note "$name" passed "$((SECONDS - start)) s" ;;
        77) note "$name" skipped "${last#skipped: }" ;;
        124 | 137) note "$name" failed "not done in $limit s, or killed" ;;
        *) note "$name" failed "exit code $code: $last" ;;
    esac
    return "$code"
}
# on_device NAME SECONDS COMMAND...: a step that is skipped without a device.
on_device() {
    if [ $device = yes ]; then step "$@"; else note "$1" skipped 'no device'; fi
}
size() { if [ $quick = yes ]; then echo "$2"; else echo "$1"; fi; }

if [ $built = no ]; then
    generator=()
    ! command -v ninja >/dev/null 2>&1 || [ -e "$build/CMakeCache.txt" ] || generator=(-G Ninja)
    step configure 600 cmake -S "$source_dir" -B "$build" "${generator[@]}" \
        -DCMAKE_BUILD_TYPE=Release -DMX_CUDA=on -DMX_BUILD_TESTS=ON
    step build 7200 cmake --build "$build" --parallel "$(nproc)" \
        --target mx mx_capture mx_gpu_tests
fi
if [ ! -x "$mx" ]; then
    note mx failed "no $mx"
else
    step version 120 "$mx" version --csv -
    # What a device does not say of itself; nothing is set.
    ! command -v nvidia-smi >/dev/null 2>&1 || step nvidia-smi 60 nvidia-smi -q
    line=$(grep '^backend cuda,' "$work/version.log" | tail -n 1 | tr -d '\r')
    case $line in
        '' | *'not here'*)
            reason=$(printf '%s' "$line" | sed -n 's/.*not here: \(.*\))"*$/\1/p')
            note device skipped "no device: ${reason:-mx has no backend cuda}"
            ;;
        *)
            device=yes
            # backend cuda,"NVIDIA GPUs (NVIDIA H200, sm_90, ..."
            name=$(printf '%s' "$line" | sed 's/^.*(\([^(]*\), sm_.*/\1/')
            note device passed "$name"
            if [ -z "$output" ]; then
                named=$(printf '%s' "$name" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-')
                named=$(dirname "$work")/gpu-check-$named-$started
                mv "$work" "$named" && work=$named
            fi
            ;;
    esac
fi

on_device 'tests' 3600 ctest --test-dir "$build" -L gpu --output-on-failure --timeout 1800

# The tools of the sanitizer, over the tests that start every kernel.
sanitizer=$(PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin:/usr/local/cuda/bin \
    command -v compute-sanitizer || true)
every=$(size 23 211)
for tool in memcheck racecheck synccheck initcheck; do
    # Results come back in one copy, with gaps between arrays that no kernel writes or reads.
    how=()
    if [ $tool = initcheck ] && [ -n "$sanitizer" ] &&
        "$sanitizer" --help 2>&1 | grep -q -e --check-api-memory-access; then
        how=(--check-api-memory-access no)
    fi
    for program in "$build"/tests/gpu/mx_gpu_*; do
        if [ ! -f "$program" ] || [ ! -x "$program" ]; then continue; fi
        name="$tool ${program##*/mx_gpu_}"
        if [ "${program##*/}" = mx_gpu_conversions ]; then
            note "$name" skipped 'it goes through all of float32'
        elif [ $device = yes ] && [ -z "$sanitizer" ]; then
            note "$name" skipped 'compute-sanitizer is not installed'
        else
            on_device "$name" 1800 "$sanitizer" --tool "$tool" "${how[@]}" --error-exitcode 99 \
                "$program" --every "$every"
        fi
    done
done

short=() && [ $quick = no ] || short=(--quick)
on_device 'capture' 3000 "$build/mx_capture" "${short[@]}" --out "$work/capture"
if [ -e "$work/capture/manifest.json" ]; then
    step 'capture verified' 3600 "$mx" verify "$work/capture"
else
    note 'capture verified' skipped 'nothing was recorded'
fi

# Each command by the processor and by the card: the same bytes, tables included.
cd "$scratch" || exit 1
model=model.safetensors
if [ -x "$mx" ] && [ $device = yes ]; then
    step synth 600 "$mx" synth --size "$(size 512MiB 32MiB)" -o $model --quiet
    "$mx" synth --preset small -o small.safetensors --quiet
fi
# same NAME ARGUMENT...: OUT in an argument is a folder, empty at first.
same() {
    local name=$1 backend
    shift
    if [ $device = no ]; then
        note "$name: same bytes" skipped 'no device'
        return
    fi
    local out=$scratch/out
    for backend in processor cuda; do
        local choice=() && [ $backend = processor ] || choice=(--backend cuda)
        mkdir -p "$out"
        step "$name by $backend" 1200 "$mx" "${@//OUT/$out}" "${choice[@]}" --quiet
        (cd "$out" && sha256sum -- *) >"$work/$name.$backend.sha256" 2>/dev/null
        mv "$out" "$scratch/$backend"
    done
    if [ ! -s "$work/$name.processor.sha256" ]; then
        note "$name: same bytes" failed 'nothing was written'
    elif cmp -s "$work/$name.processor.sha256" "$work/$name.cuda.sha256"; then
        note "$name: same bytes" passed
    else
        note "$name: same bytes" failed 'they differ'
        # Records are small; what they say tells where to look.
        for backend in processor cuda; do
            cp "$scratch/$backend/records.json" "$work/$name.$backend.json" 2>/dev/null
        done
    fi
    rm -rf "$scratch/processor" "$scratch/cuda"
}
some=(-r mxfp4 -r mxfp8:scale=even -r mxfp6:round=stochastic -r mxint8:block=32x1)
same analyze analyze $model "${some[@]}" --histograms --decompose --json OUT/records.json --csv OUT/records.csv
same compare compare $model --json OUT/records.json --csv OUT/records.csv
same quantize quantize $model -r mxfp4:scale=even -o OUT/values.safetensors --json OUT/records.json
same packed quantize $model -r mxfp8 --packed -o OUT/packed.safetensors --json OUT/records.json
same cast cast $model --element e4m3 -o OUT/cast.safetensors --json OUT/records.json
a=small.safetensors:activations.layers.0.self_attn.input
b=small.safetensors:model.layers.0.self_attn.q_proj.weight
same gemm-sm100 gemm $a $b --transpose-b -r mxfp8 -m sm100.mxf8f6f4 -o OUT/d.safetensors \
    --json OUT/records.json
same gemm-sm90 gemm $a $b --transpose-b -r e4m3 -m sm90.wgmma.fp8 -o OUT/d.safetensors \
    --json OUT/records.json

# Speed, each figure beside its roof, measured in the same run.
if [ $device = yes ]; then
    step 'synth for bench' 1200 "$mx" synth --size "$(size 16GiB 1GiB)" -o $model --quiet
fi
on_device 'bench' 1800 "$mx" bench $model --backend cuda --recipe mxfp4 --recipe mxfp8 \
    --threads "1,$(nproc)" --seconds "$(size 10 1)" --json "$work/bench.json"
on_device 'bench products' 1800 "$mx" bench --gemm --backend cuda --threads "$(nproc)" \
    --accumulate sm90.wgmma.fp8 --accumulate sm100.mxf8f6f4 \
    --mnk "$(size 8192,8192,4096 4096,4096,2048)" --seconds "$(size 60 4)" \
    --json "$work/products.json"

# best FILE PATTERN FIELD: the largest value of a field in the records that match.
best() {
    grep -e "$2" "$1" 2>/dev/null | sed -n "s/.*\"$3\":\([-+.e0-9]*\).*/\1/p" | sort -g | tail -n 1
}
# goal WHAT LEAST MEASURED
goal() {
    local verdict='not measured'
    [ -z "$3" ] ||
        verdict=$(awk "BEGIN { print ($3 >= $2) ? \"reached\" : \"missed\" }")
    printf '%-58s %8s %10s  %s\n' "$1" "$2" "${3:--}" "$verdict"
}
speed() {
    printf '%-58s %8s %10s\n' 'speed' 'aim' 'measured'
    goal 'mxfp4, values on the card, of its read bandwidth' 0.7 "$(best "$work/bench.json" \
        '"values":"device","writes":"sums","recipe":"mxfp4"' fraction_of_roof)"
    goal 'mxfp4, codes written, of its copy bandwidth' 0.8 "$(best "$work/bench.json" \
        '"values":"device","writes":"codes","recipe":"mxfp4"' fraction_of_roof)"
    goal 'mxfp4, from a file, of pinned copies to the card' 0.8 "$(best "$work/bench.json" \
        '"values":"files","writes":"sums","recipe":"mxfp4"' fraction_of_roof)"
    for model in sm90.wgmma.fp8 sm100.mxf8f6f4; do
        goal "$model, times two threads of the processor" 100 "$(best "$work/products.json" \
            "\"accumulator\":\"$model\"" times_two_threads_of_the_processor)"
    done
}

{
    echo
    printf '%s\n' "${results[@]}"
    if [ $device = yes ]; then
        echo
        speed
    fi
} | tee "$work/summary.txt" | tee -a "$work/log.txt"
echo
echo "Everything is in $work"
[ $device = no ] || printf 'To send it: tar czf %q -C %q %q\n' "$(basename "$work").tar.gz" \
    "$(dirname "$work")" "$(basename "$work")"
if [ $failed -ne 0 ]; then exit 1; fi
if [ $device = no ]; then
    echo "skipped: $(printf '%s\n' "${results[@]}" | sed -n 's/^device  *skipped  *//p')"
    exit 77
fi
