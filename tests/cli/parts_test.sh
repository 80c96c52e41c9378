#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Parts of a run, made with different threads and backends and merged in any order, give the bytes of
# one run. parts_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() {
    echo "$*" >&2
    exit 1
}

# NaN and Inf among the values, one tensor larger than all others, empty and skipped tensors.
head -c 393216 "$mx" >data
le64() {
    n=$1
    for _ in 1 2 3 4 5 6 7 8; do
        printf "\\$(printf %03o $((n % 256)))"
        n=$((n / 256))
    done
}
header='{"norm.weight":{"dtype":"BF16","shape":[512],"data_offsets":[0,1024]},
"layers.0.mlp.up.weight":{"dtype":"BF16","shape":[448,384],"data_offsets":[1024,345088]},
"none":{"dtype":"F32","shape":[0,4],"data_offsets":[345088,345088]},
"mask":{"dtype":"BOOL","shape":[4],"data_offsets":[345088,345092]},
"layers.0.mlp.down.weight":{"dtype":"F32","shape":[11,64],"data_offsets":[345092,347908]},
"layers.1.norm.weight":{"dtype":"F64","shape":[177,32],"data_offsets":[347908,393220]}}'
head -c 393220 "$mx" >data
{
    le64 ${#header}
    printf '%s' "$header"
    cat data
} >hostile.safetensors
"$mx" synth -o 10.safetensors --preset layernorm --seed 1 --quiet
"$mx" synth -o 20.safetensors --preset layernorm --seed 2 --quiet

# parts N COMMAND...: makes parts with one thread or three, by the reference or another backend.
parts() {
    count=$1
    shift
    rm -f part-*.json
    i=1
    while [ $i -le $count ]; do
        case $((i % 3)) in
        0) "$mx" "$@" --shard $i/$count --threads 1 --json part-$i.json --quiet ;;
        1) "$mx" "$@" --shard $i/$count --threads 3 --json part-$i.json --quiet ;;
        2) "$mx" "$@" --shard $i/$count --backend scalar --json part-$i.json --quiet ;;
        esac
        i=$((i + 1))
    done
}

shuffled() { ls part-*.json | awk -v seed="$1" 'BEGIN { srand(seed) } { print rand(), $0 }' | sort | cut -d' ' -f2; }

# same COUNTS COMMAND...: one run and merged parts.
same() {
    counts=$1
    shift
    "$mx" "$@" --json one.json --csv one.csv --markdown one.md >one.txt
    for n in $counts; do
        parts $n "$@"
        "$mx" merge $(shuffled $n) --json all.json --csv all.csv --markdown all.md >all.txt ||
            fail "$* in $n parts cannot be merged"
        for ending in json csv md txt; do
            cmp one.$ending all.$ending || fail "$* in $n parts: $ending differs"
        done
    done
}

same '1 2 3 7 64' analyze hostile.safetensors -r mxfp4:scale=even -r nvfp4 -r mxfp8:axis=0 \
    -r mxfp6:block=4x4,transform=hadamard -r mxfp8:round=stochastic,seed=3
same '5' analyze hostile.safetensors -r mxfp8 -r mxfp4 --histograms --decompose --norm-bias 1
same '4' analyze 10.safetensors -t '*layers.[01].*'
same '3' compare hostile.safetensors --element e4m3,e2m1 --scale floor,even
same '2' compare 10.safetensors -t '*layers.0.*' --element e2m1 --round rtne,stochastic --draws 2 --phase-sweep
same '1 5' cluster hostile.safetensors -r mxfp8:scale=floor -r mxint4:offset=fp16
same '2' cluster 20.safetensors -t '*layers.[01].*'
same '3' diff 10.safetensors 20.safetensors 10.safetensors --as-given -t '*layers.[01].*' -r mxfp4 -r nvfp4

# Files of arrays.
for form in '--all-tensors --packed -r mxfp6' '--all-tensors -r nvfp4' '--packed --keep-rest -r nvfp4:round=stochastic,seed=2'; do
    "$mx" quantize hostile.safetensors $form -o one.safetensors --quiet
    for n in 1 2 9; do
        rm -f part-*.safetensors
        for i in $(seq $n); do
            "$mx" quantize hostile.safetensors $form --shard $i/$n -o part-$i.safetensors \
                --threads $i --quiet
        done
        "$mx" merge $(ls -r part-*.safetensors) -o all.safetensors --quiet
        cmp one.safetensors all.safetensors || fail "quantize $form in $n parts differs"
        # Several files with an index, again those of one run.
        rm -rf one all
        mkdir one all
        "$mx" quantize hostile.safetensors $form -o one/model.safetensors.index.json \
            --max-shard-size 100kB --quiet
        "$mx" merge part-*.safetensors -o all/model.safetensors.index.json \
            --max-shard-size 100kB --quiet
        diff -r one all || fail "quantize $form with an index in $n parts differs"
        [ "$(ls one | wc -l)" -gt 2 ] || fail "quantize $form: $(ls one)"
    done
    case $form in
    *--packed*)
        "$mx" dequantize one.safetensors -o values.safetensors --quiet
        "$mx" dequantize one/model.safetensors.index.json -o all.safetensors --quiet
        cmp values.safetensors all.safetensors
        ;;
    esac
