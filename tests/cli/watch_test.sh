#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mx watch during a training run: checkpoints that are written slowly are never read incomplete, a
# killed watch continues without missing or duplicate lines, rules end it or run a command.
# watch_test.sh MX
set -eu
mx=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
watcher=
trap '[ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true; rm -rf "$scratch"' EXIT
cd "$scratch"
. "$here/fixtures.sh"
. "$here/signals.sh"
fail() {
    echo "$*" >&2
    exit 1
}
# checkpoint NAME GAIN: a norm of one block, whose largest gain is GAIN in bf16.
checkpoint() {
    hex 803f a03f a03f "$2" >data
    safetensors '{"layers.3.norm.weight":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]}}' data >"$1"
    rm data
}
lines() { wc -l <"$1" | tr -d ' '; }
# has_lines FILE COUNT: whether the file is there, with that many lines or more.
has_lines() { [ -e "$1" ] && [ "$(lines "$1")" -ge "$2" ]; }

# Falls through 1: 1.5, 1.25, 1.125; rises toward 1.75: 1.5, 1.5625, 1.625.
mkdir fall rise
checkpoint fall/step100.safetensors c03f
checkpoint fall/step200.safetensors a03f
checkpoint rise/step200.safetensors c03f
checkpoint rise/step900.safetensors c83f
checkpoint rise/step1600.safetensors d03f

# A fall is reported before it happens, with the step, the layer and the remedy.
code=0
"$mx" watch fall --once --log fall.jsonl >out 2>err || code=$?
[ "$code" -eq 1 ] || fail "fall: exit code $code: $(cat err)"
grep -q 'layers.3.norm.weight (layer 3) under mxfp8: 1 of 1 block maxima will fall through a power of two into the clamp zone: the first in about 122 steps (near step 322); cheapest remedy: scale=rceil' err ||
    fail "fall: $(cat err)"
grep -q '"previous":"step100.safetensors","compared":true' fall.jsonl || fail "fall: $(cat fall.jsonl)"
# A recipe without a clamp zone reports no fall.
"$mx" watch fall --once -r mxfp8:scale=rceil -q 2>err || fail "rceil: $(cat err)"

# A rise, over three checkpoints in the order of their numbers, of which the first is deleted.
code=0
"$mx" watch rise --once --log rise.jsonl --match 'step[29]00.*' -q 2>err || code=$?
[ "$code" -eq 0 ] || fail "rise: exit code $code: $(cat err)"
rm rise/step200.safetensors
MX_WATCH_STEP=left "$mx" watch rise --once --log rise.jsonl --prometheus rise.prom -q \
    --exec 'env | grep ^MX_WATCH >said; cat >line' 2>err && fail "rise: exit code 0"
grep -q 'rise toward the clamp zone: on average 0.107 octaves below it, and in it in about 1296 steps (near step 2896)' err ||
    fail "rise: $(cat err)"
grep -qx 'MX_WATCH_CHECKPOINT=step1600.safetensors' said || fail "$(cat said)"
grep -qx 'MX_WATCH_STEP=1600' said || fail "$(cat said)"
grep -qx 'MX_WATCH_TENSOR=layers.3.norm.weight' said || fail "$(cat said)"
grep -qx 'MX_WATCH_WARNINGS=1' said || fail "$(cat said)"
tail -n 1 rise.jsonl | cmp - line || fail "the command got another line"
[ "$(lines rise.jsonl)" -eq 3 ] || fail "rise: $(lines rise.jsonl) lines"
grep -q '^mx_watch_step{folder="rise"} 1600$' rise.prom || fail "$(cat rise.prom)"
grep -q '^mx_watch_clamp_zone_distance_octaves{folder="rise",tensor="layers.3.norm.weight",layer="3",recipe="mxfp8"} -0.106' rise.prom ||
    fail "$(cat rise.prom)"
[ "$(ls)" = "$(ls | grep -v '~\|tmp')" ] || fail "left: $(ls)"

# Nothing new: no line, and exit code 0.
"$mx" watch rise --once --log rise.jsonl -q || fail "a second look found something"
[ "$(lines rise.jsonl)" -eq 3 ] || fail "a second look wrote a line"
# The next start writes the figures that a run killed behind its line did not write.
mv rise.prom said
"$mx" watch rise --once --log rise.jsonl --prometheus rise.prom -q || fail "a third look found something"
cmp said rise.prom || fail "other figures from the log"

# A log truncated anywhere by a kill is restored; another file is not changed.
cp fall.jsonl whole
size=$(wc -c <whole)
for cut in 0 1 30 $((size / 2)) $((size - 1)); do
    head -c "$cut" whole >fall.jsonl
    "$mx" watch fall --once --log fall.jsonl -q 2>err || true
    cmp whole fall.jsonl || fail "cut at $cut: $(cat err)"
done
echo "my notes" >notes
code=0
"$mx" watch fall --once --log notes 2>err || code=$?
[ "$code" -eq 3 ] && [ "$(cat notes)" = "my notes" ] || fail "notes: $code $(cat err)"

