#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the commands of the examples for CI and make: they pass on a good checkpoint and fail on a
# bad one. examples_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
examples=$(realpath "$2")/examples
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
ln -s "$mx" "$scratch/bin/mx"
PATH=$scratch/bin:$PATH
cd "$scratch"
fail() { echo "$*" >&2; exit 1; }
cp "$examples/ci/limits.txt" .
mx synth -o model.safetensors --quiet

# Commands of a job: "run:" of GitHub, "- mx" below GitLab's "script:".
commands() { sed -n 's/^ *run: \(mx .*\)/\1/p; s/^ *- \(mx .*\)/\1/p' "$1"; }
setting() { sed -n "s/^ *$2: //p" "$1"; }
for file in github gitlab; do
    job=$examples/ci/$file.yml
    MODEL=$(setting "$job" MODEL) RECIPE=$(setting "$job" RECIPE)
    export MODEL RECIPE
    commands "$job" >job.sh
    [ "$(wc -l <job.sh)" -eq 3 ] || fail "$file: other commands than expected: $(cat job.sh)"
    sh -e job.sh >log 2>&1 || fail "$file: the gate does not hold: $(cat log)"
    grep -q '<testcase' gate.xml && grep -q '<testcase' lint.xml && grep -q '</html>' review.html || fail "$file: outputs missing"
    code=0
    RECIPE=mxfp4_e3m0 sh -e job.sh >log 2>&1 || code=$?
    [ "$code" -eq 1 ] || fail "$file: exit code $code under a recipe that is too coarse: $(cat log)"
    [ "$file" = gitlab ] || grep -q '^::error' log || fail "$file: no annotation: $(cat log)"
done

command -v make >/dev/null || { echo "make is not here: the Makefile was not run"; exit 0; }
make() { command make -f "$examples/make/Makefile" "$@" >log 2>&1; }
make || fail "make: $(cat log)"
mx dequantize build/model.packed.safetensors -o back.safetensors --quiet
grep -q '</html>' build/model.html || fail "make: no page"
make && grep -q 'Nothing to be done' log || fail "make: what did not change was made again: $(cat log)"
make check || fail "make check: $(cat log)"
make check RULES='weight:sqnr_db>=60' && fail "make check: a rule that does not hold passed"
make clean && [ ! -e build ] || fail "make clean"
