#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Speedup of two processes on two cores over one process with one thread: wall times of one run and of two
# parts at once, best of three. Needs an idle machine. measure-parts.sh MX FILE [options of mx analyze]
set -eu
mx=$(realpath "$1")
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
best() {
    least=
    for _ in 1 2 3; do
        start=$(date +%s%N)
        "$@"
        took=$((($(date +%s%N) - start) / 1000000))
        if [ -z "$least" ] || [ $took -lt "$least" ]; then least=$took; fi
    done
    echo "$least"
}
one() { "$mx" analyze "$@" --threads 1 --json "$scratch/one.json" --quiet; }
part() { "$mx" analyze "$@" --threads 1 --quiet; }
two() {
    part "$@" --shard 1/2 --json "$scratch/part-1.json" &
    first=$!
    part "$@" --shard 2/2 --json "$scratch/part-2.json"
    wait $first
}
alone=$(best one "$@")
both=$(best two "$@")
"$mx" merge "$scratch/part-1.json" "$scratch/part-2.json" --input "$1" --json "$scratch/all.json" --quiet
cmp "$scratch/one.json" "$scratch/all.json"
awk -v a="$alone" -v b="$both" \
    'BEGIN { printf "one process %.2f s, two processes %.2f s: %.2f of it\n", a / 1000, b / 1000, b / a }'
