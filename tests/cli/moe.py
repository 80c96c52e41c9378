#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a safetensors file with the names and counts of a mixture of experts, BF16 matrices of one
size: moe.py OUT [LAYERS EXPERTS ROWS COLUMNS]. 43 512 64 32 makes 66,306 tensors. In each layer, one
expert has a column of outliers in its down projection, beside which the rest becomes zero, and another
a column of smaller ones in its up projection, beside which the zeros are 3 % of the energy."""

import json
import random
import struct
import sys

out = sys.argv[1]
layers, experts, rows, columns = [int(n) for n in sys.argv[2:]] or [43, 512, 64, 32]
elements = rows * columns
random.seed(1)
# Matrices begin at various positions in one pool of values: drawing all of them would
# take minutes.
pool = [random.gauss(0, 0.02) for _ in range(8 * elements)]


def bf16(values):
    return b"".join(struct.pack("<f", v)[2:] for v in values)


good = bf16(pool)


def with_outliers(factor):
    return bf16(v * (factor if i % columns == 0 else 1) for i, v in enumerate(pool[:elements]))


outliers = {("down_proj", 3): with_outliers(3000), ("up_proj", 5): with_outliers(30)}
ones = bf16([1.0 + v for v in pool[:columns]])
header, chunks, size = {"__metadata__": {"format": "pt"}}, [], 0


def add(name, shape, data):
    global size
    header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [size, size + len(data)]}
    chunks.append(data)
    size += len(data)


def matrix(name):
    at = 2 * random.randrange(7 * elements)
    add(name, [rows, columns], good[at:at + 2 * elements])


for layer in range(layers):
    prefix = f"model.layers.{layer}."
    add(prefix + "input_layernorm.weight", [columns], ones)
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        matrix(f"{prefix}self_attn.{name}.weight")
    matrix(prefix + "mlp.gate.weight")
    for expert in range(experts):
        for name in ("gate_proj", "up_proj", "down_proj"):
            path = f"{prefix}mlp.experts.{expert}.{name}.weight"
            bad = outliers.get((name, (expert - 7 * layer) % experts))
            if bad:
                add(path, [rows, columns], bad)
            else:
                matrix(path)

text = json.dumps(header, separators=(",", ":")).encode()
text += b" " * (-len(text) % 8)
with open(out, "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    for data in chunks:
        file.write(data)
