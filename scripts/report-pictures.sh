#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the pictures of docs/guide/report.md: a page of what `mx synth` writes, seen by headless
# Chromium.
# Usage: report-pictures.sh [MX]   (default: build/release/mx)
set -eu
cd "$(dirname "$0")/.."
mx=$(realpath "${1:-build/release/mx}")
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo "report-pictures.sh: no Chromium here; install the package chromium" >&2
    exit 1
}
pictures=$PWD/docs/guide/pictures
mkdir -p "$pictures"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
"$mx" synth -o synth.safetensors --preset small --quiet
"$mx" analyze synth.safetensors --html page.html --quiet

# picture NAME SECTION HEIGHT: the page with nothing but its title and one section.
picture() {
    sed "s|</style>|nav,footer,#bar,section:not(#$2){display:none!important}section{break-inside:auto}&|" \
        page.html >"$1.html"
    "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="1100,$3" \
        --screenshot="$pictures/$1.png" "file://$scratch/$1.html" >/dev/null 2>&1
}
picture verdict what-to-use-for-each-class 620
picture norms norm-gains-against-the-clamp-zone 900
ls -l "$pictures"
