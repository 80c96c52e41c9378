#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the targets for performance and prints them as a Markdown table: met or missed.
`mxfp4's rate` in a target is that of commit ab32965, whose program BASE is built beside
(docs/performance.md says how) and takes turns with MX. With MX_PEERS_PYTHON, a Python that has
torch and torchao, their quantization is measured as well (scripts/peers.py). Takes some ten minutes
of an otherwise idle machine and 2 GiB of disk."""

import argparse
import array
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
ROUNDS = 3
COMMON = ["nvfp4", "fp8_1x128", "fp8_128x128", "nvfp4:dialect=torchao", "mxfp4:dialect=torchao"]
NINE = [form + rule for form in ("mxfp4", "mxfp6", "mxfp8") for rule in ("", ":scale=ceil", ":scale=even")]
ADDED = ["nvfp4", "mxfp4:dialect=torchao"]
ELEMENTS = ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "int8", "int4"]
RULES = ["floor", "ceil", "even", "rceil", "nearest", "enhanced", "ceil-div-max"]
# One block shape, nearest roundings: 100 recipes.
HUNDRED = [f"mxfp8:element={e},scale={s},round={r}" for e in ELEMENTS for s in RULES for r in ("rtne", "away")] + [
    "nvfp4:block=1x32", "mxfp4:dialect=torchao"]
# Recipes with separate targets.
HARD = ("four_over_six", "hadamard", "round=stochastic")
PEERS_PYTHON = "MX_PEERS_PYTHON"


def say(text):
    print(text, file=sys.stderr, flush=True)


def output(program, *words):
    return subprocess.run([str(program), *map(str, words)], check=True, stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True).stdout


def recipes(names):
    return [word for name in names for word in ("--recipe", name)]


def seconds_of(program, *words):
    start = time.monotonic()
    output(program, *words)
    return time.monotonic() - start


def least(ratios, bound=0.0):
    """The least ratio, and the names of all below the bound, the least first."""
    missed = sorted((name for name in ratios if ratios[name] < bound), key=ratios.get)
    which = min(ratios, key=ratios.get)
    others = ", ".join(f"`{name}` {ratios[name]:.3g}" for name in missed[1:])
    return ratios[which], f"{which}; {len(missed)} of {len(ratios)} below: also {others}" if others else which


def verdict(bound, measured):
    """met or missed; bound is ">= x" or "<= x"."""
    how, _, limit = bound.partition(" ")
    met = measured >= float(limit) if how == ">=" else measured <= float(limit)
    return "met" if met else "missed"


def words_of(kind, count, seed=1):
    """bf16 words: `normal` values, `log-normal` ones with sigma 8, or `uniform` exponents."""
    rng = random.Random(seed)

    def one():
        if kind == "normal":
            x = rng.gauss(0, 1 / 32)
        elif kind == "log-normal":
            x = rng.choice((-1, 1)) * rng.lognormvariate(0, 8)
        else:
            return rng.getrandbits(1) << 15 | rng.randrange(1, 255) << 7 | rng.getrandbits(7)
        return struct.unpack("<I", struct.pack("<f", x))[0] >> 16
    return array.array("H", (one() for _ in range(count)))


def write_bf16(path, kind, rows, columns=4096):
    """A file of one tensor; the values of its first rows come again and again."""
    tile_rows = min(rows, 64)
    tile = words_of(kind, tile_rows * columns)
    head = json.dumps({"model.layers.0.mlp.up_proj.weight": {
        "dtype": "BF16", "shape": [rows, columns], "data_offsets": [0, 2 * rows * columns]}}).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for at in range(0, rows, tile_rows):
            file.write(tile[:min(tile_rows, rows - at) * columns].tobytes())


class Targets:
    """Runs both programs in turns and keeps the best of each."""

    def __init__(self, mx, base, size_log2=28, seconds=60.0):
        self.mx, self.base = str(mx), str(base)
        self.rows_of_file = 2 ** size_log2 // 4096
        self.seconds = seconds
        self.best = {}
        self.threads = len(os.sched_getaffinity(0))

    def keep(self, key, rate):
        self.best[key] = max(self.best.get(key, 0), rate)

    def in_memory(self, which, names, dtype):
        """Of BASE, which has no roads, without the pass that finds a tensor's maximum; mxfp4 needs none."""
        common = ["--dtype", dtype, "--threads", 1, "--seconds", self.seconds / 10, "--json", "-"]
        if which == "base":
            found, name = output(self.base, "bench", *recipes(names), *common), "recipe"
        else:
            roads = [word for n in names for word in ("--road", n)]
            found, name = output(self.mx, "bench", "--roads", *roads, *common), "road"
        for r in json.loads(found)["results"]:
            self.keep((which, r[name], dtype), r["elements_per_second"])

    def roads(self, threads):
        found = json.loads(output(self.mx, "bench", "--roads", "--threads", threads, "--seconds", self.seconds,
                                  "--json", "-"))
        for r in found["results"]:
            self.keep(("roads", threads, r["family"], r["road"]), r["elements_per_second"])
            if r["road"] == "quantize --recipe e4m3 --packed":
                self.keep(("cast", threads), r["fraction_of_roof"])

    def analyses(self, folder):
        normal = Path(folder, "normal.safetensors")
        say("files ...")
        write_bf16(normal, "normal", self.rows_of_file)
        usual = [normal, "--threads", 1, "--quiet", "--json", Path(folder, "out.json")]
        output(self.mx, "analyze", *usual, "--policy", "training")
        default = list(dict.fromkeys(r["recipe"] for r in json.loads(Path(folder, "out.json").read_text())["results"]))
        self.default_recipes = len(default)
        for _ in range(ROUNDS):
            for key, program, names in (("one", self.base, ["mxfp4"]), ("hundred", self.mx, HUNDRED),
                                        ("nine", self.mx, NINE), ("eleven", self.mx, NINE + ADDED),
                                        ("nine base", self.base, NINE),
                                        ("default", self.mx, default), ("default base", self.base, default)):
                self.keep(key, 1 / seconds_of(program, "analyze", *usual, *recipes(names)))
        for kind in "normal", "log-normal", "uniform":
            write_bf16(Path(folder, f"{kind}.safetensors"), kind, self.rows_of_file // 2)
        for _ in range(ROUNDS):
            for kind in "normal", "log-normal", "uniform":
                placed = json.loads(output(self.mx, "bench", Path(folder, f"{kind}.safetensors"), *recipes(["mxfp4"]),
                                           "--elements", 1, "--threads", 1, "--seconds", self.seconds / 60, "--json",
                                           "-"))["placed"]
                self.keep(("range", kind), placed[0]["elements_per_second"])

    def peers(self, folder):
        """By recipe, times torchao; empty where it is not there."""
        self.torchao = {}
        python = os.environ.get(PEERS_PYTHON)
        if not python:
            return
        say("torchao ...")
        found = Path(folder, "peers.json")
        output(python, SOURCE / "scripts" / "peers.py", self.mx, "--threads", 2, "--json", found)
        self.torchao = {r["task"]: r["times"] for r in json.loads(found.read_text())["results"]
                        if r["program"] == "torchao"}

    def run(self):
        for turn in range(ROUNDS):
            say(f"in memory, {turn + 1} of {ROUNDS} ...")
            for dtype in "BF16", "F32":
                self.in_memory("base", ["mxfp4", "mxfp8"], dtype)
                self.in_memory("mx", ["mxfp4", "mxfp8", *COMMON], dtype)
        for threads in (1, 2):
            say(f"roads, threads: {threads} ...")
            self.roads(threads)
            self.in_memory("base", ["mxfp4", "mxfp8"], "BF16")
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
            self.analyses(folder)
            self.peers(folder)

    def road_rates(self, threads, wanted):
        return {road: rate for key, rate in self.best.items() if key[0] == "roads" and key[1] == threads
                for family, road in [key[2:]] if wanted(family, road)}

    def rows(self):
        """(what, bound, measured, which one) of every target; measured None where nothing was."""
        best = self.best
        mxfp4 = {dtype: best["base", "mxfp4", dtype] for dtype in ("BF16", "F32")}

        yield ("one recipe, mxfp4 or mxfp8, bf16, one thread, times ab32965", ">= 0.5",
               *least({r: best["mx", r, "BF16"] / best["base", r, "BF16"] for r in ("mxfp4", "mxfp8")}))
        yield ("nvfp4, fp8_1x128, fp8_128x128, nvfp4 and mxfp4 under dialect=torchao, bf16 and f32, of mxfp4's rate",
               ">= 0.4", *least({f"{r} {d}": best["mx", r, d] / mxfp4[d] for r in COMMON for d in mxfp4}, 0.4))
        one = mxfp4["BF16"]

        def is_recipe(family, _):
            return family not in ("command", "figures")
        yield ("every other recipe of the parity list, of mxfp4's rate", ">= 0.2", *least(
            {r: rate / one for r, rate in self.road_rates(1, is_recipe).items()
             if r not in COMMON and not any(word in r for word in HARD)}, 0.2))
        yield ("four-over-six, hadamard, stochastic, of mxfp4's rate", ">= 0.3", *least(
            {r: rate / one for r, rate in self.road_rates(1, is_recipe).items()
             if any(word in r for word in HARD)}, 0.3))
        nine = self.road_rates(1, lambda family, road: family == "command" and road.startswith("analyze ("))
        yield ("default recipes of a training in one pass, bf16, time of one recipe at ab32965", "<= 1.5",
               *least({r: one / rate for r, rate in nine.items()}))
        yield ("nine recipes (three formats, three rules) in one pass over a bf16 file, time of one at ab32965",
               "<= 1.5", best["one"] / best["nine"], "")
        file_values = 4096 * self.rows_of_file
        yield (f"100 recipes under nearest rounding over {file_values} bf16 values, time of one", "<= 3",
               best["one"] / best["hundred"], "from a file")
        yield ("NVFP4 and dialect=torchao among nine others in one pass, additional time, of one recipe", "<= 0.3",
               (1 / best["eleven"] - 1 / best["nine"]) * best["one"], "from a file")
        yield ("whole `mx analyze` of a bf16 file under the nine recipes, times ab32965's rate", ">= 4",
               best["nine"] / best["nine base"], "")
        yield (f"whole `mx analyze` of a bf16 file under the {self.default_recipes} default recipes of a training, "
               "times ab32965's rate", ">= 4", best["default"] / best["default base"], "")
        packed = self.road_rates(1, lambda family, road: road == "quantize --recipe mxfp4 --packed")
        yield ("`quantize --packed` in memory, of mxfp4's analysis rate", ">= 0.5",
               *least({r: rate / one for r, rate in packed.items()}))
        yield "`mx quantize -r e4m3`, of the copy bandwidth", ">= 0.25", best["cast", 1], ""
        both = self.road_rates(2, lambda *_: True)
        yield ("two threads, times one, every road", ">= 1.8",
               *least({r: both[r] / rate for r, rate in self.road_rates(1, lambda *_: True).items()}, 1.8))
        normal = best["range", "normal"]
        yield ("mxfp4 on log-normal values with sigma 8, of its rate on normal ones", ">= 0.7",
               best["range", "log-normal"] / normal, "")
        yield ("mxfp4 on bf16 with uniform exponents, of its rate on normal values", ">= 0.3",
               best["range", "uniform"] / normal, "")
        for recipe in "nvfp4", "mxfp4":
            yield (f"{recipe} analysis, times torchao eager's quantize, dequantize and R-MSE, two threads", ">= 40",
                   self.torchao.get(recipe), "")

    def table(self):
        lines = ["| what | target | measured | at | |", "|---|---|---:|---|---|"]
        for what, bound, measured, which in self.rows():
            if measured is None:
                lines.append(f"| {what} | {bound} | - | | not measured: no torchao |")
                continue
            name, _, rest = which.partition("; ")
            at = f"`{name}`" if name and " a " not in name else name
            at += f"; {rest}" if rest else ""
            lines.append(f"| {what} | {bound} | {measured:.3g} | {at} | {verdict(bound, measured)} |")
        return "\n".join(lines) + "\n"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", metavar="BASE", type=Path, help="mx of commit ab32965")
    parser.add_argument("mx", metavar="MX", nargs="?", type=Path, default=SOURCE / "build/release/mx",
                        help="the program (build/release/mx)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each table of roads (60)")
    parser.add_argument("--size-log2", type=int, default=28, help="values of the file, as a power of two (28)")
    options = parser.parse_args(arguments)
    for program in options.base, options.mx:
        if not os.access(program, os.X_OK) or program.is_dir():
            parser.exit(3, f"no program {program}; build it first\n")
    targets = Targets(options.mx.resolve(), options.base.resolve(), options.size_log2, options.seconds)
    targets.run()
    print(targets.table(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
