#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/guide/metrics-drawn.md from mx's figures for two small blocks.

draw-metrics.py MX FOLDER [--check]: with --check nothing is written, and the exit code is 1 if a
picture in FOLDER differs. Prints the figures that the page contains."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

GRID = [0, 0.5, 1, 1.5, 2, 3, 4, 6]  # the magnitudes of E2M1
# Readable on a light and on a dark page.
STYLE = """<style>
text { font: 13px sans-serif; fill: #222 } .axis { stroke: #222 } .tick { stroke: #888 }
.in { fill: none; stroke: #0b62a8; stroke-width: 2 } .out { fill: #b4441a } .move { stroke: #b4441a }
.under { fill: #8a63b8; opacity: .35 } .over { fill: #d98a00; opacity: .35 } .clamp { fill: #c62828; opacity: .45 }
@media (prefers-color-scheme: dark) { text { fill: #e6e6e6 } .axis { stroke: #e6e6e6 }
 .in { stroke: #6cb8f5 } .out { fill: #ff9a66 } .move { stroke: #ff9a66 } }
</style>"""


def measure(mx, values, recipe, role):
    """The figures of one row of values, its scale, and what the values become."""
    with tempfile.TemporaryDirectory() as folder:
        raw = pathlib.Path(folder, "block.bin")
        raw.write_bytes(struct.pack(f"<{len(values)}f", *values))
        common = [str(raw), "--shape", str(len(values)), "--dtype", "F32", "-r", recipe]

        def said(*words):
            return json.loads(subprocess.run([mx, *words, "--json", "-", "-q"], check=True,
                                             capture_output=True, text=True).stdout)
        figures = said("analyze", *common, "--role-pattern", f"{role}=*")["results"][0]
        block = said("show", *common, "--block-index", "0")["results"][0]
        subprocess.run([mx, "quantize", *common, "--all-tensors", "-o", f"{folder}/out.npy", "-q"], check=True)
        data = pathlib.Path(folder, "out.npy").read_bytes()
        quantized = struct.unpack(f"<{len(values)}f", data[-4 * len(values):])
        return figures, block["scale"], quantized


class Axis:
    """A number line from `low` to `high`, 640 units wide."""

    def __init__(self, low, high, y):
        self.low, self.high, self.y, self.parts = low, high, y, []

    def at(self, value):
        return round(30 + 640 * (value - self.low) / (self.high - self.low), 1)

    def line(self, ticks, label):
        self.parts.append(f'<path class="axis" d="M30 {self.y}H670"/>')
        for tick in ticks:
            self.parts.append(f'<path class="tick" d="M{self.at(tick)} {self.y - 6}v12"/>'
                              f'<text x="{self.at(tick)}" y="{self.y + 22}" text-anchor="middle">'
                              f'{tick:g}</text>')
        self.text(30, self.y + 42, label)

    def band(self, name, low, high, label, row):
        self.parts.append(f'<rect class="{name}" x="{self.at(low)}" y="{self.y - 34}" '
                          f'width="{round(self.at(high) - self.at(low), 1)}" height="34"/>')
        self.text(self.at(low), self.y - 40 - 16 * row, label)

    def value(self, before, after, height):
        """A ring for the value, a dot for what it becomes, and the way between them."""
        x, to = self.at(before), self.at(after)
        self.parts.append(f'<path class="move" d="M{x} {self.y - height}L{to} {self.y}"/>'
                          f'<circle class="in" cx="{x}" cy="{self.y - height}" r="4"/>'
                          f'<circle class="out" cx="{to}" cy="{self.y}" r="4"/>')

    def text(self, x, y, words):
        self.parts.append(f'<text x="{x}" y="{y}">{words}</text>')

    def picture(self, height, title):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 730 {height}" role="img" '
                f'aria-label="{title}">{STYLE}\n' + "\n".join(self.parts) + "\n</svg>\n")


def block_picture(values, scale, quantized):
    axis = Axis(0, 7, 90)
    axis.line(GRID, "|y| = |x| / scale; ticks: the magnitudes of E2M1, codes 0 to 7")
    for i, (x, d) in enumerate(zip(values, quantized)):
        axis.value(abs(x) / scale, abs(d) / scale, 30 + 12 * (i % 3))
    axis.text(30, 18, f"Eight values under the scale {scale:g}: rings, and the grid points they become")
    return axis.picture(140, "a block of eight values on the grid of E2M1")


def zones_picture():
    axis = Axis(0, 8, 110)
    axis.line(GRID + [7, 8], "|y| = |x| / scale of E2M1")
    axis.band("under", 0, 0.25, "underflow: at most 0.25 becomes 0", 0)
    axis.band("over", 6, 8, "overflow: beyond 6", 1)
    axis.band("clamp", 7, 8, "clamp: beyond 7", 0)
    return axis.picture(160, "zones of underflow, overflow and clamping on the grid of E2M1")


def saturated_picture(values, scale, quantized):
    axis = Axis(0.8, 1.02, 90)
    axis.line([0.8125, 0.875, 0.9375, 1], "x; the largest value of E4M3 under this scale is "
              f"448 / {1 / scale:g} = {448 * scale:g}")
    for i, (x, d) in enumerate(zip(values, quantized)):
        axis.value(x, d, 30 + 10 * (i % 3))
    axis.text(30, 18, "Gains of a norm, close together below a power of two: all become one value")
    return axis.picture(140, "a saturated block: every gain becomes the largest value")


def main():
    mx, folder, check = sys.argv[1], pathlib.Path(sys.argv[2]), "--check" in sys.argv
    values = [v / 8 for v in (0.3, -1.1, 2.6, 0.07, -4.2, 1.9, 6.6, 0.9)]
    gains = [0.91, 0.93, 0.95, 0.96, 0.97, 0.98, 0.99, 0.995]
    f, scale, quantized = measure(mx, values, "mxfp4:block=1x8", "weight")
    g, gain_scale, gains_out = measure(mx, gains, "mxfp8:block=1x8", "norm")
    pictures = {"metrics-block.svg": block_picture(values, scale, quantized),
                "metrics-zones.svg": zones_picture(),
                "metrics-saturated.svg": saturated_picture(gains, gain_scale, gains_out)}
    different = []
    for name, text in pictures.items():
        path = folder / name
        if check:
            different += [] if path.exists() and path.read_text() == text else [name]
        else:
            path.write_text(text)
    for name, of in (("block", f), ("gains", g)):
        keys = ("rms", "rmse", "nrmse", "sqnr_db", "overflow_rate", "clamp_rate", "underflow_rate",
                "saturated_block_rate", "gain", "spread_error")
        print(name, *(f"{k}={of[k]:.4g}" for k in keys if of[k] is not None))
    if different:
        sys.exit(f"other pictures than mx gives: {', '.join(different)}; run scripts/draw-metrics.py "
                 "MX docs/guide/pictures")


if __name__ == "__main__":
    main()
