# SPDX-License-Identifier: Apache-2.0
"""Reads vectors of ../../datasets/vectors without libmx, which is what they test."""
import json
import pathlib
import struct

import numpy as np

folder = pathlib.Path(__file__).resolve().parents[2] / "datasets" / "vectors"
_types = {"F32": np.float32, "U8": np.uint8, "U16": np.uint16, "U32": np.uint32}


def read(path):
    """The metadata and the tensors of a safetensors file."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    meta = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + n for n in entry["data_offsets"])
        tensors[name] = np.frombuffer(data[begin:end], _types[entry["dtype"]]).reshape(
            entry["shape"])
    return meta, tensors
