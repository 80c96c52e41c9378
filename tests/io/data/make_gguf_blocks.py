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
        "NVFP4": []}


def decoded(name, blocks):
    if name == "Q8_K":  # not in the package: a float32 scale, 256 signed codes, sums
        return (blocks[:, :4].copy().view("<f4") * blocks[:, 4:260].view("i1")).reshape(1, -1)
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
    for at, width in wide:  # scales below 2; the third block's may be anything, NaN and Inf too
        blocks[:2, at + width - 1] &= 0xbf
    if name == "NVFP4":
        blocks[2, :4] = 0x7f, 0xff, 0, 0x80
    values[name] = decoded(name, blocks).astype("<f4")
    little.add_tensor(name, blocks.reshape(1, -1).copy(), raw_dtype=kinds[name])
    big.add_tensor(name, swapped(name, blocks).reshape(1, -1).copy(), raw_dtype=kinds[name])
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
save_file({k: np.ascontiguousarray(v.astype("<f4")) for k, v in values.items()},
          here / "gguf_blocks_values.safetensors")
