#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the chart of the README: what formats cost a real language model.

draw-perplexity.py MX STORIES260K.BIN CHART.svg: the checkpoint is that of `datasets/fetch.sh stories260k`;
30 seconds on one core. Prints the command of mx and the figures that the chart shows."""
import hashlib
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import reproduce

RECIPES = [("mxint8", "MXINT8"), ("mxfp8:scale=rceil", "MXFP8, rceil"), ("mxfp8", "MXFP8, floor"),
           ("mxfp6:scale=even", "MXFP6, even"), ("nvfp4", "NVFP4"), ("mxfp4", "MXFP4, floor"),
           ("mxfp4:scale=even", "MXFP4, even"), ("mxfp4:scale=rceil", "MXFP4, rceil"),
           ("mxfp4:scale=ceil", "MXFP4, ceil")]
LOW, HIGH, LEFT, WIDTH, ROW, TOP = 0.1, 200, 150, 500, 24, 64
# Readable on a light and on a dark page.
STYLE = """<style>
text { font: 13px sans-serif; fill: #222 } .title { font-size: 15px; font-weight: bold } .small { font-size: 12px }
.grid { stroke: #999; stroke-opacity: .35 } .interval { stroke: #0b62a8; stroke-width: 2 } .dot { fill: #0b62a8 }
.number { text-anchor: end } .tick { text-anchor: middle }
@media (prefers-color-scheme: dark) { text { fill: #e6e6e6 } .interval { stroke: #6cb8f5 } .dot { fill: #6cb8f5 } }
</style>"""


def evaluate(mx, checkpoint):
    """{recipe: percent of perplexity (low, mean, high)}: the mean with two standard errors."""
    words = ["eval", "stories260k.safetensors", "--sample", "2000", "--precision", "float64"]
    for recipe, _ in RECIPES:
        words += ["-r", recipe]
    print("mx", *words)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, words[1])
        file.write_bytes(reproduce.llama2c_as_safetensors(checkpoint))
        found = json.loads(subprocess.run([mx, *words, "--json", "-", "-q"], check=True, cwd=folder,
                                          capture_output=True, text=True).stdout)
    percent = {}
    for r in found["results"]:
        mean, error = r["delta_mean"], 2 * r["delta_stderr"]
        percent[r["recipe"]] = [100 * math.expm1(x) for x in (mean - error, mean, mean + error)]
    return found["scored"], percent


def place(percent):
    return round(LEFT + WIDTH * math.log(max(LOW, percent) / LOW) / math.log(HIGH / LOW), 1)


def draw(scored, percent):
    bottom = TOP + ROW * len(RECIPES)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {bottom + 46}" width="720" role="img" '
             'aria-label="Perplexity of a language model under nine recipes">', STYLE,
             '<text class="title" x="8" y="22">What a format costs a language model: increase of perplexity</text>',
             '<text class="small" x="8" y="42">stories260K, weights and inputs of all linear layers quantized, '
             f'{scored:,} tokens; lines: two standard errors</text>']
    for tick in (0.1, 1, 10, 100):
        parts.append(f'<path class="grid" d="M{place(tick)} {TOP - 8}V{bottom}"/>'
                     f'<text class="tick" x="{place(tick)}" y="{bottom + 16}">{tick:g} %</text>')
    for i, (recipe, label) in enumerate(RECIPES):
        low, mean, high = percent[recipe]
        y = TOP + ROW * i + 4
        parts.append(f'<text x="8" y="{y + 5}">{label}</text>'
                     f'<path class="interval" d="M{place(low)} {y}H{place(high)}"/>'
                     f'<circle class="dot" cx="{place(mean)}" cy="{y}" r="4"/>'
                     f'<text class="number" x="712" y="{y + 5}">{mean:.3g} %</text>')
        print(f"{recipe}: {low:.3g} to {high:.3g}, mean {mean:.3g} %")
    return "\n".join([*parts, "</svg>"]) + "\n"


def main():
    mx, source, chart = sys.argv[1:]
    checkpoint = pathlib.Path(source).read_bytes()
    rows = (line.split("\t") for line in (reproduce.SOURCE / "datasets/manifest.tsv").read_text().splitlines())
    expected = next(row[3] for row in rows if row[0] == "stories260k")
    if hashlib.sha256(checkpoint).hexdigest() != expected:
        sys.exit(f"{source}: not the checkpoint of datasets/manifest.tsv; fetch it with datasets/fetch.sh stories260k")
    pathlib.Path(chart).write_text(draw(*evaluate(pathlib.Path(mx).resolve(), checkpoint)))


if __name__ == "__main__":
    main()
