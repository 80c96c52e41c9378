# SPDX-License-Identifier: Apache-2.0
"""Writes the GGUF fixtures of this folder with the gguf package of llama.cpp (see README.md)."""
import pathlib

import gguf
import numpy as np

here = pathlib.Path(__file__).parent
kinds = gguf.GGMLQuantizationType


def values(dtype, shape):
    count = int(np.prod(shape, dtype=np.int64))
    return (np.arange(count) % 113 - 7).astype(dtype).reshape(shape)


def add_plain(writer):
    for name, dtype in [("f32", "f4"), ("f16", "f2"), ("f64", "f8"), ("i8", "i1"), ("i16", "i2"),
                        ("i32", "i4"), ("i64", "i8")]:
        writer.add_tensor("plain." + name, values(dtype, (5, 7)))
    # Whole numbers below 256: the upper half of a float32 is its bfloat16.
    bf16 = (values("<f4", (5, 7)).view("<u4") >> 16).astype("<u2")
    writer.add_tensor("plain.bf16", bf16, raw_dtype=kinds.BF16)
    writer.add_tensor("four", values("f4", (3, 4, 5, 6)))


def add_metadata(writer):
    writer.add_string("general.name", "a fixture")
    writer.add_uint32("general.count", 4000000000)
    writer.add_int8("general.small", -5)
    writer.add_uint64("general.large", 2**63 + 1)
    writer.add_float32("general.single", 0.1)
    writer.add_float64("general.double", -2.5e-300)
    writer.add_bool("general.truth", True)
    writer.add_array("tokens", ["a", "b", "", "dé", "e"])
    writer.add_array("scores", [0.5, -1.5])
    writer.add_array("nested", [[1, 2], [3]])


def scale_and_codes():
    """MXFP4 blocks with every scale byte; the codes of block s are s, s + 3, s + 6, ..."""
    rows = np.zeros((256, 17), np.uint8)
    rows[:, 0] = np.arange(256)
    for k in range(16):
        low = (np.arange(256) + 3 * k) & 15
        high = (np.arange(256) + 3 * (k + 16)) & 15
        rows[:, 1 + k] = low | high << 4
    return rows.reshape(32, 8 * 17)


w = gguf.GGUFWriter(here / "gguf.gguf", "llama")
add_metadata(w)
add_plain(w)
blocks = scale_and_codes()
w.add_tensor("mxfp4", blocks, raw_dtype=kinds.MXFP4)
x = np.random.default_rng(7).standard_normal((2, 64)).astype(np.float32)
w.add_tensor("mxfp4.quantized", gguf.quantize(x, kinds.MXFP4), raw_dtype=kinds.MXFP4)
for kind in [kinds.Q8_0, kinds.Q4_0]:
    w.add_tensor("other." + kind.name, gguf.quantize(values("f4", (2, 64)), kind), raw_dtype=kind)
w.add_tensor("other.Q4_K", np.zeros((2, 144), np.uint8), raw_dtype=kinds.Q4_K)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
# The MXFP4 tensors as decoded by the package, as raw float32.
with np.errstate(over="ignore"):
    decoded = gguf.dequantize(blocks, kinds.MXFP4).astype("<f4")
(here / "gguf_mxfp4.f32").write_bytes(decoded.tobytes())

w = gguf.GGUFWriter(here / "gguf_big.gguf", "llama", endianess=gguf.GGUFEndian.BIG)
w.add_custom_alignment(64)
add_plain(w)
w.add_tensor("mxfp4", scale_and_codes(), raw_dtype=kinds.MXFP4)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
