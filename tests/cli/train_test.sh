#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Training runs that are stopped: by a signal, by kill -9, by a full disk. A resumed run ends with
# the bits of an uninterrupted one. train_test.sh MX
set -eu
mx=$(realpath "$1")
. "$(dirname "$0")/signals.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
request="proxy --width 32 --depth 2 --batch 32 --scheme su.coded.e4m3 --threads 1 --quiet"
fail() {
    echo "$*" >&2
    exit 1
}

# A run that would take far longer than the test allows.
# shellcheck disable=SC2086
"$mx" train $request --steps 1000000 --checkpoint-every 50 -o cut 2>stderr &
pid=$!
stepped() { [ -s cut/checkpoint.safetensors ] && "$mx" tensors cut/checkpoint.safetensors | grep -q 'step *[1-9]'; }
soon stepped
second=0
timeout 30 "$mx" train --resume cut --steps 2000000 --quiet 2>refused || second=$?
[ "$second" -eq 2 ] && [ "$(cat refused)" = "mx: cut: another mx train writes to this folder: wait for it or stop it" ] ||
    fail "a second run in the folder: exit code $second, $(cat refused)"
kill -TERM "$pid"  # a shell makes its background jobs deaf to Ctrl-C
code=0
wait "$pid" || code=$?
[ "$code" -eq 130 ] || fail "stopped: exit code $code instead of 130: $(cat stderr)"
[ "$(cat stderr)" = "mx: interrupted" ] || fail "stderr: $(cat stderr)"
[ "$(ls cut | tr '\n' ' ')" = "checkpoint.safetensors run.json " ] || fail "left: $(ls -A cut)"
grep -q '"status":"stopped"' cut/run.json || fail "run.json does not say stopped"
done=$(grep -o '"step":[0-9]*' cut/run.json | tail -n 1 | cut -d: -f2)
steps=$((done + 20))

# Killed between two checkpoints.
"$mx" train --resume cut --steps 1000000 --threads 1 --quiet -o killed &
pid=$!
soon test -s killed/run.json
kill -KILL "$pid" 2>/dev/null || true
wait "$pid" 2>/dev/null || true
"$mx" runs cut killed | grep -q stopped || fail "a killed run cannot be read"
killed=$("$mx" tensors killed/checkpoint.safetensors | sed -n 's/^step *//p')
last=$((killed > steps ? killed : steps))

# shellcheck disable=SC2086
"$mx" train $request --steps "$last" -o once
"$mx" train --resume cut --steps "$last" --threads 1 --quiet
"$mx" train --resume killed --steps "$last" --quiet
cmp cut/checkpoint.safetensors once/checkpoint.safetensors
cmp killed/checkpoint.safetensors once/checkpoint.safetensors

# No space for another checkpoint: one line, and the last checkpoint remains valid.
cp cut/checkpoint.safetensors before
code=0
(trap '' XFSZ && ulimit -f 4 && exec "$mx" train --resume cut --steps $((last + 5)) --quiet) 2>stderr || code=$?
[ "$code" -eq 3 ] || fail "full disk: exit code $code instead of 3: $(cat stderr)"
[ "$(wc -l <stderr)" -eq 1 ] || fail "full disk: $(cat stderr)"
cmp cut/checkpoint.safetensors before
[ "$(ls cut | tr '\n' ' ')" = "checkpoint.safetensors run.json " ] || fail "left: $(ls -A cut)"
