#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a kit (scripts/gpu-kit.sh) in a bare Debian 12 that has Python and no GPU: it must end with exit code 77 within a
# minute, and every program must find its libraries. Not part of ctest: it needs root, debootstrap and a Debian mirror.
# Usage: bare_kit.sh KIT ROOT   (keep ROOT and the next run reuses the system)
set -eu
kit=$(realpath "$1")
. "$(dirname "$0")/debian_root.sh"
debian_root "$2" bookworm python3-minimal,libpython3-stdlib,xz-utils
root=$(cd "$2" && pwd)
rm -rf "$root/kit" "$root/out" "$root/unpacked"
cp -r "$kit" "$root/kit"

begin=$(date +%s)
code=0
in_root "$root" python3 -B /kit/check-gpu.py --kit /kit --seconds 900 --output /out || code=$?
seconds=$(($(date +%s) - begin))
echo "exit code $code after $seconds s"
[ "$code" = 77 ] && [ "$seconds" -lt 60 ]

mkdir "$root/unpacked"
tar -xJf "$kit/kit.tar.xz" -C "$root/unpacked"
for program in "$root"/unpacked/mx_gpu_*; do
    code=0
    in_root "$root" "/unpacked/${program##*/}" >/dev/null || code=$?
    [ "$code" = 77 ] || { echo "${program##*/}: exit code $code" >&2 && exit 1; }
done
in_root "$root" /unpacked/mx_capture --dry-run --emulate sm_90a | tail -n 1
