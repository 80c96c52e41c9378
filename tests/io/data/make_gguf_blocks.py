# SPDX-License-Identifier: Apache-2.0
"""Writes the fixtures of ggml's block types with the gguf package of llama.cpp (see README.md): random
blocks, in both byte orders, and what the package's decoder makes of them."""
import pathlib

import gguf
import numpy as np
from safetensors.numpy import save_file

here = pathlib.Path(__file__).parent
kinds = gguf.GGMLQuantizationType
rng = np.random.default_rng(2026)

# The positions of numbers of more than one byte in a block: offset and width.
WIDE = {"Q4_0": [(0, 2)], "Q4_1": [(0, 2), (2, 2)], "Q5_0": [(0, 2)], "Q5_1": [(0, 2), (2, 2)],
        "Q8_0": [(0, 2)], "Q2_K": [(80, 2), (82, 2)], "Q3_K": [(108, 2)],
        "Q4_K": [(0, 2), (2, 2)], "Q5_K": [(0, 2), (2, 2)], "Q6_K": [(208, 2)], "Q8_K": [(0, 4)],
        "IQ4_NL": [(0, 2)], "IQ4_XS": [(0, 2), (2, 2)], "TQ1_0": [(52, 2)], "TQ2_0": [(64, 2)],
        "NVFP4": [], "Q1_0": [(0, 2)], "IQ1_S": [(at, 2) for at in [0, *range(34, 50, 2)]],
        "IQ1_M": [], "IQ2_XXS": [(at, 2) for at in range(0, 66, 2)],
        "IQ2_XS": [(at, 2) for at in range(0, 66, 2)], "IQ2_S": [(0, 2)], "IQ3_XXS": [(0, 2)],
        "IQ3_S": [(0, 2)]}
# Bits of a point's index, elements of a point, and the half that makes values whole numbers.
GRIDS = {"IQ1_S": (11, 8, 8), "IQ2_XXS": (8, 8, 8), "IQ2_XS": (9, 8, 8), "IQ2_S": (10, 8, 8),
         "IQ3_XXS": (8, 4, 4), "IQ3_S": (9, 4, 1)}


def decoded(name, blocks):
    if name == "Q8_K":  # not in the package: a float32 scale, 256 signed codes, sums
        return (blocks[:, :4].copy().view("<f4") * blocks[:, 4:260].view("i1")).reshape(1, -1)
    if name == "Q1_0":  # nor this: a half and 128 signs
        d = blocks[:, :2].copy().view("<f2").astype("<f4")
        return np.where(np.unpackbits(blocks[:, 2:], axis=1, bitorder="little"), d, -d).reshape(1, -1)
    with np.errstate(all="ignore"):
        return gguf.dequantize(blocks.reshape(1, -1), kinds[name])


def swapped(name, blocks):
    blocks = blocks.copy()
    for at, width in WIDE[name]:
        blocks[:, at:at + width] = blocks[:, at:at + width][:, ::-1]
    return blocks


little = gguf.GGUFWriter(here / "gguf_blocks.gguf", "llama")
big = gguf.GGUFWriter(here / "gguf_blocks_big.gguf", "llama", endianess=gguf.GGUFEndian.BIG)
values = {}
for name, wide in WIDE.items():
    blocks = rng.integers(0, 256, (3, gguf.GGML_QUANT_SIZES[kinds[name]][1]), dtype=np.uint8)
    # Scales below 2; the third block's may be anything, NaN and Inf too.
    for at, width in wide[:1] if name in GRIDS else wide:
        blocks[:2, at + width - 1] &= 0xbf
    if name == "NVFP4":
        blocks[2, :4] = 0x7f, 0xff, 0, 0x80
    values[name] = decoded(name, blocks).astype("<f4")
    little.add_tensor(name, blocks.reshape(1, -1).copy(), raw_dtype=kinds[name])
    big.add_tensor(name, swapped(name, blocks).reshape(1, -1).copy(), raw_dtype=kinds[name])

def all_points(name):
    """Blocks with each point of a codebook once, without signs and under one scale."""
    bits, each, half = GRIDS[name]
    elements, size = gguf.GGML_QUANT_SIZES[kinds[name]]
    points = np.arange(1 << bits).reshape(-1, elements // each)
    blocks = np.zeros((len(points), size), np.uint8)
    blocks[:, :2] = np.array([half], "<f2").view(np.uint8)
    low = (points & 255).astype(np.uint8)
    high = points >> 8
    if name == "IQ2_XXS":  # four points, then four bytes of signs and scale
        blocks[:, 2:].reshape(-1, 8, 2, 4)[:, :, 0] = low.reshape(-1, 8, 4)
    elif name == "IQ2_XS":
        blocks[:, 2:66] = points.astype("<u2").view(np.uint8)
    else:
        blocks[:, 2:2 + low.shape[1]] = low
    if name == "IQ1_S":
        words = (high.reshape(-1, 8, 4) << np.arange(0, 12, 3)).sum(-1)
        blocks[:, 34:] = words.astype("<u2").view(np.uint8)
    if name == "IQ2_S":
        blocks[:, 66:74] = (high.reshape(-1, 8, 4) << np.arange(0, 8, 2)).sum(-1)
    if name == "IQ3_S":
        blocks[:, 66:74] = (high.reshape(-1, 8, 8) << np.arange(8)).sum(-1)
    return blocks


for name in GRIDS:
    blocks = all_points(name)
    whole = decoded(name, blocks)
    assert len(np.unique(whole.reshape(-1, GRIDS[name][1]), axis=0)) == 1 << GRIDS[name][0]
    values[name + ".points"] = whole.astype(np.int8)
    assert (values[name + ".points"] == whole).all()
    little.add_tensor(name + ".points", blocks.reshape(1, -1).copy(), raw_dtype=kinds[name])
    big.add_tensor(name + ".points", swapped(name, blocks).reshape(1, -1), raw_dtype=kinds[name])
# NVFP4 under one more scale, for a matrix and for each of two experts.
for name, count in [("dense", 1), ("experts", 2)]:
    blocks = rng.integers(0, 0x7f, (count, 2, 36), dtype=np.uint8)
    scale = rng.uniform(0.01, 0.1, count).astype("f4")
    for writer in little, big:
        shaped = blocks if count > 1 else blocks[0]
        writer.add_tensor(name + ".weight", shaped.copy(), raw_dtype=kinds.NVFP4)
        writer.add_tensor(name + ".scale", scale.copy())
        writer.add_tensor(name + ".input_scale", np.ones(count, "f4"))
    product = decoded("NVFP4", blocks.reshape(-1, 36)).reshape(count, 2, 64) * scale[:, None, None]
    values[name + ".weight"] = product if count > 1 else product[0]
for writer in little, big:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
save_file({k: np.ascontiguousarray(v if v.dtype == np.int8 else v.astype("<f4"))
           for k, v in values.items()},
          here / "gguf_blocks_values.safetensors")
