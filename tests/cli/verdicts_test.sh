#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# analyze, compare, cluster, report and plan agree on quantized, exact, empty and tied tensors.
# verdicts_test.sh MX SOURCE
set -eu
mx=$(realpath "$1")
script=$(realpath "$2")/tests/cli/verdicts.py
if ! command -v python3 >/dev/null; then
    echo 'skipped: no python3'
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
python3 "$script" "$mx"
