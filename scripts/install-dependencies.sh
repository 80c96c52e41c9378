#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs missing packages of cmake/debian-packages.txt through apt, as root or with sudo. Usage: install-dependencies.sh [KIND]...
# Kinds: build, optional (these two by default), bench, format, tidy, tsan, interop, torch, browser,
# site, mpi, rtl, remote, package. Only failures of kinds build, bench, format, tidy,
# tsan and package are errors.
# With nothing to install it needs no rights and no network. If it cannot install, it lists what is
# missing, and CMake decides whether that matters.
set -eu
list=$(dirname "$0")/../cmake/debian-packages.txt

[ $# -gt 0 ] || set -- build optional
missing=
needed=
for kind in "$@"; do
    for package in $(sed -n "s/^$kind //p" "$list"); do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$state" = installed ] && continue
        missing="$missing $package"
        case $kind in
            optional | interop | torch | browser | site | mpi | rtl | remote) ;;
            *) needed=yes ;;
        esac
    done
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "no apt-get here; on Debian or Ubuntu mx would install:$missing" >&2
    exit 0
fi
if [ "$(id -u)" = 0 ]; then
    as_root=env
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root="sudo env"
elif command -v sudo >/dev/null && [ -t 0 ]; then
    as_root="sudo env" # asks for the password
else
    echo "cannot install without root or sudo:$missing" >&2
    exit 0
fi
echo "installing:$missing"
install() {
    # shellcheck disable=SC2086 # a list of words
    $as_root apt-get -q update &&
        $as_root DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $missing
}
if [ -n "$needed" ]; then
    install
else
    install || echo "could not install, and can do without:$missing" >&2
fi
