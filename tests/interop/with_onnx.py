# SPDX-License-Identifier: Apache-2.0
"""The onnx package: initializers of every dtype, raw, in typed fields, and in external files."""
import harness

np, onnx, ml_dtypes = harness.need("numpy", "onnx", "ml_dtypes")
from arrays import DTYPES, SHAPES, bits, expected  # noqa: E402  (needs NumPy)

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

here = harness.scratch()
if "built without Protobuf" in harness.trial(b"\x08\x08\x12\x04test\x3a\x00", "probe.onnx"):
    harness.skip("this build reads no ONNX files (libprotobuf-dev was missing)")
NARROW = {"bfloat16": ("BF16", TensorProto.BFLOAT16),
          "float8_e4m3fn": ("F8_E4M3", TensorProto.FLOAT8E4M3FN),
          "float8_e4m3fnuz": ("F8_E4M3FNUZ", TensorProto.FLOAT8E4M3FNUZ),
          "float8_e5m2": ("F8_E5M2", TensorProto.FLOAT8E5M2),
          "float8_e5m2fnuz": ("F8_E5M2FNUZ", TensorProto.FLOAT8E5M2FNUZ)}

tensors, wanted = [], {}


def add(tensor, array, dtype=None):
    tensors.append(tensor)
    wanted[tensor.name] = expected(array, dtype)


for code in DTYPES:
    for shape in SHAPES:
        array = bits("<" + code, shape)
        size = "x".join(map(str, shape))
        add(numpy_helper.from_array(array, f"{code}.{size}.raw"), array)
        if array.size <= 1000:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            # As numbers, not as bytes; a signalling NaN does not survive Python's floats.
            plain = np.nan_to_num(array) if array.dtype.kind in "fc" else array
            add(helper.make_tensor(f"{code}.{size}.typed", kind, shape, plain.flatten()), plain)
for name, (dtype, kind) in NARROW.items():
    type_ = np.dtype(getattr(ml_dtypes, name))
    codes = np.arange(1 << 8 * type_.itemsize).astype(f"<u{type_.itemsize}").view(type_)
    add(helper.make_tensor(name + ".raw", kind, codes.shape, codes.tobytes(), raw=True), codes,
        dtype)
nibbles = bits("u1", (16,))
tensors.append(helper.make_tensor("float4", TensorProto.FLOAT4E2M1, [32], nibbles.tobytes(),
                                  raw=True))
wanted["float4"] = harness.Expected("F4", (32,), nibbles.tobytes())
constant = bits("<f4", (5, 7))
nodes = [helper.make_node("Constant", [], ["constant"],
                          value=numpy_helper.from_array(constant, "inner"))]
wanted["constant"] = expected(constant)


def model():
    graph = helper.make_graph(nodes, "interop", [], [], tensors)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


onnx.save(model(), here / "inside.onnx")
harness.check(here / "inside.onnx", wanted)
# External data: all in one file, or each tensor in its own.
for together in [True, False]:
    folder = here / ("one" if together else "many")
    folder.mkdir()
    onnx.save_model(model(), folder / "outside.onnx", save_as_external_data=True,
                    all_tensors_to_one_file=together, location="data" if together else None,
                    size_threshold=64)
    harness.check(folder / "outside.onnx", wanted)
harness.finish()
