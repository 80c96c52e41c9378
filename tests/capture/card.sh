#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a short recording of this machine's GPU and verifies it. card.sh MX_CAPTURE MX
# Exit code 77: there is no device to record.
set -eu
capture=$(realpath "$1")
mx=$(realpath "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
code=0
"$capture" --quick -o "$scratch/recording" 2>"$scratch/log" || code=$?
if [ "$code" -eq 4 ] && [ ! -e "$scratch/recording/manifest.json" ]; then
    echo "skipped: $(tail -n 1 "$scratch/log")"
    exit 77
fi
cat "$scratch/log"
[ "$code" -eq 0 ]
if grep -v 'gemm/' "$scratch/log" | grep 'not recorded: '; then
    echo "parts other than a library's products failed" >&2
    exit 1
fi
exec "$mx" verify "$scratch/recording"
