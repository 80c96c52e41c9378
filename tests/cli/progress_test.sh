#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# On a terminal, commands that read results show a bar with the time left; elsewhere they do not. A
# signal ends them while they read.
set -eu
mx=$(realpath "$1")
. "$(dirname "$0")/signals.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
fail() { echo "$*" >&2; exit 1; }

# The results of one tensor, repeated for 8,000.
"$mx" synth -o linear.safetensors --preset linear --quiet
"$mx" analyze linear.safetensors -t model.linear.weight --json one.json --quiet
awk '/"tensor":"model.linear.weight"/ {
         sub(/,$/, "")
         one[records++] = $0
         next
     }
     records && !written++ {
         for (i = 0; i < 8000; ++i)
             for (r = 0; r < records; ++r) {
                 record = one[r]
                 sub(/model.linear.weight/, "layers." i ".weight", record)
                 print record (i == 7999 && r == records - 1 ? "" : ",")
             }
     }
     { print }' one.json >many.json

for command in report gate plan "report --summary"; do
    case $command in gate) more="--rule nan==0" ;; *) more= ;; esac
    # shellcheck disable=SC2086
    "$mx" $command $more many.json >out 2>err || fail "$command: $(cat err)"
    [ ! -s err ] || fail "$command: a bar without a terminal: $(head -c 300 err)"
    command -v script >/dev/null || continue
    script -qec "stty cols 90; '$mx' $command $more many.json >out" /dev/null </dev/null >screen
    tr '\r' '\n' <screen | grep -q '^reading \[[#.]*\] .*% .* left' ||
        fail "$command: no bar: $(head -c 300 screen)"
done
if command -v script >/dev/null; then
    script -qec "stty cols 90; '$mx' report many.json -o page.html" /dev/null </dev/null >screen
    tr '\r' '\n' <screen >lines
    grep -q '^making the page \[[#.]*\] .*% .* left' lines || fail "no bar of the page: $(head -c 300 lines)"
    script -qec "'$mx' report many.json -o page.html --quiet" /dev/null </dev/null >screen
    [ ! -s screen ] || fail "not quiet: $(head -c 300 screen)"
fi

# The first signal ends a command that waits for results.
mkfifo slow
(exec >slow && : >opened && exec sleep 1000) &  # >slow waits for a reader
sleeper=$!
start "$mx" report slow
soon test -e opened
stop INT
kill $sleeper
[ "$code" -eq 130 ] && [ "$(cat stderr)" = "mx: interrupted" ] || fail "interrupted: $code $(cat stderr)"
