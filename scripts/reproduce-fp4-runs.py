#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantization error against the loss of 574 public FP4 trainings: the tables of docs/reproduce/fp4-runs.md.

The runs are those of Quartet II (Llamas of 30 to 200 million parameters on C4). Their table has no licence, so
it is fetched, checked by its SHA-256, and not part of this repository. A gap is a final loss minus that of the
BF16 run of the same size and tokens. Errors are relative: sum (q - x)^2 / sum x^2. Each quantizer of the
runs' forward pass is written here once more, in float64; where mx has the recipe, its error must agree.
Needs numpy.

    scripts/reproduce-fp4-runs.py build/release/mx --runs runs.json --dump l/dump-000500.safetensors
"""
import argparse
import collections
import hashlib
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import urllib.request

import numpy as np

ADDRESS = "https://raw.githubusercontent.com/IST-DASLab/Quartet-II/8776a90b7aa0c0a400ad858a3c05a66f7ec55b73/for_plots/runs.json"
SHA256 = "4248c6262c26556c84b01aa4e1aea3d375bad0e1ae0479c61ea7fbce3fa722fd"
POINT = (100e6, 50)  # parameters of a model and tokens for each at which gaps are compared

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("mx", type=pathlib.Path)
parser.add_argument("--runs", type=pathlib.Path, help="runs.json, fetched if it is not there")
parser.add_argument("--dump", type=pathlib.Path, action="append", default=[],
                    help="operands NAME.x and NAME.weight, as mx train --dump and mx eval --dump write them")
parser.add_argument("--csv", type=pathlib.Path, help="write the runs as a table for mx study scaling-law")


# ---- the runs ----

def runs_of(path):
    if path is None or not path.exists():
        data = urllib.request.urlopen(ADDRESS, timeout=60).read()
        if path is not None:
            path.write_bytes(data)
    else:
        data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256:
        sys.exit(f"reproduce-fp4-runs: {path or ADDRESS} is not the table of commit 8776a90")
    return json.loads(data)


def point_of(run):
    """Size, and tokens for each parameter as a power of two: those of the sweep."""
    return run["Nstr"], round(math.log2(run["D/N"] / 25))


def setting_of(group, run):
    """What a run does, but for its size: members with an effect."""
    idle = {"Nstr", "N", "D", "D/N", "bops", "final_loss"}
    return (group,) + tuple((k, v) for k, v in run.items() if k not in idle)


def gaps_of(runs):
    """By setting: N, D/N and the gap of each run; and the spread of runs that were repeated."""
    base = collections.defaultdict(list)
    for run in runs["baseline"]:
        base[point_of(run)].append(run["final_loss"])
    gaps, repeated = collections.defaultdict(list), collections.defaultdict(list)
    for group, all_runs in runs.items():
        for run in all_runs if group != "baseline" else ():
            known = base.get(point_of(run))
            if known:
                gaps[setting_of(group, run)].append((run["N"], run["D/N"], run["final_loss"] - np.mean(known)))
            repeated[setting_of(group, run), point_of(run)].append(run["final_loss"])
    spread = [np.var(v, ddof=1) for v in repeated.values() if len(v) > 1]
    return gaps, len(spread), math.sqrt(np.mean(spread))


def t_quantile(degrees):
    """97.5 % of Student's distribution, by Cornish and Fisher's expansion: off by under 0.1 % from 8 degrees on."""
    z = 1.959963985
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2) \
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)


class Law:
    """ln gap = ln c + n ln(N / 100e6) + d ln(D / N / 50) by least squares; intervals of 95 %. Without one for
    fewer than ten runs, and where a gap is not positive: then only the mean of all gaps is known."""

    def __init__(self, points):
        a = np.array(points)
        self.runs = len(a)
        self.mean = a[:, 2].mean()
        self.mean_half = t_quantile(len(a) - 1) * a[:, 2].std(ddof=1) / math.sqrt(len(a))
        self.why_not = "a gap is not positive" if a[:, 2].min() <= 0 else "few runs" if len(a) < 10 else ""
        if self.why_not:
            return
        x = np.c_[np.ones(len(a)), np.log(a[:, 0] / POINT[0]), np.log(a[:, 1] / POINT[1])]
        y = np.log(a[:, 2])
        self.at, *_ = np.linalg.lstsq(x, y, rcond=None)
        rest = y - x @ self.at
        covariance = np.linalg.inv(x.T @ x) * (rest @ rest) / (len(a) - 3)
        self.half = t_quantile(len(a) - 3) * np.sqrt(np.diag(covariance))

    @property
    def gap(self):
        return math.exp(self.at[0])

    def cells(self):
        if self.why_not:
            return [self.why_not, "", ""]
        low, high = (math.exp(self.at[0] + s * self.half[0]) for s in (-1, 1))
        exponents = [f"{v:+.2f} ± {h:.2f}" for v, h in zip(self.at[1:], self.half[1:])]
        return [f"{self.gap:.4f} ({low:.4f} to {high:.4f})", *exponents]


# ---- the quantizers of the forward pass ----

E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6])


def to_e2m1(y):
    """To the nearest; halfway to the even code, as mx does."""
    borders = (E2M1[1:] + E2M1[:-1]) / 2
    magnitude = np.abs(y)
    code = np.searchsorted(borders, magnitude)
    tie = (code < 7) & (magnitude == borders[np.minimum(code, 6)]) & (code % 2 == 1)
    return np.sign(y) * E2M1[code + tie]


def to_e4m3(s):
    s = np.minimum(s, 448)
    quantum = 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(s, 2.0**-9))), -6) - 3)
    return np.minimum(np.round(s / quantum) * quantum, 448)


def blocks_of(x, square):
    if not square:
        return x.reshape(-1, 16)
    rows, cols = x.shape
    return x.reshape(rows // 16, 16, cols // 16, 16).transpose(0, 2, 1, 3).reshape(-1, 256)


def rotated(x):
    """16 by 16 Hadamard matrices along the rows."""
    h = np.array([[1.0]])
    for _ in range(4):
        h = np.block([[h, h], [h, -h]])
    return (x.reshape(-1, 16) @ (h / 4)).reshape(x.shape)


def error_of(x, square=False, over=1.0, two=False, rms=False, hadamard=False):
    """Relative squared error. `over`: the largest element becomes 6 / over; `two`: the better of two scales
    for each block; `rms`: the scale is 2.92 / 6 of the block's root mean square, and elements are clipped."""
    b = blocks_of(rotated(x) if hadamard else x, square)

    def quantized(inner, outer):
        s = to_e4m3(inner / outer) * outer
        return to_e2m1(b / np.where(s == 0, 1, s)) * s

    if rms:
        inner = np.sqrt((b**2).mean(-1, keepdims=True)) * 2.92247856 / 6
        q = quantized(inner, inner.max() / 256)
    else:
        inner = np.abs(b).max(-1, keepdims=True) / (6 / over)
        outer = inner.max() / (256 if two else 448)
        q = quantized(inner, outer)
        if two:
            other = quantized(1.5 * inner, outer)
            better = ((other - b)**2).sum(-1, keepdims=True) < ((q - b)**2).sum(-1, keepdims=True)
            q = np.where(better, other, q)
    return float(((q - b)**2).sum() / (b**2).sum())


