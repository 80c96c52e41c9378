#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches one public checkpoint of manifest.tsv, checks its size and SHA-256, and puts it in place
# whole or not at all. Without a name it lists what there is.
set -eu

usage='usage: datasets/fetch.sh [NAME [DIRECTORY]]'
manifest=$(dirname -- "$0")/manifest.tsv
tab=$(printf '\t')

fail() {
    printf 'fetch.sh: %s\n' "$1" >&2
    exit "${2:-3}"
}

rows() { grep -v -e '^#' -e "^name$tab" "$manifest"; }

sha256_of() {
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum <"$1" | cut -d ' ' -f 1
    else
        shasum -a 256 <"$1" | cut -d ' ' -f 1
    fi
}

[ -r "$manifest" ] || fail "cannot read $manifest"
[ $# -le 2 ] || fail "$usage" 2

if [ $# -eq 0 ]; then
    rows | awk -F '\t' '{ printf "%-24s %-12s %s\n", $1, substr($5, 1, 12), $8 }'
    exit 0
fi
case $1 in
    -h | --help) printf '%s\n' "$usage"; exit 0 ;;
    -*) fail "unknown option $1; $usage" 2 ;;
esac

row=$(rows | awk -F '\t' -v name="$1" '$1 == name')
[ -n "$row" ] || fail "no checkpoint named '$1'; run it without a name to see the list" 2
field() { printf '%s\n' "$row" | cut -f "$1"; }
file=$(field 2) bytes=$(field 3) sha256=$(field 4) licence=$(field 5) url=$(field 7)

command -v curl >/dev/null 2>&1 || fail 'curl is missing; install it'
directory=${2:-.}
[ -d "$directory" ] || fail "$directory is not a directory"
destination=$directory/$file
[ ! -e "$destination" ] || fail "$destination exists; remove it to fetch it again"

part=$(mktemp "$destination.XXXXXX") || fail "cannot write to $directory"
trap 'rm -f -- "$part"' EXIT
trap 'exit 130' INT TERM HUP

printf '%s (licence: %s)\n%s\n' "$1" "$licence" "$url" >&2
curl --fail --location --retry 3 --show-error --progress-bar --output "$part" "$url" ||
    fail "could not fetch $url"

size=$(wc -c <"$part" | tr -d ' ')
[ "$bytes" = - ] || [ "$size" = "$bytes" ] ||
    fail "$url: got $size bytes instead of $bytes; the file changed or was cut short"
sum=$(sha256_of "$part")
if [ "$sha256" = - ]; then
    printf 'no checksum is known for %s; this file has SHA-256 %s\n' "$1" "$sum" >&2
elif [ "$sum" != "$sha256" ]; then
    fail "$url: SHA-256 is $sum instead of $sha256"
fi
chmod 644 "$part"
mv -- "$part" "$destination"
printf '%s\n' "$destination"
