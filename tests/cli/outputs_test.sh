#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Outputs that fail: full disks, closed pipes, devices, links. outputs_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
here=$(realpath "$2")/tests/cli
. "$here/fixtures.sh"
. "$here/signals.sh"
fail() { echo "$*" >&2; exit 1; }

# expect CODE STDERR-WORD COMMAND...
expect() {
    want=$1 word=$2
    shift 2
    code=0
    "$@" 2>stderr || code=$?
    [ "$code" -eq "$want" ] || fail "exit code $code instead of $want: $*: $(cat stderr)"
    [ "$(wc -l <stderr)" -le 1 ] || fail "more than one line: $(cat stderr)"
    grep -q "$word" stderr || fail "no '$word' in: $(cat stderr)"
}

expect 3 'No space left' sh -c "'$mx' explain formats >/dev/full"
expect 3 'No space left' sh -c "'$mx' analyze small.safetensors --json - >/dev/full"
expect 3 'No space left' "$mx" analyze small.safetensors --quiet --json /dev/full

# A limit on the size of files, for which the system sends SIGXFSZ: every writer reports it in one
# line.
# limited BLOCKS COMMAND...
limited() {
    blocks=$1
    shift
    (ulimit -f "$blocks" && exec "$@")
}
expect 3 'b.h5: cannot .*: File too large; raise the limit' limited 4 "$mx" analyze small.safetensors -q --blocks b.h5
"$mx" synth -o big.safetensors -q
for name in values.safetensors values.h5; do
    expect 3 "$name: cannot .*: File too large" limited 20 "$mx" quantize big.safetensors --all-tensors -r mxfp4 -o $name -q
done
expect 3 'w.npy: cannot .*: File too large' limited 1 "$mx" quantize big.safetensors -t '*embed_tokens*' -r mxfp4 -o w.npy -q
for writer in json csv markdown html; do
    expect 3 "out.$writer: cannot write: File too large" limited 1 "$mx" analyze big.safetensors -q --$writer out.$writer
done
mkdir folder && mv big.safetensors folder/model.safetensors
expect 3 'model-00001-of-00001.safetensors: cannot .*: File too large' limited 20 "$mx" lint folder --fix -o repaired
[ ! -e repaired ] || fail 'a copy that failed is there'
rm -r folder

expect 3 'standard output' sh -c "'$mx' explain formats >&-"
[ -c /dev/full ] || fail "/dev/full was replaced"

# A pipe closed before the first byte: a normal end without a message.
{ sleep 0.2; code=0; "$mx" explain formats 2>stderr || code=$?; echo $code >code; } | true
[ "$(cat code)" -eq 0 ] && [ ! -s stderr ] || fail "closed pipe: $(cat code) $(cat stderr)"

# Writes to a device, follows a link, and creates no other files there.
"$mx" analyze small.safetensors --quiet --csv /dev/null --json /dev/null
[ -c /dev/null ] || fail "/dev/null was replaced"
: >target.json
ln -s target.json link.json
"$mx" analyze small.safetensors --quiet --json link.json
[ -L link.json ] && [ -s target.json ] || fail "the link was replaced"

# A failure after opening the outputs leaves the old file unchanged.
echo precious >old.json
expect 3 'short.safetensors' "$mx" analyze short.safetensors --json old.json
[ "$(cat old.json)" = precious ] || fail "old.json was touched"

# The same file under two names.
ln -s small.safetensors alias.safetensors
expect 2 'input and an output' "$mx" quantize small.safetensors -o alias.safetensors --recipe mxfp4
expect 2 'two outputs' "$mx" analyze small.safetensors --json a.json --csv ./a.json
expect 2 'only one output' "$mx" analyze small.safetensors --json - --csv -
[ ! -e a.json ] || fail "a.json exists"

# An output without a name, and one with an ending that mx does not write.
for option in --json --csv --markdown --html --blocks; do
    expect 2 "analyze: $option: the name is empty" "$mx" analyze small.safetensors $option ''
done
expect 2 'analyze: --json needs a value' "$mx" analyze small.safetensors --json=
expect 2 'quantize: --output: the name is empty' "$mx" quantize small.safetensors -r mxfp4 -o ''
expect 2 'synth: --output: the name is empty' "$mx" synth -o ''
expect 2 'vectors: --hex: the name is empty' "$mx" vectors -r mxfp4 -o v.safetensors --hex ''
for ending in npz gguf pt pth bin onnx zip ckpt keras json NPZ; do
    expect 2 "o.$ending: cannot write .*npy, .h5" "$mx" quantize small.safetensors --all-tensors -r mxfp4 -o o.$ending
done
expect 2 'o.npz: cannot write .npz' "$mx" quantize small.safetensors --all-tensors -r e4m3 -o o.npz
expect 2 'o.h5: cannot write .h5 here' "$mx" synth -o o.h5
expect 2 'o.npy: cannot write .npy here' "$mx" vectors -r mxfp4 -o o.npy
expect 2 'o.npz: cannot write .npz' "$mx" analyze small.safetensors -q --blocks o.npz
"$mx" quantize small.safetensors --all-tensors -r mxfp4 --packed -q -o packed.safetensors
expect 2 'o.gguf: cannot write .gguf' "$mx" dequantize packed.safetensors -o o.gguf