# A name; how its runs are found; the quantizer of both operands, `square` that of weights alone; its recipes in mx.
ROTATED = ",transform=hadamard,transform_size=16"
FORWARD = [
    ("1x16, four over six", dict(square=False, hadamard=1, two=True), dict(two=True), "nvfp4:four_over_six=mse"),
    ("1x16", dict(square=False, hadamard=1), {}, "nvfp4"),
    ("1x16, maximum to 6.52", dict(square=False, hadamard=1, over=.92), dict(over=.92), ""),
    ("1x16, rotated", dict(square=False, hadamard=16), dict(hadamard=True), "nvfp4:" + ROTATED[1:]),
    ("weights 16x16, four over six", dict(square=True, hadamard=1, two=True), dict(square=True, two=True),
     "nvfp4:block=16x16,four_over_six=mse"),
    ("weights 16x16", dict(square=True, hadamard=1), dict(square=True), "nvfp4:block=16x16"),
    ("weights 16x16, rotated", dict(square=True, hadamard=16), dict(square=True, hadamard=True), ""),
    ("scale by RMS", dict(group="forward_quartet", hadamard=1), dict(rms=True), ""),
    ("scale by RMS, rotated", dict(group="forward_quartet", hadamard=16), dict(rms=True, hadamard=True), ""),
]


