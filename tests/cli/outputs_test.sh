#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where outputs go wrong: full disks, closed pipes, devices, links. outputs_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
here=$(realpath "$2")/tests/cli
. "$here/fixtures.sh"
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

expect 3 'No space left' sh -c "'$mx' formats >/dev/full"
expect 3 'No space left' sh -c "'$mx' analyze small.safetensors --json - >/dev/full"
expect 3 'No space left' "$mx" analyze small.safetensors --quiet --json /dev/full
expect 3 'standard output' sh -c "'$mx' formats >&-"
[ -c /dev/full ] || fail "/dev/full was replaced"

# A reader that is gone before the first byte: a normal end, without a word.
{ sleep 0.2; code=0; "$mx" formats 2>stderr || code=$?; echo $code >code; } | true
[ "$(cat code)" -eq 0 ] && [ ! -s stderr ] || fail "closed pipe: $(cat code) $(cat stderr)"

# A device is written to, a link followed, and nothing appears beside them.
"$mx" analyze small.safetensors --quiet --csv /dev/null --json /dev/null
[ -c /dev/null ] || fail "/dev/null was replaced"
: >target.json
ln -s target.json link.json
"$mx" analyze small.safetensors --quiet --json link.json
[ -L link.json ] && [ -s target.json ] || fail "the link was replaced"

# A failure after the outputs were opened leaves the old file as it was.
echo precious >old.json
expect 3 'short.safetensors' "$mx" analyze short.safetensors --json old.json
[ "$(cat old.json)" = precious ] || fail "old.json was touched"

# The same file under two names.
ln -s small.safetensors alias.safetensors
expect 2 'input and an output' "$mx" quantize small.safetensors -o alias.safetensors --recipe mxfp4
expect 2 'two outputs' "$mx" analyze small.safetensors --json a.json --csv ./a.json
expect 2 'only one output' "$mx" analyze small.safetensors --json - --csv -
[ ! -e a.json ] || fail "a.json exists"
rm -f stderr code
leftovers=$(ls -A | grep -v -e '^captured$' -e 'safetensors$' -e '^issue4.bin$' -e 'json$' || true)
[ -z "$leftovers" ] || fail "left behind: $leftovers"
