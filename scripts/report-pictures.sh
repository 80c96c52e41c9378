#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the pictures of docs/guide/report.md: pages about files of `mx synth`, in headless Chromium.
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
"$mx" analyze synth.safetensors --html page.html --json results.json --quiet
"$mx" plan results.json --bits 6 --html plan.html --quiet

# picture NAME HEIGHT SECTION...: $page with nothing but its title and these sections.
picture() {
    name=$1
    height=$2
    shift 2
    others=section
    for section; do others="$others:not(#$section)"; done
    sed "s|</style>|#side,footer,$others{display:none!important}&|" "$page" >"seen-$name.html"
    "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars \
        --window-size="1100,$height" --screenshot="$pictures/$name.png" \
        "file://$scratch/seen-$name.html" >/dev/null 2>&1
}
page=page.html
picture verdict 1060 verdict what-to-ship largest-risks
picture tensors 850 tensors-under-the-recommendation
picture norms 620 norm-gains-against-the-clamp-zone
page=plan.html
picture plan 880 verdict error-by-tensor
ls -l "$pictures"
