#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kill -9 at random moments leaves no incomplete part, and mx merge names exactly the missing parts.
# MX_KILLS: the number of kills (6). kill_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
kills=${MX_KILLS-6}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
fail() {
    echo "$*" >&2
    exit 1
}
count=4
"$mx" synth -o model.safetensors --preset layernorm --quiet
# Both kinds of parts: figures and arrays.
make_part() {
    case $2 in
    json) set -- analyze model.safetensors -r mxfp4 -r nvfp4 --shard "$1/$count" --json "$3/part-$1.json" ;;
    *) set -- quantize model.safetensors -r mxfp4 --shard "$1/$count" -o "$3/part-$1.safetensors" ;;
    esac
    exec "$mx" "$@" --threads 1 --quiet
}
mkdir whole
"$mx" analyze model.safetensors -r mxfp4 -r nvfp4 --json one.json --quiet
"$mx" quantize model.safetensors -r mxfp4 -o one.safetensors --quiet
start=$(date +%s%N)
for i in $(seq $count); do
    (make_part "$i" json whole)
    (make_part "$i" safetensors whole)
done
# The time of a part, in microseconds.
long=$((($(date +%s%N) - start) / 2000 / count))

# merged ENDING: exits with 1 and names the missing parts, or gives the bytes of one run.
merged() {
    missing=
    for i in $(seq $count); do
        if [ ! -e "parts/part-$i.$1" ]; then
            missing="$missing $i"
        else
            cmp "whole/part-$i.$1" "parts/part-$i.$1" || fail "part $i is not whole"
        fi
    done
    case $1 in json) to=--json ;; *) to=--output ;; esac
    code=0
    rm -f "all.$1"
    "$mx" merge parts/part-*."$1" $to "all.$1" --quiet >commands 2>said || code=$?
    if [ -z "$missing" ]; then
        [ $code = 0 ] || fail "merge: $(cat said)"
        cmp "one.$1" "all.$1"
        return
    fi
    [ $code = 1 ] || fail "merge: exit code $code with$missing missing"
    [ ! -e "all.$1" ] || fail 'a merge of some parts wrote a file'
    named=$(sed 's|.*--shard[= ]\([0-9]*\)/.*| \1|' commands | tr -d '\n')
    [ "$named" = "$missing" ] || fail "missing:$missing; named:$named"
    sed "s|^mx|'$mx' |" commands | sh >/dev/null
}
for round in $(seq "$kills"); do
    rm -rf parts
    mkdir parts
    # Two parts are killed, after 0 to 1.2 times the duration of a part.
    for i in $(seq $count); do
        for ending in json safetensors; do
            (make_part "$i" $ending parts) &
            if [ $i -gt 2 ]; then
                wait $!
                continue
            fi
            sleep "$(awk -v seed="$round$i" -v long="$long" \
                'BEGIN { srand(seed); printf "%.6f", 1.2e-6 * long * rand() }')"
            kill -9 $! 2>/dev/null || true
            wait $! 2>/dev/null || true
        done
    done
    for ending in json safetensors; do
        merged $ending
        merged $ending
    done
done
