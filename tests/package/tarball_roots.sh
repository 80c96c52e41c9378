#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the static mx of a tarball in bare systems of Debian 11, 12 and 13, with files of every format
# that needs a library, every backend and several threads, and compares its output with that of a shared
# mx here. Not part of ctest: it needs root, debootstrap and a Debian mirror.
# Usage: tarball_roots.sh TARBALL MX WORK   (keep WORK and the next run reuses the systems)
set -eu
repository=$(cd "$(dirname "$0")/../.." && pwd)
tarball=$(realpath "$1")
mx=$(realpath "$2")
mkdir -p "$3"
work=$(cd "$3" && pwd)
. "$repository/tests/package/debian_root.sh"

cat >"$work/commands" <<'END'
export PATH=$1:$PATH LC_ALL=C
cd "$2"
mx version | grep -E '^(mx|oracle|ONNX|fits|backend [^c])'
for file in *.h5 *.keras *.npz *.pt *.onnx torch_distributed *.safetensors; do
    echo "== $file"
    mx tensors "$file" 2>&1
done
mx synth -o c.safetensors --quiet
for backend in scalar sse4 avx2 avx512; do
    mx version | grep "backend $backend .*not here" && continue
    for threads in 1 3; do
        mx analyze c.safetensors -r mxfp4 -r nvfp4 --sha256 --backend $backend --threads $threads --json - |
            sha256sum
    done
done
mx analyze h5py.h5 -r mxfp8 -r mxfp4:scale=even --csv - 2>&1
mx quantize c.safetensors -r nvfp4 -o q.h5 --quiet
mx tensors q.h5
mx verify --quiet && echo "every backend agrees"
END

run_here() {
    rm -rf "$work/here"
    mkdir -p "$work/here/bin"
    cp -r "$repository/tests/io/data" "$work/here/data"
    ln -s "$mx" "$work/here/bin/mx"
    sh "$work/commands" "$work/here/bin" "$work/here/data" >"$work/here.txt"
}
run_here
for suite in bullseye bookworm trixie; do
    root=$work/$suite
    debian_root "$root" $suite
    rm -rf "$root/opt/mx" "$root/root/data"
    mkdir "$root/opt/mx"
    tar -C "$root/opt/mx" --strip-components=1 -xzf "$tarball"
    cp -r "$repository/tests/io/data" "$root/root/data"
    cp "$work/commands" "$root/root/commands"
    in_root "$root" sh /root/commands /opt/mx/bin /root/data >"$work/$suite.txt"
    cmp "$work/here.txt" "$work/$suite.txt"
    [ -s "$root/opt/mx/share/man/man1/mx.1" ]
    echo "Debian $(cat "$root/etc/debian_version"): $(wc -l <"$work/$suite.txt") lines, as here"
done
# Nothing of the system: neither an interpreter nor a needed library.
! readelf -lW "$work/bookworm/opt/mx/bin/mx" | grep -q INTERP
! readelf -dW "$work/bookworm/opt/mx/bin/mx" | grep -q NEEDED
