# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays to write, and what mx should read of them. Only for scripts that need NumPy."""
import numpy as np

from harness import Expected

DTYPES = {"b1": "BOOL", "i1": "I8", "u1": "U8", "i2": "I16", "u2": "U16", "i4": "I32", "u4": "U32",
          "i8": "I64", "u8": "U64", "f2": "F16", "f4": "F32", "f8": "F64", "c8": "C64",
          "c16": "C128"}
SHAPES = [(), (1,), (0,), (3, 0, 2), (7, 33), (2, 3, 4, 5), (40, 1000)]


def bits(dtype, shape, seed=1):
    """Every kind of number: random bits, so NaN, infinities and subnormals among the floats."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    random = np.random.default_rng(seed)
    if dtype.kind == "b":
        return (random.integers(0, 2, count) == 1).reshape(shape)
    raw = random.integers(0, 256, count * dtype.itemsize, dtype=np.uint8)
    return raw.view(dtype).reshape(shape)


def expected(array, dtype=None, values=True):
    """`array` as mx reads it. `dtype` is the name where NumPy has none of its own."""
    if dtype is None:
        dtype = DTYPES[array.dtype.kind + str(array.dtype.itemsize)]
    little = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.byteorder == ">":
        little = little.astype(array.dtype.newbyteorder("<"))
    widened = None
    if values and array.dtype.kind not in "bc":
        with np.errstate(over="ignore", invalid="ignore"):
            widened = little.astype("<f4")
    return Expected(dtype, array.shape, little.tobytes(), widened)