def is_of(setting, group="forward_main", hadamard=1, square=None, two=False, over=1):
    s = dict(setting[1:])
    return setting[0] == group and s["fhadamard_dim"] == hadamard and s["fsquare"] == square and \
        bool(s["ffour_over_six"]) == two and s["fscale_override"] == over


PRODUCTS = {"EW_Q(Et)Q(Xt)t": "Wgrad", "Q(E)Q(Wt)t_EtX": "Dgrad", "Q(E)Q(Wt)t_Q(Et)Q(Xt)t": "both",
            "Q(E)W_EtX": "Dgrad, dY alone", "Q(E)W_Q(Et)Q(Xt)t": "both, but not Dgrad's W"}
ROUNDINGS = {"sr": "stochastic", "eden": "MS-EDEN", "no": "nearest"}


def backward_words(setting):
    s = dict(setting[1:])
    words = [PRODUCTS[s["bbackward_scheme"]]]
    if s["bquant"] == "AlbertTsengQuantizer":
        which = "first" if setting[0].startswith("orig") else "mended"
        words += [f"MXFP4 as Tseng et al., {which}", "stochastic" if s["bstochastic"] else "nearest"]
    else:
        words += [{"e4m3": "NVFP4", "e8m0": "MXFP4"}[s["bscale_dtype"]], ROUNDINGS[s["bunbiased"]]]
    return words + [str(s["bhadamard_dim"] if s["bhadamard_dim"] != 1 else "none")]


def scheme_words(setting):
    s = dict(setting[1:])
    name = {"quartet_v2": "Quartet II", "nvidia": "NVIDIA", "tetrajetv2": "TetraJet-v2"}[s["sscheme"]]
    return [name + (", four over six" if s["sfour_over_six"] else "") + (", delayed amax" if s["sdelayed_amax"] else ""),
            str(s["shadamard_dim"])]


# ---- operands ----

def safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    for name, t in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and t["dtype"] == "F32":
            a, b = t["data_offsets"]
            yield name, np.frombuffer(data[8 + size + a:8 + size + b], "<f4").reshape(t["shape"])


def operands_of(path):
    """Weights, and inputs, of the linear layers of blocks: matrices whose sides are multiples of 16."""
    all_of = {n: t.reshape(-1, t.shape[-1]).astype(float) for n, t in safetensors(path) if t.ndim > 1}
    layers = [n[:-2] for n in all_of if n.endswith(".x") and n[:-2] + ".weight" in all_of and "layers." in n]
    fit = [n for n in layers if all(s % 16 == 0 for s in all_of[n + ".weight"].shape)]
    return [all_of[n + ".weight"] for n in fit], [all_of[n + ".x"] for n in fit]


