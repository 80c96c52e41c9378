#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what PyTorch draws for `mx train proxy --stream torch` (datasets/vectors/draws).

    scripts/make-torch-vectors.py torch.safetensors

Needs torch on an x86-64 CPU with AVX2, and safetensors' layout only. With an existing file, compares
instead, and exits with 1 if a bit differs.
"""
import json
import pathlib
import struct
import sys

import numpy
import torch

SEED, WIDTH, DEPTH, BATCH, STEPS, MANY = 1337, 24, 2, 7, 3, 1 << 20


def draw():
    torch.manual_seed(SEED)
    tensors = {}

    def linear(name, fan_in, fan_out, bias):
        layer = torch.nn.Linear(fan_in, fan_out, bias=bias)
        for part, value in layer.named_parameters():
            tensors[f"{name}.{part}"] = value.detach().numpy()

    for i in range(DEPTH):
        linear(f"layers.{i}.fc1", WIDTH, 4 * WIDTH, False)
        linear(f"layers.{i}.fc2", 4 * WIDTH, WIDTH, True)
    for i in range(DEPTH):
        linear(f"teacher.{i}.fc1", WIDTH, WIDTH, False)
        linear(f"teacher.{i}.fc2", WIDTH, WIDTH, False)
    tensors["x"] = numpy.stack([torch.randn(BATCH, WIDTH).numpy() for _ in range(STEPS)])
    # Of many more, the sum of place times bits.
    bits = torch.randn(MANY).numpy().view(numpy.uint32).astype(numpy.uint64)
    places = numpy.arange(1, MANY + 1, dtype=numpy.uint64)
    tensors["checksum"] = (bits * places).sum(dtype=numpy.uint64).reshape(1)
    return tensors


def stored(tensors):
    header, data = {}, b""
    for name, value in tensors.items():
        raw = numpy.ascontiguousarray(value).tobytes()
        header[name] = {"dtype": "U64" if value.dtype == numpy.uint64 else "F32",
                        "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def main():
    path = pathlib.Path(sys.argv[1])
    new = stored(draw())
    if not path.exists():
        path.write_bytes(new)
    same = path.read_bytes() == new
    print(f"torch {torch.__version__}: {path} {'is equal' if same else 'DIFFERS'}")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
