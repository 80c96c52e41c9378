#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails if a C++ file is not formatted according to .clang-format. `--fix` formats instead.
# Versions of clang-format differ in details; only 14 (Debian 12) counts.
set -eu
cd "$(dirname "$0")/.."

format=clang-format
command -v clang-format-14 >/dev/null && format=clang-format-14
if ! $format --version 2>/dev/null | grep -q 'version 14\.'; then
    echo "clang-format 14 is not here: formatting not checked" >&2
    exit 0
fi
action="--dry-run -Werror"
[ "${1:-}" != --fix ] || action=-i
# shellcheck disable=SC2086 # two options
find libmx apps datasets tests -name '*.[ch]pp' -print0 | xargs -0 $format $action
