#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# After docs/howto/add-a-command.md: the command is listed, has a page, runs, and refuses a wrong
# option in one line. add-a-command.sh MX
set -eu
mx=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
expect() {  # WHAT EXPECTED FOUND
    [ "$2" = "$3" ] || {
        printf '%s:\n--- expected\n%s\n--- found\n%s\n' "$1" "$2" "$3" >&2
        exit 1
    }
}

expect "mx help lists it" "bits bits per element of recipes" \
    "$("$mx" help | awk '$1 == "bits" || $2 == "bits" { sub(/^.*  *bits  */, "bits "); print }')"
expect "mx help bits" "  -r, --recipe RECIPE         a recipe; repeatable" \
    "$("$mx" help bits | grep -e --recipe)"
expect "completion" bits "$("$mx" --complete bit | cut -f 1)"
"$mx" help --write-manual "$scratch"
expect "the reference" "## mx bits" "$(grep '^## mx bits' "$scratch/reference/commands.md")"
expect "mx bits" "mxfp4 4.25
nvfp4 4.5" "$("$mx" bits -r mxfp4 -r nvfp4)"

for wrong in "" "--recipes mxfp4" "-r mxfp3"; do
    code=0
    # shellcheck disable=SC2086 # several words
    "$mx" bits $wrong >"$scratch/output" 2>"$scratch/error" || code=$?
    expect "exit code of mx bits $wrong" 2 "$code"
    expect "lines of mx bits $wrong" "0 1" \
        "$(wc -l <"$scratch/output" | tr -d ' ') $(wc -l <"$scratch/error" | tr -d ' ')"
done
