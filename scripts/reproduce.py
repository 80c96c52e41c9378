#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every command of docs/reproduce (yang.md, su.md, stages.md) and prints their tables. It makes
its own inputs: checkpoints of `mx synth`, and a few raw files with known statistics. mx measures
every figure of a recipe; the script computes only means over tensors, a closed form to compare with,
and shares of energy of unquantized matrices.

Given a folder, it also measures the public checkpoints of datasets/manifest.tsv that are in it, at
most one folder deeper, under any name (identified by their SHA-256); datasets/fetch.sh downloads
them. With --studies it trains the studies of the other pages instead, which takes as many minutes of
two cores as their budgets state. The figures do not depend on the machine."""

import argparse
import hashlib
import json
import math
import os
import re
import shlex
import shutil
import statistics
import struct
import subprocess
import sys
from array import array
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
CHECKPOINTS = ["stories260k", "minigrid-dt-gatedmlp", "magika-begonly-v2-1", "g2p-en", "textgenrnn"]


# ---- inputs ----

def f32(values):
    """Little-endian float32, each rounded once."""
    values = list(values)
    return struct.pack(f"<{len(values)}f", *values)


def floats(data):
    """The float32 numbers in little-endian bytes."""
    values = array("f", data)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def normal(n):
    """Standard normal numbers: pairs of Box and Muller on two combined generators of L'Ecuyer (1988)."""
    a, b = 12345, 67890
    values = []

    def uniform():
        nonlocal a, b
        a, b = a * 40014 % 2147483563, b * 40692 % 2147483399
        d = math.fmod(a - b, 2147483562)
        return (d + 2147483562 if d <= 0 else d) / 2147483563

    for _ in range(0, n, 2):
        r = math.sqrt(-2 * math.log(uniform()))
        t = 6.283185307179586 * uniform()
        values += [r * math.cos(t), r * math.sin(t)]
    return values