done
# Each file has at most that many bytes of arrays, unless it has one array; the index names all of them.
if command -v python3 >/dev/null; then
    python3 - <<'END'
import glob, json, struct
index = json.load(open("one/model.safetensors.index.json"))
total = 0
for path in glob.glob("one/*.safetensors"):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    bytes = max(a["data_offsets"][1] for a in header.values())
    assert bytes <= 100000 or len(header) == 1, path
    assert all("one/" + index["weight_map"].pop(name) == path for name in header)
    total += bytes
assert index["weight_map"] == {} and index["metadata"]["total_size"] == total
END
fi
# No other file is replaced.
rm one/model.safetensors.index.json
code=0
"$mx" quantize hostile.safetensors $form -o one/model.safetensors.index.json \
    --max-shard-size 100kB 2>said || code=$?
[ $code = 3 ] && grep -q 'exists already' said && [ ! -e one/model.safetensors.index.json ] ||
    fail "files without their index: $code $(cat said)"
rm part-4.safetensors
code=0
"$mx" merge part-*.safetensors -o all.safetensors >todo 2>said || code=$?
[ $code = 1 ] && grep -q -- '--shard 4/9 --output part-4.safetensors' todo

# The page, which needs parts made with --page-sums.
"$mx" analyze 10.safetensors -t '*layers.0.*' --html one.html --json one.json --quiet
i=1
while [ $i -le 3 ]; do
    "$mx" analyze 10.safetensors -t '*layers.0.*' --shard $i/3 --page-sums --json part-$i.json --quiet
    i=$((i + 1))
done
"$mx" merge part-3.json part-1.json part-2.json --html all.html --json all.json --quiet
cmp one.html all.html
cmp one.json all.json
"$mx" merge part-3.json part-1.json part-2.json --json all.json --quiet
"$mx" analyze 10.safetensors -t '*layers.0.*' --json one.json --quiet
cmp one.json all.json

# A part is a file of results.
"$mx" report part-2.json -o report.html --quiet
"$mx" gate part-2.json --rule 'nrmse<=1' --quiet

# Missing parts are named, and the printed commands make them.
parts 7 analyze hostile.safetensors -r mxfp4
"$mx" merge part-*.json --json one.json --quiet
cp hostile.safetensors before.safetensors
rm part-2.json part-6.json
code=0
"$mx" merge part-*.json --json all.json >todo 2>said || code=$?
[ $code = 1 ] && [ ! -e all.json.tmp ] || fail "missing parts: exit code $code"
grep -q '2 of 7 parts are missing' said
[ "$(wc -l <todo)" = 2 ]
sed "s|^mx|'$mx' |" todo | sh >/dev/null
"$mx" merge part-*.json --json all.json --quiet
cmp one.json all.json

# refused TEXT ARGUMENTS...: one line that contains TEXT.
refused() {
    text=$1
    shift
    code=0
    "$mx" "$@" >out 2>said || code=$?
    [ $code -ge 2 ] || fail "mx $*: exit code $code"
    [ "$(wc -l <said)" = 1 ] || fail "mx $*: says more than a line"
    grep -q -- "$text" said || fail "mx $*: $(cat said)"
}
for wrong in 0/4 5/4 1/0 /4 4 1/4/2 -1/4 1/2000000; do
    refused "1/7 to 7/7" analyze hostile.safetensors --shard=$wrong --json p.json
done
refused 'so is' merge part-1.json part-*.json
cp part-1.json kept
"$mx" analyze hostile.safetensors -r mxfp8 --shard 1/7 --json part-1.json --quiet
refused 'asked for' merge part-*.json
"$mx" analyze hostile.safetensors -r mxfp4 --shard 1/8 --json part-1.json --quiet
refused 'the other of 8' merge part-2.json part-1.json
sed 's/"version":"[0-9.]*","layout/"version":"9.9","layout/' kept >part-1.json
refused 'mx 9.9' merge part-*.json
cp kept part-1.json
printf 'x' | dd of=hostile.safetensors bs=1 seek=5000 conv=notrunc 2>/dev/null
refused 'changed' merge part-*.json
"$mx" analyze hostile.safetensors -r mxfp4 --shard 1/7 --json part-1.json --quiet
refused 'changed' merge part-*.json
refused 'not a part' merge one.json
refused 'name the part' analyze hostile.safetensors --shard 1/2
refused 'a part is written as' analyze hostile.safetensors --shard 1/2 --json p.json --csv p.csv
refused 'in parts' analyze hostile.safetensors --shard 1/2 --json p.json --blocks b.h5
