#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a bare system to a first result: installs what is missing, builds the release, writes a
# small synthetic checkpoint and analyses it. The table goes to the terminal, reports to build/demo.
set -eu
cd "$(dirname "$0")/.."

scripts/install-dependencies.sh
cmake --preset release
cmake --build --preset release --target mx

mx=build/release/mx
out=build/demo
rm -rf "$out" && mkdir -p "$out"
$mx synth -o "$out/checkpoint.safetensors"
$mx analyze "$out/checkpoint.safetensors" --html "$out/report.html" --json "$out/report.json"
echo
echo "Report to open in a browser: $PWD/$out/report.html"
echo "The figures as JSON: $PWD/$out/report.json"
