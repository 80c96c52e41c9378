#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What scripts/check-gpu.sh makes of a machine without a device, and of steps that pass and fail: with
# programs that are made up, so that nothing has to be built and no card has to be there.
# check_gpu_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
check=$(realpath "$2")/scripts/check-gpu.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
fail() { echo "$*" >&2; exit 1; }
# expect CODE ARGUMENT...
expect() {
    want=$1
    shift
    code=0
    "$check" "$@" >stdout 2>stderr || code=$?
    [ "$code" -eq "$want" ] || fail "exit code $code instead of $want: $*: $(cat stdout stderr)"
}
# says FILE PATTERN
says() { grep -q -e "$2" "$1" || fail "no '$2' in $1: $(cat "$1")"; }

# The program itself, which sees no device.
mkdir real
ln -s "$mx" real/mx
export CUDA_VISIBLE_DEVICES=-1
expect 77 --build real --output none
says none/summary.txt '^version  *passed'
says none/summary.txt '^device  *skipped  *no device: '
says none/summary.txt '^tests  *skipped  *no device'
says none/summary.txt '^gemm-sm90: same bytes  *skipped  *no device'
says stdout '^skipped: no device: .'
if grep -q -w -e failed none/summary.txt; then fail "something failed: $(cat none/summary.txt)"; fi
expect 2 --build real --output none
expect 2 --bild real
expect 1 --build nowhere --output missing
says missing/summary.txt '^mx  *failed  *no .*/nowhere/mx$'

# A device that is made up: `cast` leaves other bytes there, `compare` fails.
mkdir -p made/tests/gpu
cat >made/mx <<'MX'
#!/bin/sh
case $1 in
    version) printf 'backend cuda,"NVIDIA GPUs (NVIDIA Made Up, sm_90, 1 SMs, 1.0 GiB)"\r\n'; exit ;;
    compare) case "$*" in *cuda*) echo "no such thing" >&2; exit 4 ;; esac ;;
    bench)
        case "$*" in
            *--gemm*) text='{"accumulator":"sm100.mxf8f6f4","times_two_threads_of_the_processor":150.5}' ;;
            *) text='{"values":"device","writes":"sums","recipe":"mxfp4","fraction_of_roof":0.25}' ;;
        esac ;;
esac
text=${text-$1}
[ "$1" != cast ] || case "$*" in *cuda*) text=other ;; esac
while [ $# -gt 0 ]; do
    case $1 in -o | --json | --csv) echo "$text" >"$2" ;; esac
    shift
done
MX
printf '#!/bin/sh\nmkdir "$3"\necho >"$3/manifest.json"\n' >made/mx_capture  # --quick --out FOLDER
printf '#!/bin/sh\necho "skipped: for a reason"\nexit 77\n' >made/tests/gpu/mx_gpu_parity
chmod +x made/mx made/mx_capture made/tests/gpu/mx_gpu_parity
expect 1 --build made --quick
out=$(ls -d gpu-check-*)
says stdout "^To send it: tar czf $out"
case $out in gpu-check-nvidia-made-up-*) ;; *) fail "called $out" ;; esac
says "$out/summary.txt" '^device  *passed  *NVIDIA Made Up$'
says "$out/summary.txt" '^memcheck parity  *skipped'
says "$out/summary.txt" '^capture verified  *passed'
says "$out/summary.txt" '^analyze: same bytes  *passed'
says "$out/summary.txt" '^gemm-sm90: same bytes  *passed'
says "$out/summary.txt" '^cast: same bytes  *failed  *they differ'
says "$out/summary.txt" '^compare by cuda  *failed  *exit code 4: no such thing'
says "$out/summary.txt" '^compare: same bytes  *failed'
says "$out/summary.txt" '^mxfp4, values on the card.*0.7  *0.25  *missed$'
says "$out/summary.txt" '^sm100.mxf8f6f4, times.*100  *150.5  *reached$'
says "$out/summary.txt" '^mxfp4, from a file.*-  *not measured$'

# What is stopped stops at once, and what it ran with it.
printf '#!/bin/sh\necho $$ >"%s/pid"\nexec sleep 60\n' "$scratch" >made/mx_capture
"$check" --build made --quick --output stopped >stdout 2>stderr &
script=$!
tries=0
until [ -s pid ]; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || fail "the recording does not begin: $(cat stdout stderr)"
    sleep 0.1
done
kill "$script"
code=0
wait "$script" || code=$?
[ "$code" -eq 143 ] || fail "exit code $code of what was stopped"
says stderr '^stopped; what there is lies in .*/stopped$'
if kill -0 "$(cat pid)" 2>/dev/null; then fail 'the recording goes on'; fi
[ -z "$(ls -d .gpu-check-* 2>/dev/null)" ] || fail "left over: $(ls -d .gpu-check-*)"
