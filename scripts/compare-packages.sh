#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the packages of HEAD twice, in clones in two folders of WORK with paths of different length, and
# compares every byte. Exit 1 and the names of files that differ. ccache would hide effects of a path:
# run it without. Usage: compare-packages.sh WORK [CMAKE_OPTION...]
set -eu
repository=$(cd "$(dirname "$0")/.." && pwd)
commit=$(git -C "$repository" rev-parse HEAD)
mkdir -p "$1"
work=$(cd "$1" && pwd)
shift
for clone in one another/place; do
    rm -rf "${work:?}/$clone"
    git clone -q "$repository" "$work/$clone"
    git -C "$work/$clone" -c advice.detachedHead=false checkout -q "$commit"
    "$work/$clone/scripts/package.sh" "$work/$clone/packages" "$@" \
        >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
done
diff -r "$work/one/packages" "$work/another/place/packages"
cat "$work/one/packages/SHA256SUMS"
