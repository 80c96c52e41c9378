#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything and runs the tests. With CI set, warnings are errors
# and the formatting is checked too.
# Usage: test.sh [PRESET]   (release, dev, asan, ubsan or tsan; default: release)
set -eu
cd "$(dirname "$0")/.."
preset=${1:-release}

# shellcheck disable=SC2046 # words, or nothing
scripts/install-dependencies.sh build optional ${CI:+format} $([ "$preset" != tsan ] || echo tsan)
[ -z "${CI:-}" ] || scripts/check-format.sh
cmake --preset "$preset" ${CI:+-DMX_WERROR=ON}
cmake --build --preset "$preset"
ctest --preset "$preset" -j "$(nproc)"
