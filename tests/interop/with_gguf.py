# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's gguf package: the types that are read, in both byte orders, and MXFP4."""
import harness

np, gguf = harness.need("numpy", "gguf")
from arrays import bits, expected  # noqa: E402  (needs NumPy)

here = harness.scratch()
kinds = gguf.GGMLQuantizationType
PLAIN = {"f4": "F32", "f2": "F16", "f8": "F64", "i1": "I8", "i2": "I16", "i4": "I32", "i8": "I64"}


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
    # Any scale but those whose products overflow float32, any codes.
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
    for kind in [kinds.Q8_0, kinds.Q4_0]:
        writer.add_tensor(kind.name, gguf.quantize(numbers, kind), raw_dtype=kind)
        wanted[kind.name] = harness.Expected("OTHER", (), note=f"ggml's {kind.name} blocks")
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
