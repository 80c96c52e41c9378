#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a bare system to a first result: installs what is missing, builds the release, writes a
# small synthetic checkpoint and analyses it. The table goes to the terminal, reports to build/demo;
# the last line says what took how long.
set -eu
cd "$(dirname "$0")/.."

spent=
since=$(date +%s)
# lap STEP: notes the time since the last one.
lap() {
    now=$(date +%s)
    spent="$spent${spent:+, }$1 $((now - since)) s"
    since=$now
}

scripts/install-dependencies.sh
lap packages
cmake --preset release
lap configuring
cmake --build --preset release --target mx
lap compiling

mx=build/release/mx
out=build/demo
rm -rf "$out" && mkdir -p "$out"
$mx synth -o "$out/checkpoint.safetensors"
$mx analyze "$out/checkpoint.safetensors" --html "$out/report.html" --json "$out/report.json"
lap 'analysing a checkpoint'
echo
echo "Report to open in a browser: $PWD/$out/report.html"
echo "The figures as JSON: $PWD/$out/report.json"
echo "Time: $spent"
