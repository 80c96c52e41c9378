#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything and runs the tests. With CI set, warnings are errors,
# kernels are built for all GPUs if nvcc is installed (little optimized if there is no GPU to run them), the
# formatting is checked, and the needs of the interop and browser tests and of the documents are installed.
# Usage: test.sh [PRESET]   (release, dev, asan, ubsan or tsan; default: release)
set -eu
cd "$(dirname "$0")/.."
preset=${1:-release}

# shellcheck disable=SC2046 # words, or nothing
scripts/install-dependencies.sh build optional ${CI:+format} $([ "$preset" != tsan ] || echo tsan)
if [ -n "${CI:-}" ]; then
    scripts/check-format.sh
    scripts/install-interop.sh
    scripts/install-dependencies.sh browser site mpi rtl remote
fi
fast=ON
! nvidia-smi -L >/dev/null 2>&1 || fast=OFF
cmake --preset "$preset" ${CI:+-DMX_WERROR=ON -DMX_CUDA_ARCHITECTURES=all -DMX_CUDA_FAST_COMPILE=$fast}
cmake --build --preset "$preset"
code=0
ctest --preset "$preset" -j "$(nproc)" || code=$?
# ctest names skipped tests; the reasons are only in its log.
grep '^skipped: ' "build/$preset/Testing/Temporary/LastTest.log" || true
exit $code
