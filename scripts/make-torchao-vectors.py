#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes datasets/vectors/dialects/torchao-0.18.0_*: what to_mx and nvfp4_quantize of that wheel make of blocks on a
CPU. Needs torchao 0.18.0 with a torch that it imports under, and numpy. With --check, compares the files with what
the wheel computes now."""

import argparse
import json
import struct
import sys
from pathlib import Path

import numpy
import torch
import torchao
from torchao.prototype.mx_formats import mx_tensor, nvfp4_tensor
from torchao.prototype.mx_formats.config import ScaleCalculationMode
from torchao.prototype.mx_formats.constants import DTYPE_FP6_E2M3, DTYPE_FP6_E3M2
from torchao.prototype.mx_formats.kernels import unpack_uint4

VERSION = "0.18.0"
TO = Path(__file__).resolve().parents[1] / "datasets/vectors/dialects"
SEED = 20261128
# The wheel's element type, largest value and mantissa bits.
ELEMENTS = {"e4m3": (torch.float8_e4m3fn, 448, 3), "e5m2": (torch.float8_e5m2, 57344, 2),
            "e2m3": (DTYPE_FP6_E2M3, 7.5, 3), "e3m2": (DTYPE_FP6_E3M2, 28, 2),
            "e2m1": (torch.float4_e2m1fn_x2, 6, 1)}
RULES = ("floor", "ceil", "even", "rceil")


def stepped(x, ulps):
    """float32 `ulps` places from x > 0."""
    return (numpy.asarray(x, numpy.float32).view(numpy.int32) + numpy.asarray(ulps, numpy.int32)).view(numpy.float32)


def special_blocks(g, largest, mantissa_bits):
    """Blocks whose maximum is where rules or releases part: neighbours of max 2^k, of the threshold of `even` and of
    2^k; the float32 next to Inf; Inf, NaN; maxima whose scale has code 0."""
    maxima = []
    for k in (-60, -3, 0, 53, 100):
        maxima += [stepped(largest * 2.0 ** k, u) for u in (-2, 0, 1, 3)]
        maxima += [stepped((2 - 2.0 ** -(mantissa_bits + 1)) * 2.0 ** k, u) for u in (-1, 0)]
    maxima += [stepped(2.0 ** k, u) for k in (-120, 7) for u in (-1, 1)]
    top = numpy.finfo(numpy.float32).max
    maxima += [top, stepped((2 - 2.0 ** -(mantissa_bits + 1)) * 2.0 ** 127, -1), numpy.inf, numpy.inf, numpy.nan,
               numpy.nan]
    maxima += [largest * 2.0 ** -127, stepped(largest * 2.0 ** -127, 3), largest * 2.0 ** -128, 8.09e-39, 1e-45, 0, 0]
    rows = []
    for i, m in enumerate(maxima):
        scale = m if numpy.isfinite(m) else 2.0 ** (i % 2 * 120)
        row = (g.uniform(-1, 1, 32) * 2.0 ** g.integers(-9, 1, 32) * scale).astype(numpy.float32)
        row[g.integers(32)] = -m if i % 3 == 0 else m
        if i % 5 == 0:
            row[:3] = (0.0, -0.0, numpy.inf if numpy.isnan(m) else 0.0)
        rows.append(row)
    return numpy.array(rows, numpy.float32)


def blocks(g, width, special):
    """Special blocks and some of values as they occur: normal, heavy tails, few values of a grid."""
    tails = g.standard_t(1.5, (10, width)) * 2.0 ** g.integers(-30, 30, (10, 1))
    grid = g.integers(-31, 32, (6, width)) / 8 * 2.0 ** g.integers(-8, 8, (6, 1))
    return numpy.concatenate([special, g.standard_normal((8, width)), tails, grid]).astype(numpy.float32)


def unpacked(codes, packed):
    return unpack_uint4(codes) if packed else codes.view(torch.uint8)


def mx_file(element, rule):
    dtype, largest, mantissa_bits = ELEMENTS[element]
    g = numpy.random.default_rng(SEED)
    with numpy.errstate(over="ignore"):
        x = blocks(g, 32, special_blocks(g, largest, mantissa_bits))
    t = mx_tensor.MXTensor.to_mx(torch.from_numpy(x), dtype, 32, ScaleCalculationMode[rule.upper()])
    tensors = {"input": x, "scale_code": t.scale.view(torch.uint8).reshape(-1).numpy(),
               "code": unpacked(t.qdata, element == "e2m1").reshape(x.shape).numpy(), "dequant": t.dequantize().numpy()}
    return f"{element}_{rule}_32", tensors, {
        "element": element, "scale": rule, "block": "1x32",
        "function": f"MXTensor.to_mx with ScaleCalculationMode.{rule.upper()}, and its dequantize"}


def nvfp4_file(levels):
    g = numpy.random.default_rng(SEED + 1)
    special = (g.uniform(-1, 1, (136, 16)) * 2.0 ** g.uniform(-16, 12, (136, 1))).astype(numpy.float32)
    special[0] = 0
    special[1] *= 2.0 ** -100
    special[2] = numpy.copysign(numpy.float32(0), special[2])
    x = blocks(g, 16, special)
    x[-1, 3] = 3000
    if levels == "single-level":  # a tensor scale would be of all
        x[5, 7] = numpy.inf
    v = torch.from_numpy(x)
    whole = nvfp4_tensor.per_tensor_amax_to_scale(v.abs().max()) if levels == "two-level" else None
    t = nvfp4_tensor.NVFP4Tensor.to_nvfp4(v, per_tensor_scale=whole)
    # Where a quotient and a product with a reciprocal round apart: elements at the midpoints of codes.
    scale = t.scale.to(torch.float32).reshape(-1, 1).numpy() * (1 if whole is None else whole.numpy())
    middle = g.choice([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], x.shape).astype(numpy.float32) * scale
    placed = numpy.isfinite(middle) & (stepped(middle, 2) < abs(x).max(1, keepdims=True)) & (g.random(x.shape) < 0.7)
    placed &= abs(x) < abs(x).max(1, keepdims=True)
    x = numpy.where(placed, stepped(middle, g.integers(-2, 3, x.shape)), x)
    t = nvfp4_tensor.NVFP4Tensor.to_nvfp4(torch.from_numpy(x), per_tensor_scale=whole)
    tensors = {"input": x, "scale_code": t.scale.view(torch.uint8).reshape(-1).numpy(),
               "code": unpacked(t.qdata, True).reshape(x.shape).numpy(), "dequant": t.dequantize().numpy()}
    if whole is not None:
        tensors["per_tensor_scale"] = whole.reshape(1).numpy()
    return f"nvfp4_{levels}_16", tensors, {
        "element": "e2m1", "scale": levels, "block": "1x16", "format": "nvfp4",
        "function": "per_tensor_amax_to_scale, NVFP4Tensor.to_nvfp4, and its dequantize"}


def encoded(tensors, more):
    """The bytes of a safetensors file."""
    metadata = {"kind": "blocks", "dialect": "torchao", "dialect_version": VERSION, "round": "rtne",
                "input_dtype": "f32", "flush_subnormals": "false", "seed": str(SEED),
                "contract": " ".join(sorted(t for t in tensors if t != "input")),
                "source": f"torchao {VERSION} from PyPI under torch {torch.__version__.split('+')[0]}, CPU", **more}
    header, at = {"__metadata__": dict(sorted(metadata.items()))}, 0
    for name, a in sorted(tensors.items()):
        header[name] = {"dtype": {"f": "F32", "u": "U8"}[a.dtype.kind], "shape": list(a.shape),
                        "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(numpy.ascontiguousarray(a).tobytes()
                                                          for _, a in sorted(tensors.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file differs")
    check = parser.parse_args().check
    if torchao.__version__ != VERSION:
        sys.exit(f"make-torchao-vectors: torchao {torchao.__version__}: needs {VERSION} (pip install torchao=={VERSION})")
    made = [mx_file(e, r) for e in ELEMENTS for r in RULES] + [nvfp4_file(n) for n in ("two-level", "single-level")]
    differ = 0
    for name, tensors, more in made:
        path, data = TO / f"torchao-{VERSION}_{name}.safetensors", encoded(tensors, more)
        if check:
            same = path.exists() and path.read_bytes() == data
            differ += not same
            print(f"{'same' if same else 'differs'}  {path.name}")
        else:
            path.write_bytes(data)
            print(f"{len(data):7}  {path.name}")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
