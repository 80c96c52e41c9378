#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes datasets/vectors/shared: what the authors' code of HiFloat4, RaZeR and IF4 makes of blocks. Needs a
Python with torch and numpy, and clones of
https://github.com/global-computing-consortium/HiFloat4 at 6d937b6,
https://github.com/yc2367/NVFP4-RaZeR at 82ecc9a and
https://github.com/mit-han-lab/fouroversix at dadfad6, whose code is run unchanged on the CPU."""

import argparse
import importlib
import json
import struct
import subprocess
import sys
import types
from pathlib import Path

import numpy
import torch

TO = Path(__file__).resolve().parents[1] / "datasets/vectors/shared"


def blocks(count, length, seed):
    """Blocks of one tensor: normal, at thresholds, of a wide range, on a grid with its midpoints, sparse, tiny, zero."""
    g = numpy.random.default_rng(seed)
    x = g.standard_normal((count, length))
    for i in range(count):
        kind = i % 8
        if kind == 1:  # amax / 7 near halves of quarters, where HiFloat4 rounds its scale
            largest = 7 * (1 + g.integers(0, 4) / 4 + 1 / 8) * 2.0 ** g.integers(-3, 3) * (1 + g.uniform(-1, 1) / 256)
            x[i] *= largest / abs(x[i]).max()
        elif kind == 2:
            x[i] *= 2.0 ** g.integers(-12, 8, length)
        elif kind == 3:
            x[i] = g.integers(-28, 29, length) / 4 * 2.0 ** g.integers(-4, 3)
        elif kind == 4:
            x[i] *= g.random(length) < 0.2
        elif kind == 5:
            x[i] *= 2.0 ** -g.integers(8, 30)
        elif kind == 6:  # heavy-tailed
            x[i] = g.standard_t(2, length)
        elif kind == 7 and i % 64 == 7:
            x[i] = 0
    return x.astype(numpy.float32)


def package(name, path):
    """An empty package whose modules are found in a folder, without running its __init__."""
    module = types.ModuleType(name)
    module.__path__ = [str(path)]
    sys.modules[name] = module


def hif4(clone, x):
    for name in ("quant_cy", "quant_cy.base", "quant_cy.base.QFuncs"):
        package(name, clone / "hif4_gpu" / name.replace(".", "/"))
    q = importlib.import_module("quant_cy.base.QType").QType("hifx4")
    return x, importlib.import_module("quant_cy.base.QFuncs.hifx").quant_hifx(torch.from_numpy(x), q, -1)


def clear(x):
    """Whether the best special value of a block of RaZeR is clear: its function compares sums in float32."""
    w = x.astype(numpy.float64) / (abs(x).max() / 168)
    values = []
    for special in (5.0, -5.0, 8.0, -8.0):
        grid = numpy.array(sorted([special, 0, *(s * v for s in (-1, 1) for v in (0.5, 1, 1.5, 2, 3, 4, 6))]))
        scale = torch.from_numpy(abs(w).max(1, keepdims=True) / max(6, abs(special))).float().clamp(2 ** -5, 28)
        scale = scale.to(torch.float8_e4m3fn).double().numpy()
        nearest = abs(w[:, :, None] / scale[:, :, None] - grid).argmin(2)
        values.append(grid[nearest] * scale)
    values = numpy.array(values)
    errors = ((values - w) ** 2).sum(2)
    best = values[errors.argmin(0), range(len(x))]
    found = ((errors > errors.min(0) * (1 + 1e-6)) | (values == best).all(2)).all(0)
    assert found[abs(x).max(1).argmax()]  # the tensor's largest stays
    return found


def razer(clone, x):
    package("quantize", clone / "quantize")
    quantizer = importlib.import_module("quantize.quantizer")
    value = quantizer.quant_nvfp4_razer_e3m3(torch.from_numpy(x), groupsize=16, outlier=8.0).float()
    return x[clear(x)], value[torch.from_numpy(clear(x))]


def if4(clone, x):
    for name in ("fouroversix", "fouroversix.quantize", "fouroversix.quantize.pytorch", "fouroversix.kernels"):
        package(name, clone / "src" / name.replace(".", "/"))
    utils = importlib.import_module("fouroversix.utils")
    reference = importlib.import_module("fouroversix.quantize.pytorch.reference")
    nearest, mse = utils.RoundStyle.nearest, utils.ScaleRule.mse
    t, amax = torch.from_numpy(x), torch.from_numpy(x).abs().max()
    scaled, _ = reference.compute_nv_scale_factors(
        t, amax, fp4_format=utils.DataType.if4, scale_rule=utils.ScaleRule.static_6, round_style=nearest)
    # From 7 on, under scales that E4M3 rounds far down, it gives 8, whose code it then writes as that of -0.
    x = x[(reference.fake_quantize_to_e2m1(scaled).abs() <= 6).all(1).numpy()]
    t = torch.from_numpy(x)
    _, values, scales = reference.intfloat_block_scaled_quantization(
        t, amax, scale_rule=mse, round_style=nearest, fp4_format=utils.DataType.if4)
    integer = scales.view(torch.uint8) >= 128
    scale = (scales.view(torch.uint8) & 127).view(torch.float8_e4m3fn).float()
    # Its dequantization, as the reference compares it with x.
    d = values * scale.unsqueeze(1) * amax
    return x, torch.where(integer.unsqueeze(1), d * reference.IF4_INT_EXPANSION_FACTOR, d) / (6 * 448)


def write(path, arrays, metadata):
    header, at = {"__metadata__": metadata}, 0
    for name, a in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(a.tobytes() for a in arrays.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("hifloat4", "razer", "fouroversix"):
        parser.add_argument(name, type=Path, help="clone")
    args = parser.parse_args()
    TO.mkdir(exist_ok=True)
    for recipe, clone, make, length, what in (
            ("hif4", args.hifloat4, hif4, 64, "global-computing-consortium/HiFloat4, quant_hifx of hif4_gpu"),
            ("razer", args.razer, razer, 16, "yc2367/NVFP4-RaZeR, quant_nvfp4_razer_e3m3; values in bfloat16"),
            ("if4", args.fouroversix, if4, 16, "mit-han-lab/fouroversix, intfloat_block_scaled_quantization, mse")):
        x, value = make(clone, blocks(96 if length == 64 else 384, length, 52))
        commit = subprocess.run(["git", "-C", clone, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        write(TO / f"{recipe}.safetensors", {"input": x, "value": value.numpy().astype(numpy.float32)},
              {"kind": "shared", "recipe": recipe, "source": f"{what}; commit {commit.stdout.strip()}",
               "torch": torch.__version__})


if __name__ == "__main__":
    main()