# A run without a tensor to measure fails and writes nothing.
expect 3 'small.safetensors: tensor .mask.: nothing to do: .*BOOL' "$mx" quantize small.safetensors -t mask -r mxfp4 -o o.safetensors
expect 3 'nothing to do: .*BOOL' "$mx" quantize small.safetensors -t mask -r e4m3 -o o.safetensors
for command in analyze compare cluster 'cluster --fail-above 0'; do
    expect 3 'nothing to do: .*BOOL' "$mx" $command small.safetensors -t mask -q --json o.json
done
expect 3 'nothing to do: .*BOOL' "$mx" analyze small.safetensors -t mask -q --blocks o.h5
expect 3 'nothing to do: .*no tensor with an element' "$mx" analyze small.safetensors -t empty -q --blocks o.h5
expect 3 'nothing to do: .*axis' "$mx" analyze small.safetensors -t scale -r mxfp4:axis=1 -q
printf '\003\000\000\000\000\000\000\000{} ' >none.safetensors
expect 3 'nothing to do' "$mx" cluster none.safetensors --fail-above 0 -q
head -c 128 /dev/zero >zeros.bin
expect 1 'nothing to check' "$mx" cluster zeros.bin --shape 32 --dtype F32 --fail-above 0 -q
rm zeros.bin
leftovers=$(ls -d o.* w.npy values.* 2>&1 | grep -v 'No such' || true)
[ -z "$leftovers" ] || fail "left behind: $leftovers"

# A pipe without a reader: the first signal ends the wait.
mkfifo pipe
start "$mx" analyze small.safetensors -q --json pipe
sleep 0.2  # most often it waits by now; before, the answer is the same
stop TERM
[ "$code" -eq 130 ] && [ "$(cat stderr)" = 'mx: interrupted' ] || fail "a wait for a reader: $code $(cat stderr)"
rm pipe stdout

# Files of a killed run are removed by the next run that writes the same output; files of runs that
# are still writing, and other files, remain.
: >.out.json.01234567.tmp
: >.out.json.89abcdef.tmp
: >.other.json.01234567.tmp
touch -d '2 minutes ago' .out.json.01234567.tmp .out.json.89abcdef.tmp .other.json.01234567.tmp
if command -v flock >/dev/null; then
    flock .out.json.89abcdef.tmp "$mx" analyze small.safetensors -q --json out.json
    [ -e .out.json.89abcdef.tmp ] || fail "a file in use was removed"
fi
"$mx" analyze small.safetensors -q --json out.json
[ -e .other.json.01234567.tmp ] || fail "a file of another output was removed"
[ ! -e .out.json.01234567.tmp ] && [ ! -e .out.json.89abcdef.tmp ] || fail "a killed run's file is still there"
rm .other.json.01234567.tmp out.json

# Threads that cannot be created: reported in one line, before the work. The program and its libraries
# take a different amount of memory on every machine: the limit is 20 to 40 MB above what they need. A
# sanitizer starts under none of these limits.
"$mx" synth -o tiny.safetensors -q
for limit in $(seq 40000 20000 400000); do
    (ulimit -v "$limit" && "$mx" version) >/dev/null 2>&1 || continue
    expect 4 'grants .* of 57 threads' sh -c "ulimit -v $((limit + 20000)); exec '$mx' analyze tiny.safetensors -q --threads 64"
    break
done

# Memory that ends while HDF5 plans a file, which is no signal of the library: the first limits under
# which mx starts.
start=
for limit in $(seq 20000 1000 400000); do
    (ulimit -v "$limit" && "$mx" version) >/dev/null 2>&1 || continue
    start=${start:-$limit}
    [ "$limit" -le $((start + 12000)) ] || break
    code=0
    (ulimit -v "$limit"; exec "$mx" quantize tiny.safetensors -r mxfp8 --packed -o tiny.h5 -q --threads 1) \
        2>stderr || code=$?
    case $code in 0 | 3 | 4) ;; *) fail "exit code $code with $limit KiB: $(cat stderr)" ;; esac
    rm -f tiny.h5
done

# Stacks that are too small; and OpenMP, which ends the program if it gets no thread: not with the exit
# code of a difference.
if (ulimit -s 256) 2>/dev/null; then
    expect 4 'a stack of 256 KiB is too small' sh -c "ulimit -s 256; exec '$mx' analyze tiny.safetensors -q"
fi
if ldd "$mx" 2>/dev/null | grep -q libgomp; then
    expect 4 'OMP_STACKSIZE=64k: threads of mx need 512k' env OMP_STACKSIZE=64k \
        "$mx" analyze tiny.safetensors -q --threads 2
    if (ulimit -v 4000000 && "$mx" version) >/dev/null 2>&1; then
        code=0
        (ulimit -v 4000000; OMP_STACKSIZE=100G "$mx" analyze tiny.safetensors -q --threads 2 \
            --json out.json) 2>stderr || code=$?
        [ "$code" -eq 4 ] && grep -q 'mx: a library ended the run' stderr ||
            fail "exit code $code after a library ended it: $(cat stderr)"
    fi
fi
rm tiny.safetensors

rm -f stderr code
leftovers=$(ls -A | grep -v -e '^captured$' -e 'safetensors$' -e '^issue4.bin$' -e 'json$' -e '^formats$' -e '^shards$' -e '^steps$' -e '^torch$' -e '^lm$' -e '^lm.gguf$' || true)
[ -z "$leftovers" ] || fail "left behind: $leftovers"
