#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy (checks: .clang-tidy) over all sources, or over the named files.
set -eu
cd "$(dirname "$0")/.."

scripts/install-dependencies.sh build tidy
[ -f build/dev/compile_commands.json ] || cmake --preset dev
[ $# -gt 0 ] || set -- $(find libmx apps datasets tests -name '*.cpp' ! -path 'tests/package/*' ! -path 'tests/tsan/*')
printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" clang-tidy -p build/dev --quiet\
    --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument --warnings-as-errors='*'
