#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Long runs of libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer, one reader or parser
# after another; docs/security.md has their figures.
# Usage: fuzz.sh [SECONDS [READER...]]   (default: 600 seconds for every reader)
# Needs clang. Inputs that fail are written to build/fuzz/finds/READER.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-600}
[ $# -eq 0 ] || shift

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
if [ $# -eq 0 ]; then
    # shellcheck disable=SC2046 # one word per program
    set -- $(cd build/fuzz/tests/fuzz && ls -d mx_fuzz_* | sed -n '/\./!s/^mx_fuzz_//p')
fi
for reader in "$@"; do
    corpus=build/fuzz/corpus/$reader
    finds=build/fuzz/finds/$reader
    mkdir -p "$corpus" "$finds" "tests/fuzz/finds/$reader"
    dictionary=tests/fuzz/dictionaries/$reader.dict
    [ -e "$dictionary" ] || dictionary=
    # Samples of all formats are in the seeds: a reader must refuse those of the others.
    "build/fuzz/tests/fuzz/mx_fuzz_$reader" -max_total_time="$seconds" -timeout=20 \
        -rss_limit_mb=2048 -max_len=65536 -artifact_prefix="$finds/" \
        ${dictionary:+-dict="$dictionary"} -print_final_stats=1 \
        "$corpus" tests/io/data "tests/fuzz/finds/$reader" 2>"$finds/log" ||
        echo "$reader: broken, see $finds"
    echo "$reader: $(sed -n 's/^stat::number_of_executed_units: *//p' "$finds/log") executions," \
        "$(sed -n 's/^stat::peak_rss_mb: *//p' "$finds/log") MiB," \
        "$(find "$finds" -type f ! -name log | wc -l) finds"
done
