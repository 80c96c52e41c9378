#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ctrl-C during a long run: exit code 130, one line, and no remaining files. One signal: a second one
# ends mx immediately.
set -eu
mx=$(realpath "$1")
. "$(dirname "$0")/signals.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
# 2 Gi zeros that take no space on disk: many seconds of work for one thread. Outputs reserve
# their space when they are created, so they are limited to about 2 GB.
truncate -s 8G zeros.bin

for command in \
    "analyze zeros.bin --shape 2048x1048576 --dtype F32 --threads 1 --json out.json --blocks out.h5" \
    "quantize zeros.bin --shape 2048x1048576 --dtype F32 --threads 1 -o out.safetensors --recipe mxfp4 --packed"
do
    # shellcheck disable=SC2086
    start "$mx" $command
    soon eval 'ls -A | grep tmp'  # its outputs are open
    stop INT
    [ "$code" -eq 130 ] || { echo "$command: exit code $code instead of 130" >&2; exit 1; }
    [ "$(cat stderr)" = "mx: interrupted" ] || { echo "stderr: $(cat stderr)" >&2; exit 1; }
    rm stderr stdout
    [ "$(ls -A)" = zeros.bin ] || { echo "left behind: $(ls -A)" >&2; exit 1; }
done
