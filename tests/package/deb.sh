#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Debian package: its contents, the same bytes when made twice, lintian's report, its location,
# and its bill of materials. Usage: deb.sh BUILD WORK SOURCE
set -eu
for program in cpack dpkg-deb dpkg-shlibdeps; do
    command -v $program >/dev/null || { echo "skipped: no $program"; exit 77; }
done
fail() { echo "$*" >&2; exit 1; }
rm -rf "$2"
mkdir -p "$2/one" "$2/two/deeper"
for folder in one two/deeper; do
    cpack --config "$1/CPackConfig.cmake" -G DEB -B "$2/$folder" >"$2/log" 2>&1 || { cat "$2/log"; exit 1; }
done
deb=$(echo "$2"/one/mx_*.deb)
cmp "$deb" "$2"/two/deeper/mx_*.deb || fail "made twice, it differs"
dpkg-deb -c "$deb" >"$2/files"
for file in bin/mx share/man/man1/mx.1.gz share/bash-completion/completions/mx share/doc/mx/copyright \
    share/zsh/vendor-completions/_mx share/fish/vendor_completions.d/mx.fish share/doc/mx/changelog.gz; do
    grep -q " ./usr/$file\$" "$2/files" || fail "no $file in the package"
done
! grep -E '\.(hpp|a|cmake)$' "$2/files" || fail "the library is in the package"
dpkg-deb -f "$deb" Depends | grep -q libhdf5 || fail "no dependencies"
# A package that depends on MPI is made with a line about it.
says=$(grep -c 'configure with -DMX_MPI=OFF' "$2/log" || true)
needs=$(dpkg-deb -f "$deb" Depends | grep -cE 'libopenmpi|libmpich' || true)
[ "$says" = "$needs" ] || fail "MPI is needed: $needs, and said: $says"
if command -v lintian >/dev/null; then
    [ -z "$(lintian "$deb" 2>/dev/null)" ] || { lintian "$deb"; exit 1; }
fi
# Packages are made without CUDA (scripts/package.sh), whose toolkit often comes from no Debian
# package.
if [ -e "$1/build.ninja" ] && ! grep -q "^CMAKE_CUDA_COMPILER:" "$1/CMakeCache.txt" && command -v python3 >/dev/null; then
    SOURCE_DATE_EPOCH=0 python3 -B "$3/scripts/sbom.py" "$1" --artifact "$deb" >"$2/sbom.json"
    SBOM="$2/sbom.json" python3 -B "$3/tests/scripts/sbom_test.py"
fi