def check(mx, x, quantizer, recipe):
    """That mx finds the same error."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "x.npy")
        np.save(path, x.astype("<f4"))
        out = subprocess.run([mx, "analyze", path, "-r", recipe, "--json", "-", "-q"], check=True, stdout=subprocess.PIPE)
    found = json.loads(out.stdout)["results"][0]["nrmse"] ** 2
    expected = error_of(x, **quantizer)
    if abs(found / expected - 1) > 2e-4:
        sys.exit(f"reproduce-fp4-runs: {recipe}: mx {found:.7g}, this script {expected:.7g}")


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|---" * len(head) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def predict(errors, forward):
    """Each gap from the others: a gap is proportional to the sum of both errors."""
    rows, misses = [], []
    names = list(forward)
    ratio = {n: forward[n].gap / sum(errors[n]) for n in names}
    for n in names:
        others = math.exp(np.mean([math.log(ratio[o]) for o in names if o != n]))
        miss = others * sum(errors[n]) / forward[n].gap - 1
        misses.append(abs(miss))
        rows.append([n, f"{errors[n][0]:.5f}", f"{errors[n][1]:.5f}", f"{ratio[n]:.2f}", f"{forward[n].gap:.4f}",
                     f"{others * sum(errors[n]):.4f}", f"{100 * miss:+.1f} %"])
    table(["forward pass", "error of weights", "of inputs", "gap / error", "gap", "predicted from the others", "off by"], rows)
    print(f"{sum(m <= .1 for m in misses)} of {len(misses)} within 10 %\n")


def main():
    args = parser.parse_args()
    runs = runs_of(args.runs)
    gaps, repeats, spread = gaps_of(runs)
    print(f"{sum(map(len, runs.values()))} runs, {len(runs['baseline'])} baselines; {repeats} were repeated, with a "
          f"deviation of {spread:.1g} nats\n")
    if args.csv:
        with args.csv.open("w") as out:
            print("recipe,N,D,loss,P_w,P_a", file=out)
            for r in runs["baseline"]:
                print(f"bf16,{r['N']},{r['D']},{r['final_loss']},,", file=out)
            for name, find, *_ in FORWARD:
                find = dict(find)
                find.setdefault("square", None)
                for r in (r for g, v in runs.items() for r in v if is_of(setting_of(g, r), **find)):
                    print(f'"{name}",{r["N"]},{r["D"]},{r["final_loss"]},4,4', file=out)

    laws = {}
    for setting, points in gaps.items():
        if len(points) > 5:
            laws[setting] = Law(points)
    forward = {}
    for name, find, quantizer, recipe in FORWARD:
        find = dict(find)
        find.setdefault("square", None)
        found = [law for s, law in laws.items() if is_of(s, **find)]
        assert len(found) == 1, (name, len(found))
        forward[name] = found[0]
    print("Gaps of the forward pass\n")
    table(["forward pass", "runs", "gap at 100 M, 50 tokens each", "exponent of N", "of D / N"],
          [[n, str(law.runs), *law.cells()] for n, law in forward.items()])

    rng = np.random.default_rng(0)
    sources = {"normal": ([rng.standard_normal((1024, 1024))], [rng.standard_normal((1024, 1024))])}
    for path in args.dump:
        sources[str(path)] = operands_of(path)
    for weights, inputs in sources.values():
        for name, _, quantizer, recipe in FORWARD:
            if recipe:
                check(args.mx, weights[0], quantizer, recipe)
    for source, (weights, inputs) in sources.items():
        each = {name: ([error_of(x, **quantizer) for x in weights],
                       [error_of(x, **{**quantizer, "square": False}) for x in inputs])
                for name, _, quantizer, _ in FORWARD}
        for middle in (np.mean, np.median) if len(weights) > 1 else (np.mean,):
            print(f"Errors of {source}: {middle.__name__} of {len(weights)} weights and {len(inputs)} inputs\n")
            predict({n: [middle(e) for e in of] for n, of in each.items()}, forward)

    print("Gaps of the backward pass, the forward pass in bf16\n")
    rest = [(s, law) for s, law in laws.items() if law not in forward.values()]
    head = ["rotation", "runs", "mean gap", "gap at 100 M, 50 tokens each", "exponent of N", "of D / N"]
    cells = [(s, [str(law.runs), f"{law.mean:.4f} ± {law.mean_half:.4f}", *law.cells()]) for s, law in rest]
    table(["quantized", "format", "rounding", *head], [[*backward_words(s), *c] for s, c in cells if not dict(s[1:])["sscheme"]])
    print("Gaps of whole schemes\n")
    table(["scheme", *head], [[*scheme_words(s), *c] for s, c in cells if dict(s[1:])["sscheme"]])


main()
