#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes in OUT (build/packages): a Debian package, a tarball with a static mx for any Linux of this
# processor, the bill of materials of each (SPDX 2.3), and SHA256SUMS. Two runs on the same commit and
# distribution give the same bytes, whatever the folder. Installs what is missing through apt, and
# fetches Debian's sources of four libraries. Without MPI and CUDA, which most machines lack.
# Usage: package.sh [OUT [CMAKE_OPTION...]]
set -eu
out=$(realpath -m "${1:-$(dirname "$0")/../build/packages}")
[ $# = 0 ] || shift
cd "$(dirname "$0")/.."
build=$PWD/build/package
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

scripts/install-dependencies.sh build optional package
scripts/static-libraries.sh "$build/libraries"
rm -rf "$out"
mkdir -p "$out"

# One folder for both: only the link differs. CMake has cached the libraries of the other kind.
configure() {
    cmake --preset release -B "$build" -U '*_LIBRARY*' -U 'OpenMP_*' -U 'pkgcfg_*' -DMX_MPI=OFF -DMX_CUDA=off "$@"
    cmake --build "$build" --target mx
}
# bill FILE: the bill of materials of a package that was just built.
bill() {
    scripts/sbom.py "$build" --artifact "$1" >"$1.spdx.json"
}

configure -DMX_STATIC= "$@"
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$build/deb"
cp "$build"/deb/*.deb "$out/"
bill "$(echo "$out"/*.deb)"

configure "-DMX_STATIC=$build/libraries" "$@"
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:.*=//p' "$build/CMakeCache.txt")
name=mx-$version-linux-$(uname -m)
rm -rf "$build/tarball"
cmake --install "$build" --strip --component command --prefix "$build/tarball/$name" >"$build/install.log"
scripts/sbom.py "$build" --notices "$build/tarball/$name/share/doc/mx/licenses"
cp LICENSE README.md CHANGELOG.md "$build/tarball/$name/share/doc/mx/"
chmod -R u=rwX,go=rX "$build/tarball/$name"
tar -C "$build/tarball" --sort=name "--mtime=@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --format=gnu -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
bill "$out/$name.tar.gz"

export LC_ALL=C
cd "$out"
sha256sum -- * >SHA256SUMS
cat SHA256SUMS
