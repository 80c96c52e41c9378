#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Long runs of libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer, one program after
# another; docs/security.md has their figures.
# Usage: fuzz.sh [SECONDS [PROGRAM...]]   run (default: 600 seconds for every program)
#        fuzz.sh mutations N [PROGRAM...] N seeded mutations of the samples and of build/fuzz/corpus by every
#                                         program, without libFuzzer: assertions and traps only, but
#                                         several times the executions
#        fuzz.sh counts                   executions, hours and finds of all runs so far, per program
#        fuzz.sh pack FILE.tar.gz         the smallest corpus with the coverage of build/fuzz/corpus
#        fuzz.sh unpack FILE.tar.gz       into build/fuzz/corpus
# Needs clang. Inputs that fail are written to build/fuzz/finds/PROGRAM.
set -eu
case ${1:-} in
pack | unpack)
    [ $# -eq 2 ] || {
        echo "fuzz.sh $1: name the FILE.tar.gz" >&2
        exit 2
    }
    file=$(realpath "$2")
    ;;
esac
cd "$(dirname "$0")/.."
runs=build/fuzz/executions.tsv

programs_in() { # the programs of a build folder
    find "$1/tests/fuzz" -maxdepth 1 -name 'mx_fuzz_*' ! -name '*.*' |
        sed 's/.*mx_fuzz_//' | sort
}

case ${1:-} in
counts)
    awk -F '\t' '{n[$1] += $2; s[$1] += $3; f[$1] += $4; N += $2; S += $3; F += $4}
        END {for (p in n) printf "| %s | %d | %.2f | %d |\n", p, n[p], s[p] / 3600, f[p]
             printf "| all | %d | %.2f | %d |\n", N, S / 3600, F}' "$runs" | sort
    exit ;;
unpack)
    mkdir -p build/fuzz
    tar -xzf "$file" -C build/fuzz corpus
    exit ;;
esac

if [ "${1:-}" = mutations ]; then
    [ $# -ge 2 ] || {
        echo "fuzz.sh mutations: say how many" >&2
        exit 2
    }
    mutations=$2
    shift 2
    cmake --preset mutations >/dev/null
    cmake --build --preset mutations
    mkdir -p build/fuzz
    touch "$runs"
    seed=$(($(wc -l <"$runs") + 1)) # other mutations in each run
    # shellcheck disable=SC2046 # one word per program
    [ $# -gt 0 ] || set -- $(programs_in build/mutations)
    for program in "$@"; do
        start=$(date +%s)
        finds=0
        "build/mutations/tests/fuzz/mx_fuzz_$program" "$mutations" "$seed" tests/io/data \
            "tests/fuzz/finds/$program" "build/fuzz/corpus/$program" | tail -c 4096 >build/fuzz/last
        tail -n 1 build/fuzz/last | grep -q 'no failure' || {
            finds=1
            echo "$program: broken, $(tr '\r' '\n' <build/fuzz/last | tail -n 1)"
        }
        printf '%s\t%s\t%s\t%s\n' "$program" "$mutations" $(($(date +%s) - start)) "$finds" >>"$runs"
        echo "$program: $mutations mutations, $(($(date +%s) - start)) s"
    done
    exit
fi

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
programs=$(programs_in build/fuzz)

if [ "${1:-}" = pack ]; then
    small=$(mktemp -d)
    trap 'rm -rf "$small"' EXIT
    mkdir "$small/corpus"
    for program in $programs; do
        [ -d "build/fuzz/corpus/$program" ] || continue
        mkdir "$small/corpus/$program"
        "build/fuzz/tests/fuzz/mx_fuzz_$program" -merge=1 -timeout=20 -rss_limit_mb=2048 \
            "$small/corpus/$program" "build/fuzz/corpus/$program" 2>"$small/log"
    done
    tar -czf "$file" -C "$small" corpus
    exit
fi

seconds=${1:-600}
[ $# -eq 0 ] || shift
# shellcheck disable=SC2086 # one word per program
[ $# -gt 0 ] || set -- $programs
for program in "$@"; do
    corpus=build/fuzz/corpus/$program
    finds=build/fuzz/finds/$program
    mkdir -p "$corpus" "$finds"
    dictionary=tests/fuzz/dictionaries/$program.dict
    [ -e "$dictionary" ] || dictionary=
    # Samples of all formats are in the seeds: a reader must refuse those of the others. For a program
    # whose input is choices, samples are choices, too.
    seeds=tests/io/data
    [ ! -d "tests/fuzz/finds/$program" ] || seeds="$seeds tests/fuzz/finds/$program"
    before=$(find "$finds" -type f ! -name log | wc -l)
    start=$(date +%s)
    # shellcheck disable=SC2086 # one word per folder
    "build/fuzz/tests/fuzz/mx_fuzz_$program" -max_total_time="$seconds" -timeout=20 \
        -rss_limit_mb=2048 -max_len=65536 -artifact_prefix="$finds/" \
        ${dictionary:+-dict="$dictionary"} -print_final_stats=1 "$corpus" $seeds 2>"$finds/log" ||
        echo "$program: broken, see $finds"
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$finds/log")
    new=$(($(find "$finds" -type f ! -name log | wc -l) - before))
    printf '%s\t%s\t%s\t%s\n' "$program" "${executions:-0}" $(($(date +%s) - start)) "$new" >>"$runs"
    echo "$program: ${executions:-0} executions," \
        "$(sed -n 's/^stat::peak_rss_mb: *//p' "$finds/log") MiB, $new finds"
done
