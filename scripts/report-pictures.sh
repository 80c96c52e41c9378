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

# picture NAME HEIGHT SECTION...: the page with nothing but its title and these sections.
picture() {
    name=$1
    height=$2
    shift 2
    others=section
    for section; do others="$others:not(#$section)"; done
    sed "s|</style>|nav,footer,#bar,$others{display:none!important}&|" page.html >"$name.html"
    "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars \
        --window-size="1100,$height" --screenshot="$pictures/$name.png" \
        "file://$scratch/$name.html" >/dev/null 2>&1
}
picture verdict 960 verdict what-to-ship largest-risks
picture norms 890 norm-gains-against-the-clamp-zone
ls -l "$pictures"
