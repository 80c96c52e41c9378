#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Archives of libraries that Debian has only as shared ones, for linking mx statically:
# libfmt.a, libhwy.a, libnlopt.a and libzip.a in FOLDER/lib. They are built from Debian's own sources of
# the packages that are installed, which apt fetches and verifies. A second run builds what is missing.
# Usage: static-libraries.sh FOLDER
set -eu
mkdir -p "$1/lib" "$1/apt/lists" "$1/apt/cache"
folder=$(cd "$1" && pwd)

# The sources of each place from which apt gets Debian's packages, with separate lists.
apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN) $(CREATED_BY)' |
    awk -v key=/usr/share/keyrings/debian-archive-keyring.gpg '$NF == "Packages" && $4 == "Debian" {
        print "deb-src [signed-by=" key "] " $1, $2, $3 }' | sort -u >"$folder/apt/sources.list"
cat >"$folder/apt/apt.conf" <<END
Dir::Etc::sourcelist "$folder/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$folder/apt/lists";
Dir::Cache "$folder/apt/cache";
APT::Sandbox::User "root";
END

updated=
# library ARCHIVE DEV_PACKAGE CMAKE_OPTION...
library() {
    archive=$1
    package=$2
    shift 2
    source=$(dpkg-query -W -f '${source:Package}=${source:Version}' "$package")
    [ ! -e "$folder/lib/$archive" ] || [ "$(cat "$folder/lib/$archive.source")" != "$source" ] || return 0
    echo "$archive: from $source"
    rm -rf "${folder:?}/$package" "$folder/lib/$archive"
    mkdir "$folder/$package"
    [ -n "$updated" ] || APT_CONFIG=$folder/apt/apt.conf apt-get -qq update
    updated=yes
    (cd "$folder/$package" && APT_CONFIG=$folder/apt/apt.conf apt-get -qq source "$source") \
        >"$folder/$package.log" 2>&1 &&
        cmake -S "$folder/$package"/*/ -B "$folder/$package/build" -DCMAKE_BUILD_TYPE=Release \
            -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
            "-DCMAKE_C_FLAGS=-ffile-prefix-map=$folder=." "-DCMAKE_CXX_FLAGS=-ffile-prefix-map=$folder=." \
            "$@" >>"$folder/$package.log" 2>&1 &&
        cmake --build "$folder/$package/build" -j "$(nproc)" >>"$folder/$package.log" 2>&1 || {
        cat "$folder/$package.log" >&2
        exit 1
    }
    find "$folder/$package/build" -name "$archive" -exec cp '{}' "$folder/lib/" ';'
    [ -e "$folder/lib/$archive" ] || { echo "$source made no $archive" >&2; exit 1; }
    echo "$source" >"$folder/lib/$archive.source"
    echo "$package" >"$folder/lib/$archive.package"
}
# As in the packages: libzip with bzip2 and the encryption of OpenSSL, without xz and Zstandard.
library libfmt.a libfmt-dev -DFMT_TEST=OFF -DFMT_DOC=OFF
library libhwy.a libhwy-dev -DHWY_ENABLE_EXAMPLES=OFF -DHWY_ENABLE_CONTRIB=OFF -DHWY_ENABLE_TESTS=OFF
library libnlopt.a libnlopt-dev -DNLOPT_CXX=OFF -DNLOPT_FORTRAN=OFF -DNLOPT_PYTHON=OFF \
    -DNLOPT_OCTAVE=OFF -DNLOPT_MATLAB=OFF -DNLOPT_GUILE=OFF -DNLOPT_SWIG=OFF -DNLOPT_TESTS=OFF
library libzip.a libzip-dev -DENABLE_GNUTLS=OFF -DENABLE_MBEDTLS=OFF -DENABLE_LZMA=OFF -DENABLE_ZSTD=OFF \
    -DBUILD_TOOLS=OFF -DBUILD_REGRESS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_DOC=OFF
