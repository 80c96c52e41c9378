#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Standard input and named pipes instead of files give the same measurements, except for the path.
# pipe_test.sh MX
set -eu
mx=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/tmp"
cd "$scratch"
. "$here/fixtures.sh"
. "$here/signals.sh"
export TMPDIR="$scratch/tmp"
fail() {
    echo "$*" >&2
    exit 1
}
# same FILE JSON: the JSON of the file, with the path of the other.
same() {
    sed "s|\"$1\"|\"$2\"|g" "$3" | cmp - "$4" || fail "$4 differs from $3"
}
recipes="-r mxfp8 -r nvfp4 -r mxfp4:round=stochastic"
"$mx" synth -o model.safetensors --seed 3 -q

for command in analyze compare cluster; do
    # shellcheck disable=SC2086
    "$mx" $command model.safetensors $recipes --sha256 --json file.json -q
    # shellcheck disable=SC2086
    cat model.safetensors | "$mx" $command - $recipes --sha256 --json piped.json -q
    same model.safetensors - file.json piped.json
done
"$mx" tensors model.safetensors --json file.json -q
cat model.safetensors | "$mx" tensors - --json piped.json -q
same model.safetensors - file.json piped.json
# A redirected file is read from its beginning, or from the current position.
"$mx" tensors - --json piped.json -q <model.safetensors
same model.safetensors - file.json piped.json
{ printf before; cat model.safetensors; } >later
{ dd bs=1 count=6 of=/dev/null 2>/dev/null; "$mx" tensors - --json piped.json -q; } <later
same model.safetensors - file.json piped.json

# A named pipe, also with a late and slow writer.
mkfifo pipe
{ sleep 0.2; head -c 9000 model.safetensors; sleep 0.2; tail -c +9001 model.safetensors; } >pipe &
"$mx" tensors pipe --json piped.json -q
same model.safetensors pipe file.json piped.json
wait
# With another input, and to an output pipe.
cp small.safetensors other.safetensors
cat small.safetensors | "$mx" diff - other.safetensors | grep -q 'The 2 dumps are identical' || fail "diff"
"$mx" quantize small.safetensors --all-tensors -r mxfp4 -o file.safetensors -q
cat small.safetensors | "$mx" quantize - --all-tensors -r mxfp4 -o - -q | cmp - file.safetensors || fail "quantize"
# Process substitution, which needs bash.
if command -v bash >/dev/null; then
    bash -c '"$1" tensors <(cat model.safetensors) --csv - -q' bash "$mx" >piped.csv
    "$mx" tensors model.safetensors --csv - -q | sed "s|model.safetensors|$(sed -n '2s/,.*//p' piped.csv)|" | cmp - piped.csv ||
        fail "process substitution"
fi

# Raw binary and npy: arrays without names.
hex 0000803f 00000040 00004040 00008040 >four.bin
cat four.bin | "$mx" tensors - --shape 1x4 --dtype F32 --csv - -q | grep -q '^-,array,F32,1x4,4,16,' || fail "raw"
{
    printf '\223NUMPY\001\000v\000'
    printf "%-117s\n" "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4), }"
    cat four.bin
} >four.npy
cat four.npy | "$mx" analyze - -r mxfp4 --csv - -q | cut -d, -f 2- | sed 's/^array/four/' >piped.csv
"$mx" analyze four.npy -r mxfp4 --csv - -q | cut -d, -f 2- | cmp - piped.csv || fail "npy"
# Formats that are also read from their end.
cat formats/gguf_blocks.gguf | "$mx" tensors - -q --json piped.json
"$mx" tensors formats/gguf_blocks.gguf -q --json file.json
same formats/gguf_blocks.gguf - file.json piped.json

# --verbose says where the bytes are; no file remains there.
cat small.safetensors | "$mx" analyze - -r mxfp4 -q --verbose 2>err
grep -q "^mx: -: its [0-9]* bytes are read from a temporary file in $TMPDIR" err || fail "$(cat err)"
[ -z "$(ls "$TMPDIR")" ] || fail "left: $(ls "$TMPDIR")"

# Errors, one line each: exit code and text.
refused() {
    want=$1
    words=$2
    shift 2
    code=0
    "$mx" "$@" 2>err >/dev/null || code=$?
    [ "$code" -eq "$want" ] || fail "$*: exit code $code instead of $want: $(cat err)"
    [ "$(wc -l <err)" -eq 1 ] || fail "$*: $(cat err)"
    grep -q -e "$words" err || fail "$*: $(cat err)"
}
refused 3 'an empty file' analyze - </dev/null
: | refused 3 'an empty file' analyze -
head -c 300 small.safetensors | refused 3 '^mx: -: .*cut short' analyze -
head -c 130 four.npy | refused 3 '^mx: -: .*' analyze -
printf '{"weight_map":{"w":"small.safetensors"}}' | refused 3 'safetensors index files name others' analyze -
cat small.safetensors | refused 2 'a pipe is read once' analyze - -r mxfp4 --shard 1/2 --json part.json
cat small.safetensors | TMPDIR=/nowhere refused 3 'set TMPDIR' analyze -
refused 3 'cannot read' analyze - <&-
# A terminal, if a program is available that makes one.
if command -v script >/dev/null; then
    script -qec "'$mx' analyze -" /dev/null </dev/null >said 2>&1 || true
    grep -q "standard input is a terminal" said || fail "terminal: $(cat said)"
fi
# mx does not wait for a pipe in a directory or in an index.
mkdir model
mkfifo model/a.safetensors
refused 3 'is not a regular file' analyze model
# Ctrl-C ends the wait for a writer.
start "$mx" analyze pipe
sleep 0.2  # most often it waits by now; before, the answer is the same
stop INT
[ "$code" -eq 130 ] && [ "$(cat stderr)" = "mx: interrupted" ] || fail "waiting: $code $(cat stderr)"
