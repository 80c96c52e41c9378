# SPDX-License-Identifier: Apache-2.0
"""Writes layouts.safetensors and layouts_values.safetensors of this folder (see README.md): small
tensors packed as other people's libraries pack them, and what those make of them. NumPy only; the
packing and the arithmetic are stated here a second time, step by step as their sources do it."""
import json
import pathlib

import numpy as np
from safetensors.numpy import save_file

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(2026)
arrays, values = {}, {}


def words(codes, bits):
    """Codes along the last axis as I32 words: bit k of code i is bit i * bits + k of the row."""
    each = (codes[..., None] >> np.arange(bits)) & 1
    stream = each.reshape(*codes.shape[:-1], -1).astype(np.uint8)
    stream = np.pad(stream, [(0, 0)] * (stream.ndim - 1) + [(0, -stream.shape[-1] % 32)])
    return np.packbits(stream, axis=-1, bitorder="little").view("<i4")


def halves(shape):
    return rng.uniform(0.001, 0.1, shape).astype(np.float16)


# GPTQ: codes and zero points are unsigned, rows of words contain inputs, zero points are stored
# minus one.
def gptq(name, outputs, inputs, groups, bits, order):
    q = rng.integers(0, 1 << bits, (inputs, outputs))
    z = rng.integers(0, 1 << bits, (groups, outputs))
    s = halves((groups, outputs))
    g = order if order is not None else np.arange(inputs) // (inputs // groups)
    arrays[name + ".qweight"] = np.ascontiguousarray(words(q.T, bits).T)
    arrays[name + ".qzeros"] = words((z - 1) % (1 << bits), bits)
    arrays[name + ".scales"] = s
    if order is not None:
        arrays[name + ".g_idx"] = order.astype(np.int32)
    values[name + ".weight"] = (s[g].astype(np.float32) * (q - z[g])).T


gptq("gptq4", 32, 64, 2, 4, None)
gptq("gptq4_order", 32, 64, 4, 4, rng.permutation(np.repeat(np.arange(4), 16)))
gptq("gptq3", 32, 64, 2, 3, None)
gptq("gptq2", 32, 64, 1, 2, None)
gptq("gptq8", 32, 32, 2, 8, None)


# AWQ: words contain outputs in a special order; zero points are stored unchanged.
def awq(name, outputs, inputs, groups):
    q = rng.integers(0, 16, (inputs, outputs))
    z = rng.integers(0, 16, (groups, outputs))
    s = halves((groups, outputs))
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def pack(codes):
        eights = codes.reshape(codes.shape[0], -1, 8)[..., order]
        return (eights << np.arange(0, 32, 4)).sum(-1).astype(np.uint32).view(np.int32)

    arrays[name + ".qweight"] = pack(q)
    arrays[name + ".qzeros"] = pack(z)
    arrays[name + ".scales"] = s
    g = np.arange(inputs) // (inputs // groups)
    values[name + ".weight"] = (s[g].astype(np.float32) * (q - z[g])).T


awq("awq", 16, 64, 2)


# compressed-tensors pack-quantized: half the range is added to codes and to zero points, which are
# packed down the rows.
def packed(name, rows, cols, groups, bits, zeros, order=None):
    half = 1 << (bits - 1)
    q = rng.integers(-half, half, (rows, cols))
    z = rng.integers(-half, half, (rows, groups)) if zeros else np.zeros((rows, groups), int)
    s = halves((rows, groups))
    arrays[name + ".weight_packed"] = words(q + half, bits)
    arrays[name + ".weight_scale"] = s
    # Extents may be of either width.
    arrays[name + ".weight_shape"] = np.array([rows, cols], np.int64 if zeros else np.int32)
    if zeros:
        arrays[name + ".weight_zero_point"] = np.ascontiguousarray(words((z + half).T, bits).T)
    g = np.arange(cols) // (cols // groups)
    if order is not None:
        arrays[name + ".weight_g_idx"] = order.astype(np.int32)
        g = order
    values[name + ".weight"] = s[:, g].astype(np.float32) * (q - z[:, g])


packed("packed4", 5, 64, 2, 4, False)
packed("packed4_zeros", 10, 64, 2, 4, True)
packed("packed4_order", 10, 64, 2, 4, True, rng.permutation(np.repeat(np.arange(2), 32)))
packed("packed3", 10, 44, 1, 3, True)
packed("packed8", 6, 32, 2, 8, True)

