# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's gguf package: the types that are read, in both byte orders, and its block types."""
import harness

np, gguf = harness.need("numpy", "gguf")
from arrays import bits, expected  # noqa: E402  (needs NumPy)

here = harness.scratch()
kinds = gguf.GGMLQuantizationType
PLAIN = {"f4": "F32", "f2": "F16", "f8": "F64", "i1": "I8", "i2": "I16", "i4": "I32", "i8": "I64"}

# The positions of two-byte numbers in a block.
BLOCKS = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
          "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0],
          "IQ4_XS": [0, 2], "TQ1_0": [52], "TQ2_0": [64], "NVFP4": [], "IQ1_M": [], "IQ2_S": [0],
          "IQ1_S": [0, *range(34, 50, 2)], "IQ2_XXS": range(0, 66, 2), "IQ2_XS": range(0, 66, 2),
          "IQ3_XXS": [0], "IQ3_S": [0]}


def write(path, order, alignment):
    wanted = {}
    writer = gguf.GGUFWriter(path, "llama", endianess=order)
    if alignment:
        writer.add_custom_alignment(alignment)
    writer.add_string("general.name", "interop")
    writer.add_array("tokens", ["a", "b", ""] * 1000)
    for code, dtype in PLAIN.items():
        for shape in [(1,), (7, 33), (2, 3, 4, 5), (40, 1000)]:
            array = bits("<" + code, shape)
            name = f"{dtype}.{'x'.join(map(str, shape))}"
            writer.add_tensor(name, array.copy())
            wanted[name] = expected(array)
    brain = bits("<u2", (7, 32))
    writer.add_tensor("BF16", brain.copy(), raw_dtype=kinds.BF16)
    widened = (brain.astype("<u4") << 16).view("<f4")
    wanted["BF16"] = harness.Expected("BF16", (7, 32), brain.tobytes(), widened)
    # Any codes, and any scale except those whose products overflow float32.
    blocks = bits("u1", (64, 4, 17))
    blocks[..., 0] %= 240
    writer.add_tensor("MXFP4", blocks.reshape(64, 4 * 17).copy(), raw_dtype=kinds.MXFP4)
    wanted["MXFP4"] = harness.Expected("BF16", (64, 128), None,
                                       gguf.dequantize(blocks.reshape(64, 4 * 17), kinds.MXFP4))
    numbers = np.random.default_rng(5).standard_normal((3, 96)).astype("<f4")
    packed = gguf.quantize(numbers, kinds.MXFP4)
    writer.add_tensor("MXFP4.quantized", packed.copy(), raw_dtype=kinds.MXFP4)
    wanted["MXFP4.quantized"] = harness.Expected("BF16", (3, 96), None,
                                                 gguf.dequantize(packed, kinds.MXFP4))
    # Random blocks of each type that the package and mx decode. Its writer leaves bytes as they are,
    # so that a big-endian file needs the numbers of a block swapped here.
    for name, wide in BLOCKS.items():
        kind = kinds[name]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = bits("u1", (40, 3, size)).copy()
        decoded = gguf.dequantize(blocks.reshape(40, 3 * size), kind)
        if order == gguf.GGUFEndian.BIG:
            for at in wide:
                blocks[..., at:at + 2] = blocks[..., at:at + 2][..., ::-1]
        writer.add_tensor(name, blocks.reshape(40, 3 * size), raw_dtype=kind)
        wanted[name] = harness.Expected("F32", (40, 3 * elements), None, decoded)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return wanted


for order in [gguf.GGUFEndian.LITTLE, gguf.GGUFEndian.BIG]:
    for alignment in [None, 64, 4096]:
        path = here / f"{order.name}{alignment}.gguf"
        harness.check(path, write(path, order, alignment))
harness.finish()
