#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a kit: mx, mx_capture and the tests for GPUs with the libraries that they need, and check-gpu.py, for a
# machine that has an NVIDIA GPU, its driver and Python, and nothing else of ours
# (docs/howto/check-a-gpu.md). Needs nvcc of CUDA 12.8 or later and the libraries of mx, but no GPU.
# Usage: gpu-kit.sh [FOLDER]      (default: build/gpu-kit)
#   MX_KIT_GPU=90        compute capabilities without the dot: 90 (H100, H200), "100;120", or all
#   MX_KIT_BUILD=FOLDER  the build (build/gpu-kit-build), kept for the next time; it may be configured already
#   MX_KIT_JOBS=N        parallel jobs (as many as there are processors)
set -eu
cd "$(dirname "$0")/.."
kit=${1:-build/gpu-kit}
build=${MX_KIT_BUILD:-build/gpu-kit-build}

# Without libcurl and MPI, which bring thirty libraries. RPATH, not RUNPATH, also serves the libraries of
# libraries and comes before the other machine's LD_LIBRARY_PATH. A static program could not load the driver.
[ -f "$build/CMakeCache.txt" ] ||
    cmake --preset release -B "$build" -DMX_CUDA=on "-DMX_CUDA_ARCHITECTURES=${MX_KIT_GPU:-90}" \
        -DMX_BUILD_TESTS=ON -DMX_REMOTE=OFF -DMX_MPI=OFF \
        "-DCMAKE_BUILD_RPATH=\$ORIGIN/lib" -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags
cmake --build "$build" -j "${MX_KIT_JOBS:-$(nproc)}" --target mx mx_capture mx_gpu_tests

rm -rf "$kit"
mkdir -p "$kit/lib"
for program in "$build/mx" "$build/mx_capture" "$build"/tests/gpu/mx_gpu_*; do
    if [ -f "$program" ] && [ -x "$program" ]; then
        strip --strip-unneeded -o "$kit/${program##*/}" "$program"
    fi
done
cp scripts/check-gpu.py "$kit/"
{ git rev-parse HEAD && git status --short; } >"$kit/commit" 2>/dev/null || echo unknown >"$kit/commit"

# Of glibc the other machine has its own, which its driver needs.
of_glibc='/(libc|libm|libdl|libpthread|librt|libresolv|libutil|libmvec|ld-linux-x86-64)\.so'
needed() {
    for program in "$kit"/mx*; do ldd "$program"; done | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
        grep -Ev "$of_glibc"
}
needed | while read -r library; do
    cp -L "$library" "$kit/lib/"
    chmod u+w "$kit/lib/${library##*/}"
    strip --strip-unneeded "$kit/lib/${library##*/}"
done
if from_here=$(needed | grep -v "^$(realpath "$kit")/lib/"); then
    echo "gpu-kit.sh: the kit would take these from this machine: $from_here" >&2
    exit 1
fi

glibc=$(objdump -T "$kit"/mx* "$kit"/lib/* | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -n 1)
unpacked=$(du -sk "$kit" | cut -f 1)
# The programs share most of their code, which only a large window sees.
(cd "$kit" && tar --sort=name --owner=0 --group=0 --mtime=@0 -cf - lib mx*) |
    xz -T1 --lzma2=preset=1,dict=128MiB >"$kit/kit.tar.xz"
rm -rf "${kit:?}"/mx* "${kit:?}/lib"
echo "$kit: $(du -sk "$kit" | cut -f 1) KiB, unpacked $unpacked KiB; it needs glibc ${glibc#GLIBC_} or later." \
    "On the other machine: python3 check-gpu.py --kit . --seconds 900"
