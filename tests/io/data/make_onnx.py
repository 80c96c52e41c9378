# SPDX-License-Identifier: Apache-2.0
"""Writes the ONNX fixtures of this folder with the onnx package (see README.md)."""
import pathlib

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

here = pathlib.Path(__file__).parent
kinds = {
    "f4": (TensorProto.FLOAT, "f4"),
    "f8": (TensorProto.DOUBLE, "f8"),
    "f2": (TensorProto.FLOAT16, "f2"),
    "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
    "e4m3": (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
    "e4m3fnuz": (TensorProto.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz),
    "e5m2": (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2),
    "e5m2fnuz": (TensorProto.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz),
    "bool": (TensorProto.BOOL, "?"),
    "i1": (TensorProto.INT8, "i1"),
    "u1": (TensorProto.UINT8, "u1"),
    "i2": (TensorProto.INT16, "i2"),
    "u2": (TensorProto.UINT16, "u2"),
    "i4": (TensorProto.INT32, "i4"),
    "u4": (TensorProto.UINT32, "u4"),
    "i8": (TensorProto.INT64, "i8"),
    "u8": (TensorProto.UINT64, "u8"),
    "c8": (TensorProto.COMPLEX64, "c8"),
    "c16": (TensorProto.COMPLEX128, "c16"),
}


def values(dtype, shape=(5, 7)):
    count = int(np.prod(shape, dtype=np.int64))
    base = np.arange(count) % 113
    kind = np.dtype(dtype).kind
    if kind == "b":
        flat = np.arange(count) % 3 == 0
    elif kind == "u":
        flat = base
    elif kind == "c":
        flat = (base - 7) + 1j * (base - 7) / 2
    else:
        flat = base - 7
    return flat.astype(dtype).reshape(shape)


tensors = []
for name, (kind, dtype) in kinds.items():
    x = values(dtype)
    tensors.append(helper.make_tensor("raw." + name, kind, x.shape, x.tobytes(), raw=True))
    tensors.append(helper.make_tensor("typed." + name, kind, x.shape, x.flatten()))
    if name.startswith("e"):
        widened = x.astype("f4")
        tensors.append(helper.make_tensor("check." + name, TensorProto.FLOAT, x.shape,
                                          widened.tobytes(), raw=True))
tensors.append(helper.make_tensor("scalar", TensorProto.FLOAT, [], [-7.0]))
tensors.append(helper.make_tensor("empty", TensorProto.FLOAT, [3, 0, 2], []))
tensors.append(helper.make_tensor("int4", TensorProto.INT4, [5], [1, 2, 3, 4, 5]))
tensors.append(helper.make_tensor("text", TensorProto.STRING, [2], [b"a", b"b"]))

constant = helper.make_node(
    "Constant", [], ["weights"], value=helper.make_tensor("inner", TensorProto.FLOAT, (5, 7),
                                                           values("f4").flatten()))
branch = helper.make_graph([helper.make_node("Constant", [], ["y"], value_float=1.0)], "branch",
                           [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])])
choice = helper.make_node("If", ["condition"], ["y"], name="choice", then_branch=branch,
                          else_branch=branch)
sparse = helper.make_sparse_tensor(
    helper.make_tensor("sparse", TensorProto.FLOAT, [1], [3.0]),
    helper.make_tensor("sparse.indices", TensorProto.INT64, [1], [2]), [9])
graph = helper.make_graph([constant, choice], "fixture", [], [], tensors,
                          sparse_initializer=[sparse], doc_string="graph")
model = helper.make_model(graph, producer_name="mx-fixture", ir_version=10,
                          opset_imports=[helper.make_opsetid("", 21)])
helper.set_model_props(model, {"origin": "a fixture"})
(here / "onnx.onnx").write_bytes(model.SerializeToString())

outside = [helper.make_tensor(n, TensorProto.FLOAT, (5, 7), values("f4").tobytes(), raw=True)
           for n in ("first", "second")]
model = helper.make_model(helper.make_graph([], "external", [], [], outside), ir_version=10,
                          opset_imports=[helper.make_opsetid("", 21)])
(here / "onnx_external.data").unlink(missing_ok=True)
onnx.save_model(model, here / "onnx_external.onnx", save_as_external_data=True,
                location="onnx_external.data", size_threshold=0)