# Written one file at a time, as by a slow disk: two shards and their index, a directory of numbered
# files, and a file that grows byte by byte. Killed twice during this.
mkdir slow
watch_slow() {
    "$mx" watch slow --every 0.05 --log slow.jsonl --rule 'norm:nrmse<1' -q 2>>slow.err &
    watcher=$!
}
watch_slow
soon has_lines slow.jsonl 0
checkpoint whole.safetensors c03f
checkpoint slow/model-00001-of-00002.safetensors c03f
mkdir slow/step2
head -c 40 whole.safetensors >slow/step3.safetensors
sleep 0.3
hex 803f >data
safetensors '{"head.weight":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}' data >slow/model-00002-of-00002.safetensors
checkpoint slow/step2/model-00001-of-00002.safetensors c03f
head -c 60 whole.safetensors >slow/step3.safetensors
sleep 0.3
kill -KILL "$watcher"
wait "$watcher" 2>/dev/null || true
[ "$(lines slow.jsonl)" -eq 0 ] || fail "something was read half: $(cat slow.jsonl)"
watch_slow
head -c $(($(wc -c <whole.safetensors) - 1)) whole.safetensors >slow/step3.safetensors
printf '{"weight_map":{"layers.3.norm.weight":"model-00001-of-00002.safetensors","head.weight":"model-00002-of-00002.safetensors"}}' >slow/model.safetensors.index.json
soon has_lines slow.jsonl 1
kill -KILL "$watcher"
wait "$watcher" 2>/dev/null || true
watch_slow
soon grep -q 'step3.safetensors is not complete and does not grow' slow.err
cp slow/model-00002-of-00002.safetensors slow/step2/
soon has_lines slow.jsonl 2
code=0
"$mx" watch slow --once --log slow.jsonl 2>err || code=$?
if [ "$code" -ne 2 ] || ! grep -q 'another mx watch writes it' err; then fail "two at once: $code $(cat err)"; fi
cp whole.safetensors slow/step3.safetensors
soon has_lines slow.jsonl 3
kill -TERM "$watcher"
code=0
wait "$watcher" || code=$?
watcher=
[ "$code" -eq 130 ] || fail "stopped: exit code $code"
grep -o '"checkpoint":"[^"]*"' slow.jsonl >names
printf '"checkpoint":"model.safetensors.index.json"\n"checkpoint":"step2"\n"checkpoint":"step3.safetensors"\n' | cmp - names ||
    fail "$(cat names)"

# --until ends it; a list is processed once, in the order of its numbers.
timeout 300 "$mx" watch slow --every 0.05 --log slow.jsonl --until 3 -q || fail "--until: $?"
checkpoint rise/step200.safetensors c03f
"$mx" watch --log - --rule 'nrmse<1' -- rise/step1600.safetensors rise/step200.safetensors >list
grep -o '"checkpoint":"[^"]*"' list >names
printf '"checkpoint":"rise/step200.safetensors"\n"checkpoint":"rise/step1600.safetensors"\n' | cmp - names ||
    fail "$(cat names)"

# A file whose format does not show its end is checked twice, and waits if it changed in between.
mkdir arrays
{
    printf '\223NUMPY\001\000v\000'
    printf "%-117s\n" "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
    hex 0000803f 0000a03f
} >whole.npy
head -c 130 whole.npy >arrays/norm1.npy
cp whole.npy arrays/norm2.npy
(while [ ! -e over ]; do
    for size in 129 130; do head -c $size whole.npy >arrays/norm1.npy; done
done) &
"$mx" watch arrays --once --log arrays.jsonl --role-pattern 'norm=*' --rule 'norm:nrmse<1' -q 2>err || fail "arrays: $(cat err)"
: >over
wait
cp whole.npy arrays/norm1.npy
grep -o '"checkpoint":"[^"]*"' arrays.jsonl >names
printf '"checkpoint":"norm2.npy"\n' | cmp - names || fail "arrays: $(cat names)"
"$mx" watch arrays --once --log arrays.jsonl --role-pattern 'norm=*' --rule 'norm:nrmse<1' -q
[ "$(lines arrays.jsonl)" -eq 2 ] || fail "arrays: $(cat arrays.jsonl)"

# Errors, one line each: exit code, text, command line.
refused() {
    want=$1
    words=$2
    shift 2
    code=0
    "$mx" watch "$@" 2>err >/dev/null || code=$?
    [ "$code" -eq "$want" ] || fail "$*: exit code $code instead of $want"
    [ "$(lines err)" -eq 1 ] || fail "$*: $(cat err)"
    grep -q -e "$words" err || fail "$*: $(cat err)"
}
refused 2 "did you mean 'nrmse'" rise --once --rule 'norm:nrmze<1'
refused 2 "it is about none of the tensors" arrays --once --role-pattern 'weight=*' --role weight
refused 2 "it is about none of the tensors" rise --once --rule 'weight:nrmse<1'
refused 2 "did you mean 'norm'" rise --once --role nrom
refused 2 "for mx gate" rise --once --rule 'summary:nrmse<1'
refused 2 "give a time such as" rise --every never
refused 3 "No such file" nowhere
head -c 60 whole.safetensors >slow/cut.safetensors
refused 3 "cut short" -- slow/cut.safetensors rise/step200.safetensors