# compressed-tensors int-quantized: a zero point of each row.
q = rng.integers(-128, 128, (4, 24)).astype(np.int8)
z = rng.integers(-128, 128, (4, 1)).astype(np.int8)
s = halves((4, 1))
arrays.update({"int8.weight": q, "int8.weight_scale": s, "int8.weight_zero_point": z})
values["int8.weight"] = s.astype(np.float32) * (q.astype(int) - z)

# bitsandbytes INT8: the maximum of each row is stored as 127.
scb = rng.uniform(0.1, 2, 4).astype(np.float32)
arrays.update({"bnb8.weight": q, "bnb8.SCB": scb, "bnb8.weight_format": np.uint8(0)})
values["bnb8.weight"] = (q.astype(np.float64) * scb[:, None].astype(np.float64) / 127).astype("f4")

# bitsandbytes 4-bit: blocks of the flat tensor, the high nibble first; NF4's table.
NF4 = np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
                -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
                0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
                0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                0.7229568362236023, 1.0], np.float32)
FP4 = np.array([0, 0.0052083333, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25], np.float32)
FP4 = np.concatenate([FP4, -FP4])


def table(name, kind, shape, block, nested):
    count = int(np.prod(shape))
    q = rng.integers(0, 16, count)
    even = np.append(q, np.zeros(count % 2, int))
    blocks = -(-count // block)
    lut = NF4 if kind == "nf4" else FP4
    state = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": list(shape)}
    arrays[name] = (even[::2] << 4 | even[1::2]).astype(np.uint8)[:, None]
    arrays[name + ".quant_map"] = lut
    if nested:
        outer = np.sort(rng.uniform(-1, 1, 256)).astype(np.float32)
        index = rng.integers(0, 256, blocks).astype(np.uint8)
        scales = rng.uniform(0.01, 0.02, -(-blocks // 4)).astype(np.float32)
        state.update(nested_blocksize=4, nested_dtype="float32", nested_offset=0.0625)
        arrays[name + ".absmax"] = index
        arrays[name + ".nested_quant_map"] = outer
        arrays[name + ".nested_absmax"] = scales
        absmax = outer[index] * scales[np.arange(blocks) // 4] + np.float32(0.0625)
    else:
        absmax = rng.uniform(0.01, 0.2, blocks).astype(np.float32)
        arrays[name + ".absmax"] = absmax
    text = json.dumps(state).encode()
    arrays[f"{name}.quant_state.bitsandbytes__{kind}"] = np.frombuffer(text, np.uint8)
    values[name] = (lut[q] * absmax[np.arange(count) // block]).reshape(shape)


table("nf4.weight", "nf4", (6, 40), 64, False)
table("nf4_nested.weight", "nf4", (10, 40), 16, True)
table("fp4.weight", "fp4", (3, 5), 8, False)

# MLX: the bytes of OCP MX and NVFP4 in U32.
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
E2M1 = np.concatenate([E2M1, -E2M1])
codes = rng.integers(0, 16, (3, 64))
pairs = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
scales = rng.integers(110, 140, (3, 2)).astype(np.uint8)
arrays.update({"mlx4.weight": pairs.view("<u4"), "mlx4.scales": scales})
values["mlx4.weight"] = E2M1[codes] * np.repeat(2.0 ** (scales.astype(int) - 127), 32, 1)
steps = rng.integers(0x08, 0x7e, (3, 4)).astype(np.uint8)  # E4M3, normal
numbers = (1 + (steps & 7) / 8) * 2.0 ** ((steps >> 3).astype(int) - 7)
arrays.update({"mlxnv.weight": pairs.view("<u4"), "mlxnv.scales": steps})
values["mlxnv.weight"] = E2M1[codes] * np.repeat(numbers, 16, 1)
eights = rng.integers(0x08, 0x7e, (3, 64)).astype(np.uint8)
arrays.update({"mlx8.weight": eights.view("<u4"), "mlx8.scales": scales})
values["mlx8.weight"] = (1 + (eights & 7) / 8) * 2.0 ** ((eights >> 3).astype(int) - 7) * np.repeat(
    2.0 ** (scales.astype(int) - 127), 32, 1)

save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, here / "layouts.safetensors")
save_file({k: np.ascontiguousarray(v.astype(np.float32)) for k, v in values.items()},
          here / "layouts_values.safetensors")
