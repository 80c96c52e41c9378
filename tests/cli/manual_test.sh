#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The generated pages of docs are current. manual_test.sh MX SOURCE
set -eu
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"$(realpath "$1")" help --write-manual "$fresh"
for page in reference design/dialects.md design/gemm.md; do
    diff -ru --exclude=schemas "$2/docs/$page" "$fresh/$page" || {
        echo "out of date: run 'mx help --write-manual docs' in the source folder" >&2
        exit 1
    }
done