def log_uniform(n):
    """Magnitudes of one binade whose logarithms are uniform, each twice: blocks of one magnitude."""
    return [math.exp(math.log(2) * (i // 2 + 0.5) / n) for i in range(2 * n)]


def gains(center):
    """256 gains center + 0.02 z with z uniform-like in (-1, 1): the fractions of normal numbers."""
    return [center + 0.02 * math.fmod(z, 1) for z in normal(512)[:256]]


def llama2c_as_safetensors(data):
    """llama2.c's first layout (28 bytes of header, then the matrices one after another) with the
    header of a safetensors file before it. What follows the weights are tables of rotary angles."""
    layers = range(5)
    shapes = {"tok_embeddings.weight": [512, 64]}
    for name, *shape in [("attention_norm", 64), ("attention.wq", 64, 64), ("attention.wk", 32, 64),
                         ("attention.wv", 32, 64), ("attention.wo", 64, 64), ("ffn_norm", 64),
                         ("feed_forward.w1", 172, 64), ("feed_forward.w2", 64, 172), ("feed_forward.w3", 172, 64)]:
        shapes.update({f"layers.{i}.{name}.weight": shape for i in layers})
    shapes["norm.weight"] = [64]
    header, at = {}, 0
    for name, shape in shapes.items():
        end = at + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data[28:28 + at]


def checkpoints(folder):
    """{name: path} of the public checkpoints in a folder, by their SHA-256 in the manifest."""
    rows = [line.split("\t") for line in (SOURCE / "datasets/manifest.tsv").read_text().splitlines()]
    manifest = {row[0]: row for row in rows}
    files = [f for f in [*folder.glob("*"), *folder.glob("*/*")]
             if f.is_file() and not f.is_symlink() and f.stat().st_size <= 16000 * 1024]
    sums = {hashlib.sha256(f.read_bytes()).hexdigest(): f for f in files}
    found = {}
    for name in CHECKPOINTS:
        if manifest[name][3] in sums:
            found[name] = (manifest[name][1], sums[manifest[name][3]])
        else:
            print(f"{name} is not in {folder}; datasets/fetch.sh gets it", file=sys.stderr)
    return found


def rms_norm_of_embedding(file):
    """What enters the first attention layer of stories260k for each of the 512 tokens of the
    vocabulary: the embedding over its RMS, times the gains."""
    data = file.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    values = floats(data[start:start + 513 * 256])
    rows = [values[at:at + 64] for at in range(0, 512 * 64, 64)]
    gain = values[512 * 64:]
    inputs = []
    for row in rows:
        rms = math.sqrt(sequential_sum(x * x for x in row) / 64 + 1e-5)
        inputs += [x / rms * g for x, g in zip(row, gain)]
    return inputs


# ---- figures that mx does not measure ----

def sequential_sum(values):
    """The sum in the order given (sum() of later versions of Python compensates)."""
    total = 0.0
    for value in values:
        total += value
    return total


def within(m):
    """P(|X| < m) of a standard normal X."""
    return math.erf(m / math.sqrt(2))


def overflow(start, end):
    """The share of normal numbers beyond `start` in blocks of 32 whose maximum lies between it and
    `end`, in any binade."""
    share = 0.0
    for e in range(-12, 6):
        low, high = within(start * 2.0**e), within(end * 2.0**e)
        share += (high - low) * high**31
    return share


def common_and_largest(values, columns):
    """Of a matrix: the share of its energy that the means of its columns hold, and the median over
    blocks of 32 rows (of whole ones) of what the largest element holds."""
    rows = len(values) // columns
    energy, means, shares = 0.0, 0.0, []
    for column in range(columns):
        squares = [x * x for x in values[column::columns]]
        energy += sequential_sum(squares)
        means += sequential_sum(values[column::columns]) ** 2 / rows
        for at in range(0, rows - rows % 32, 32):
            block = squares[at:at + 32]
            shares.append(max(block) / sequential_sum(block))
    return means / energy, statistics.median_low(shares)


def six_digits(x):
    """Figures computed here are printed with six digits, as in the published tables."""
    return float(f"{x:.6g}")


# ---- running mx, and tables over many inputs ----

class Reproduction:
    """One run: the program, its inputs, and what is printed. Files lie in the current folder."""

    def __init__(self, program, real, out=sys.stdout):
        self.program = program
        self.real = real  # names of the files of public checkpoints
        self.out = out
        # The inputs of a table by the names of its columns. syn-w, syn-a, syn-g and syn-n are
        # weights, activations, gradients and norms of one synthetic checkpoint; norms of others have
        # names that begin with n-.
        self.inputs = ["normal", "syn-w", "syn-a", "syn-g", *real]
        self.documents = {}  # JSON of the last run over the inputs

    def say(self, *lines):
        print(*lines, sep="\n", file=self.out, flush=True)

    def part(self, title):
        self.say(f"\n\n==== {title}")

    def mx(self, *arguments):
        """The standard output of a command that must succeed."""
        done = subprocess.run([self.program, *map(str, arguments)], stdout=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, text=True)
        if done.returncode:
            raise SystemExit(f"exit code {done.returncode}: mx {shlex.join(map(str, arguments))}")
        return done.stdout

    def show(self, *arguments, without=None):
        """Prints a command as the pages do, and what it prints; `without` is a pattern of lines."""
        self.say("\n$ mx " + " ".join(f"'{a}'" if re.search("[* ]", a) else a for a in map(str, arguments)))
        text = self.mx(*arguments)
        if without:
            text = re.sub(without, "", text, flags=re.MULTILINE | re.DOTALL)
        print(text, end="", file=self.out, flush=True)

    def arguments(self, name):
        """An input of mx: a file, and the tensors to use."""
        if name.startswith("n-"):
            file = name[2:]
            if file == "layernorm":
                file += ".safetensors"
            if file.startswith("magika"):
                return [file, "--tensor", "model/layer_normalization/Reshape:0",
                        "--tensor", "model/layer_normalization_1/mul/*"]
            return [file, "--role", "norm"]
        if name == "normal":
            return ["normal.bin", "--dtype", "F32", "--shape", "256x4096"]
        roles = {"syn-w": "weight", "syn-a": "activation", "syn-g": "gradient", "syn-n": "norm"}
        if name in roles:
            return ["small.safetensors", "--role", roles[name]]
        if name.startswith("magika"):
            return [name, "--tensor", "*MatMul*", "--tensor", "*Tensordot/ReadVariableOp*"]
        return [name, "--role", "weight,embedding"]

    def over(self, command, *arguments, quietly=False):
        """`mx COMMAND` of every input with these arguments."""
        if not quietly:
            self.say(f"\n$ mx {command} INPUT {' '.join(arguments)}")
        for name in self.inputs:
            self.documents[name] = self.document(command, *self.arguments(name), *arguments)

    def document(self, command, *arguments):
        """The JSON that a command writes."""
        self.mx(command, *arguments, "--json", "results.json", "--quiet")
        return json.loads(Path("results.json").read_text())

    def table(self, cells, scale, form):
        """A table of values times `scale`: {(row, input): value}, rows in their first order."""
        rows = list(dict.fromkeys(row for row, _ in cells))
        wide = max(map(len, rows), default=0)
        names = [re.sub("260k.*|-dt.*|-begonly.*|[.][a-z].*", "", re.sub("^n-", "", name))[:8]
                 for name in self.inputs]
        self.say(" " * wide + "".join(f" {name:>8}" for name in names))
        for row in rows:
            values = [cells.get((row, name)) for name in self.inputs]
            self.say(f"{row:<{wide}}" + "".join(
                " " + ("-" if value is None else form % (value * scale)).rjust(8) for value in values))

    def pick(self, title, figure, scale, form, only=""):
        """A figure of the last sweep's ranking, by recipe and input."""
        self.say("", title)
        self.table({(cell["recipe"], name): cell[figure]
                    for name in self.inputs for cell in self.documents[name]["ranking"]}, scale, form)

    def mean(self, title, figure, scale, form, weight=lambda f: 1):
        """Of the last run, the mean over tensors (and seeds) of what `figure` makes of a record, with
        every tensor counted as often as `weight` says."""
        self.say("", title)
        cells = {}
        for name in self.inputs:
            sums = {}
            for record in self.documents[name]["results"]:
                if record["nrmse"] is None:
                    continue
                f = {key: 0 if value is None else value for key, value in record.items()}
                total = sums.setdefault(re.sub(",seed=[0-9]*", "", f["recipe"]), [0, 0.0])
                total[0] += weight(f)
                total[1] += weight(f) * figure(f)
            cells.update({(recipe, name): six_digits(total / n) if n else None for recipe, (n, total) in sums.items()})
        self.table(cells, scale, form)

    def phase(self, element, first, second):
        """R-MSE under the second recipe over that under the first, as the tensors are and over the
        sixteen phases."""
        rules = ",".join(recipe.partition("scale=")[2] or "floor" for recipe in (first, second))
        self.over("compare", "--element", element, "--scale", rules, "--phase-sweep")
        self.say("", f"R-MSE of {second} over that of {first}")
        cells = {}
        for name in self.inputs:
            contest = self.documents[name]["phase"]["groups"][0]["contest"]  # of all tensors
            win, least, greatest = contest["win"], contest["least_ratio"], contest["greatest_ratio"]
            ratios = [six_digits(1 + win), least, greatest]
            if contest["best"] != first:
                ratios = [six_digits(1 / x) for x in (1 + win, greatest, least)]
            for row, ratio in zip(("as they are", "least over the phases", "greatest over the phases"), ratios):
                cells[row, name] = ratio
        self.table(cells, 1, "%.4f")

    def layers(self, *arguments):
        arguments = [*arguments, "--element", "e2m1", "--scale", "floor,ceil,even,rceil", "--layers"]
        self.show("compare", *arguments, "--json", "layers.json", "--quiet")
        table = re.search(r"^layer .*?^$", self.mx("compare", *arguments) + "\n", re.MULTILINE | re.DOTALL)
        self.say(table[0])
        for row in json.loads(Path("layers.json").read_text())["series"]:
            self.say(f"{row['recipe']:<20} R-MSE over rms, %:" + "".join(f" {100 * x:6.3f}" for x in row["nrmse"]))

    def stages(self, *arguments):
        """The lines of a table of stages: stage, transform, source, then figures of its first model."""
        self.show("layer", *arguments, "--json", "stages.json", "--quiet")
        document = json.loads(Path("stages.json").read_text())
        figures = {"total_nrmse": "error", "expected_nrmse": "indep.", "total_gain": "gain",
                   "total_bias_share": "bias %", "total_cosine": "cosine", "nrmse_a": "err. A",
                   "nrmse_b": "err. B", "gain_a": "gain A", "gain_b": "gain B"}
        self.say(f"{'stage':<6} {'transform':<16} {'operands':<11}" +
                 "".join(f" {title:>7}" for title in figures.values()))
        seen = set()
        for row in document["results"]:
            key = row["stage"], row["transform"], row["source"]
            if key in seen:
                continue
            seen.add(key)
            values = [row[name] or 0 for name in figures]
            self.say(f"{key[0]:<6} {key[1]:<16} {key[2]:<11}" + "".join(
                f" {100 * x:7.2f}" if name == "total_bias_share" else f" {x:7.4f}"
                for name, x in zip(figures, values)))
        verdict = re.search(r'^"verdict":.*?^\].*?$', Path("stages.json").read_text(), re.MULTILINE | re.DOTALL)
        self.say(verdict[0])

    def energy(self, title, values, columns):
        means, largest = common_and_largest(values, columns)
        self.say("", title, f"means {means:.4f}", f"largest {largest:.6f}")


# ---- docs/reproduce/yang.md ----

def yang(r):
    r.part("Element formats at equal width")
    r.over("compare", "--element", "e4m3,e5m2,int8,e2m3,e3m2,e2m1,e3m0,int4", "--scale", "even")
    r.pick("SQNR, dB", "sqnr_db", 1, "%.2f")

    r.part("Scale rules")
    for element in "e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "e3m0", "int8":
        r.over("compare", "--element", element, "--scale", "floor,ceil,even,rceil")
        r.pick("R-MSE over that of floor", "rmse_ratio", 1, "%.4f")
        r.pick("Tensors in which no rule has a smaller R-MSE", "wins", 1, "%.0f")
        if element in ("e4m3", "e2m1", "e3m0"):
            r.pick("Elements that overflow, %", "overflow_rate", 100, "%.2f")

    r.part("Scale rules on standard normal numbers")
    r.show("analyze", "normal.bin", "--dtype", "F32", "--shape", "256x4096", "-r", "mxfp4", "-r",
           "mxfp4:scale=ceil", "-r", "mxfp4:scale=even", "-r", "mxfp4:scale=rceil", "--decompose")

    r.part("Standard normal numbers that overflow under even, %: the closed form for blocks of 32")
    r.say(f"e2m1 {100 * overflow(1.5, 1.75):.3f}", f"e3m0 {100 * overflow(1, 1.5):.3f}")

    r.part("Block maxima of uniform logarithms that overflow")
    everything, r.inputs = r.inputs, ["loguniform"]
    for element in "e2m1", "e2m3", "e3m2", "e4m3", "e5m2", "int8", "e3m0":
        document = r.document("compare", "loguniform.bin", "--dtype", "F32", "--shape", "131072", "--element",
                              element, "--scale", "floor,ceil,even,rceil", "--block", "1x2")
        wide = max(len(cell["recipe"]) for cell in document["ranking"])
        for cell in document["ranking"]:
            r.say(f"{cell['recipe']:<{wide}} {100 * cell['overflow_rate']:8.2f}")
    r.inputs = everything

    r.part("Rounding")
    for element in "e4m3", "e2m1":
        r.over("compare", "--element", element, "--scale", "rceil", "--round", "rtne,stochastic", "--draws", "8")
        r.pick("R-MSE over that of rtne", "rmse_ratio", 1, "%.4f")
        r.pick("Half-width of its 95 % interval", "rmse_ratio_interval", 1, "%.5f")
        r.mean("Mean of abs(gain - 1), %", lambda f: abs(f["gain"] - 1), 100, "%.3f")
        r.mean("Mean of abs(mean_error) over rms, %", lambda f: abs(f["mean_error"]) / f["rms"], 100, "%.4f")

    r.part("Symmetric and asymmetric")
    for element in "e4m3", "e2m1", "int4":
        r.over("compare", "--element", element, "--scale", "even", "--offset", "none,fp16")
        r.pick("R-MSE over that of symmetric", "rmse_ratio", 1, "%.4f")
    r.pick("Bits per element", "bits_per_element", 1, "%.3f")

    r.part("Block size and organisation")
    for recipe in "mxfp8:scale=even", "mxfp8:scale=rceil", "mxfp4:scale=even":
        r.over("compare", "-r", recipe, "--block", "1x8,1x16,1x32,1x64,1x128,32x1,8x4,4x8,4x4,16x16",
               "--baseline", recipe)
        r.pick("R-MSE over that of 1x32", "rmse_ratio", 1, "%.4f")
        r.pick("Bits per element", "bits_per_element", 1, "%.3f")

    r.part("INT4")
    r.over("compare", "-r", "mxint4", "-r", "mxint4:int_emax=log2max", "-r", "mxint4:int_emax=1", "--scale",
           "floor,ceil,even,rceil", "--baseline", "mxint4")
    r.pick("R-MSE over that of floor with int_emax=0", "rmse_ratio", 1, "%.4f")
    r.pick("Elements that overflow, %", "overflow_rate", 100, "%.2f")

    r.part("Layer by layer")
    r.layers("small.safetensors", "--tensor", "model*down_proj.weight")
    if "stories260k.safetensors" in r.real:
        r.layers("stories260k.safetensors", "--tensor", "*w2.weight")

    r.part("Scale phase")
    r.phase("e2m1", "mxfp4:scale=even", "mxfp4")
    r.phase("e2m1", "mxfp4:scale=even", "mxfp4:scale=rceil")
    r.phase("e2m1", "mxfp4", "mxfp4:scale=rceil")
    r.phase("e4m3", "mxfp8:scale=rceil", "mxfp8:scale=even")
    r.phase("e4m3", "mxfp8:scale=rceil", "mxfp8")


# ---- docs/reproduce/su.md ----

def of_blocks(f):
    return f["eligible_blocks"]


def su(r):
    def percent(figure):
        return lambda f: f[figure]

    r.part("A block of one value")
    r.show("cluster", "block099.bin", "--dtype", "F32", "--shape", "32")
    r.show("analyze", "block099.bin", "--dtype", "F32", "--shape", "32", "-r", "mxfp8", "-r", "mxfp4", "-r",
           "mxfp8:scale=rceil", "-r", "mxfp4:scale=rceil")

    r.part("The thresholds: 31 times the value named, once 0.95")
    everything = r.inputs
    r.inputs = ["0.90626", "0.90625", "0.84375", "0.84374", "0.81251", "0.8125", "0.62501", "0.625"]
    for value in r.inputs:
        Path("edge.bin").write_bytes(f32([float(value)] * 31 + [0.95]))
        r.documents[value] = r.document("cluster", "edge.bin", "--dtype", "F32", "--shape", "32", "-r", "mxfp8",
                                        "-r", "mxfp8_e5m2", "-r", "mxfp6", "-r", "mxfp6_e3m2", "-r", "mxfp4")
    r.mean("Share of the blocks that saturate", percent("saturated_block_rate"), 1, "%.0f")

    everything = [*everything, "syn-n"]
    norms = ["syn-n", "n-layernorm", *(f"n-{file}" for file in r.real
                                       if file.startswith(("stories", "minigrid", "magika")))]
    r.inputs = norms

    r.part("Norms: which blocks saturate")
    r.over("cluster", "-r", "mxfp8", "-r", "mxfp8_e5m2", "-r", "mxfp6", "-r", "mxfp6_e3m2", "-r", "mxfp4", "-r",
           "mxfp8:scale=even", "-r", "mxfp4:scale=even", "-r", "mxfp8:scale=rceil", "-r", "mxfp4:scale=rceil")
    r.mean("Blocks that saturate, %", percent("saturated_block_rate"), 100, "%.2f", of_blocks)
    r.mean("Blocks in which every element overflows, %", percent("certain_overflow_block_rate"), 100, "%.2f",
           of_blocks)
    r.mean("Blocks whose maximum overflows, %", percent("clamp_zone_block_rate"), 100, "%.2f", of_blocks)
    r.mean("What saturated blocks are multiplied by", percent("saturated_block_gain"), 1, "%.4f",
           lambda f: of_blocks(f) * f["saturated_block_rate"])
    r.mean("Elements with the largest code, %", percent("top_code_rate"), 100, "%.2f", percent("elements"))

    r.part("Norms: what fixes them")
    for file in r.real:
        if file.startswith("magika"):
            r.show("cluster", *r.arguments(f"n-{file}"))
    for preset in "mxfp8", "mxfp4":
        r.over("cluster", "-r", preset, *(word for change in ("scale=rceil", "scale=floor-bump", "scale=even",
                                                              "block=1x16", "block=1x8", "offset=fp16")
                                          for word in ("-r", f"{preset}:{change}")))
        r.mean("R-MSE over rms, %, mean over tensors", percent("nrmse"), 100, "%.3f")
        r.mean("sum(x d) / sum(x^2), mean over tensors", percent("gain"), 1, "%.4f")
        r.mean("Blocks that saturate, %", percent("saturated_block_rate"), 100, "%.2f", of_blocks)
    r.inputs = everything

    r.part("The last bin of weights, activations and gradients")
    for element in "e4m3", "e5m2", "e2m3", "e3m2", "e2m1":
        r.over("compare", "--element", element, "--scale", "floor,even,rceil")
        r.pick("Elements that overflow, %", "overflow_rate", 100, "%.2f")
        r.mean("Elements with the largest code, %", percent("top_code_rate"), 100, "%.2f", percent("elements"))

    r.part("Gains that drift")
    # Made by hand: c grows by 0.02 in a hundred steps, or falls by 0.01 through 1.
    steps = range(0, 700, 100)
    for way, start, slope in ("rise", 0.78, 0.0002), ("fall", 1.04, -0.0001):
        for step in steps:
            Path(f"{way}{step}.bin").write_bytes(f32(gains(round(start + slope * step, 6))))
    for way in "rise", "fall":
        r.show("diff", *(f"{way}{step}.bin" for step in steps), "--dtype", "F32", "--shape", "256",
               "--role-pattern", "norm=*", "-r", "mxfp8", "--json", f"{way}.json",
               without="^1 of 1 tensor.*?^All tensors[^\n]*\n")
        text = Path(f"{way}.json").read_text()
        series = re.search(r'^"series":.*?^\]', text, re.MULTILINE | re.DOTALL)[0]
        for figure in "clamp_zone_blocks", "clamp_zone_distance", "saturated_block_rate":
            for values in re.findall(rf'"{figure}":\[([^]]*)\]', series):
                r.say(f"{figure} {values}")
        findings = re.search(r'^"findings":.*?^\]', text, re.MULTILINE | re.DOTALL)[0]
        for values in re.findall(r'"clamp_zone_distance":\[([^]]*)\]', findings):
            r.say(f"distance to the zone ahead {values}")
    r.show("diff", "small.safetensors", "small1.safetensors", "-r", "mxfp8", "--role", "norm",
           without="^The 10 of.*?^All tensors[^\n]*\n")

    r.part("Hadamard rotations")
    for size in "32", "128":
        r.over("compare", "-r", "mxfp8:scale=even", "-r", "mxfp4:scale=even", "--transform",
               "none,hadamard,random-hadamard", "--transform-size", size, "--baseline", "mxfp8:scale=even")
        r.pick("R-MSE over that of mxfp8:scale=even", "rmse_ratio", 1, "%.4f")
        r.pick("SQNR, dB", "sqnr_db", 1, "%.2f")
        r.mean("Crest factor, mean over tensors", percent("crest_factor"), 1, "%.2f")
    r.inputs = norms
    r.over("cluster", *(word for preset in ("mxfp8", "mxfp4")
                        for change in ("", ":transform=hadamard", ":transform=random-hadamard")
                        for word in ("-r", preset + change)))
    r.mean("Blocks that saturate, %", percent("saturated_block_rate"), 100, "%.2f", of_blocks)
    r.mean("R-MSE over rms, %, mean over tensors", percent("nrmse"), 100, "%.3f")
    r.mean("Crest factor, mean over tensors", percent("crest_factor"), 1, "%.2f")


# ---- docs/reproduce/stages.md ----

def linear_layers(r):
    r.part("Stages of a synthetic layer")
    r.mx("synth", "--preset", "linear", "--dtype", "f32", "-o", "linear.safetensors", "--quiet")
    x, w, dy = (f"linear.safetensors:{name}" for name in
                ("activations.linear.input", "model.linear.weight", "gradients.linear.output"))
    r.energy("dY: energy in the channels' means, and of blocks in their largest element",
             floats(Path("linear.safetensors").read_bytes()[-512 * 688 * 4:]), 688)
    for recipe in "mxfp4", "mxfp4:scale=even", "mxfp8", "nvfp4":
        r.stages("--x", x, "--w", w, "--dy", dy, "-r", recipe)
    r.stages("--x", x, "--w", w, "--dy", dy, "-r", "mxfp4:scale=even", "--recipe-dy",
             "mxfp4:scale=rceil,round=stochastic")
    r.stages("--x", x, "--w", w, "--dy", dy, "-r", "mxfp4:scale=even", "--transform-size", "128", "--once")
    for recipe in "mxfp4", "mxfp4:scale=even":
        r.stages("--x", x, "--w", w, "--dy", dy, "-r", recipe, "--transform-size", "16", "--once")

    if "stories260k.safetensors" not in r.real:
        return
    r.part("Stages of a real layer")
    inputs = f32(rms_norm_of_embedding(Path("stories260k.safetensors")))
    Path("inputs.bin").write_bytes(inputs)
    r.energy("X: energy in the channels' means, and of blocks in their largest element", floats(inputs), 64)
    for layer, rows in ("wq", 64), ("wk", 32), ("wv", 32):
        w = f"stories260k.safetensors:layers.0.attention.{layer}.weight"
        given = ["--shape-a", "512x64", "--dtype", "F32", "--transpose-b", "-r", "none", "-m", "exact"]
        # The gradient of |Y - Y(W)|^2 / 2 for a Y computed with quantized weights.
        r.show("quantize", "stories260k.safetensors", "--tensor", f"layers.0.attention.{layer}.weight", "-r",
               "mxfp4", "-o", "quantized.npy", "--quiet")
        r.show("gemm", "inputs.bin", w, *given, "-o", "outputs.npy", "--quiet")
        r.show("gemm", "inputs.bin", "quantized.npy", *given, "--c", "outputs.npy", "--beta", "-1", "-o",
               "gradient.npy", "--quiet")
        r.energy("Its energy in the channels' means, and of blocks in their largest element",
                 floats(Path("gradient.npy").read_bytes()[-512 * rows * 4:]), rows)
        for recipe in "mxfp4", "mxfp4:scale=even":
            for size in [], ["--transform-size", "16", "--once"]:
                r.stages("--x", "inputs.bin", "--shape-x", "512x64", "--dtype", "F32", "--w", w, "--dy",
                         "gradient.npy", "-r", recipe, *size)


def study_commands(folder=SOURCE / "docs/reproduce"):
    """{page: commands} of the pages that say what study they are of, by its budget."""
    pages = {page.name: re.findall(r"^    (mx study .*--budget .*)$", page.read_text(), re.MULTILINE)
             for page in sorted(folder.glob("*.md"))}
    return {page: commands for page, commands in pages.items() if commands}


def studies(r):
    for page, commands in study_commands().items():
        r.part(page)
        for command in commands:
            r.show(*shlex.split(command)[1:])


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", nargs="?", default="", help="where public checkpoints lie")
    parser.add_argument("mx", metavar="MX", nargs="?", type=Path, default=SOURCE / "build/release/mx",
                        help="the program (build/release/mx)")
    parser.add_argument("--studies", action="store_true", help="train the studies, and nothing else")
    options = parser.parse_args(arguments)
    program = options.mx.resolve()
    if not os.access(program, os.X_OK) or program.is_dir():
        parser.exit(3, f"no program {program}; build it first\n")
    if options.folder and not os.path.isdir(options.folder):
        parser.exit(3, f"{options.folder} is not a folder\n")
    os.environ["LC_ALL"] = "C"
    found = checkpoints(Path(options.folder).resolve()) if options.folder else {}
    work = SOURCE / "build" / "reproduce"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    os.chdir(work)
    real = []
    for name, (file, path) in found.items():
        if name == "stories260k":
            file = f"{name}.safetensors"
            Path(file).write_bytes(llama2c_as_safetensors(path.read_bytes()))
        else:
            Path(file).symlink_to(path)
        real.append(file)

    r = Reproduction(program, real)
    if options.studies:
        studies(r)
        return 0
    Path("normal.bin").write_bytes(f32(normal(1048576)))
    Path("loguniform.bin").write_bytes(f32(log_uniform(65536)))
    Path("block099.bin").write_bytes(f32([0.99] * 32))
    for preset in "small", "layernorm":
        r.mx("synth", "--preset", preset, "--dtype", "f32", "-o", f"{preset}.safetensors", "--quiet")
    r.mx("synth", "--preset", "small", "--dtype", "f32", "--seed", "1", "-o", "small1.safetensors", "--quiet")
    yang(r)
    su(r)
    linear_layers(r)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
