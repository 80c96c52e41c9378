# SPDX-License-Identifier: Apache-2.0
"""Writes the fixtures of this folder with other people's writers (see README.md).

Element i (C order) of every numeric array is (i % 113) - 7, or i % 113 where the type is unsigned;
of truth values, i % 3 == 0; of complex numbers, that value and its half as the imaginary part.
"""
import json
import pathlib

import h5py
import ml_dtypes
import numpy as np
from safetensors.numpy import load_file, save_file

here = pathlib.Path(__file__).parent


def values(dtype, shape):
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    base = np.arange(count) % 113
    if dtype.kind == "b":
        flat = np.arange(count) % 3 == 0
    elif dtype.kind == "u":
        flat = base
    elif dtype.kind == "c":
        flat = (base - 7) + 1j * (base - 7) / 2
    else:
        flat = base - 7
    return flat.astype(dtype).reshape(shape)


plain = ["?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"]
big = [">i2", ">u2", ">i4", ">u4", ">i8", ">u8", ">f2", ">f4", ">f8", ">c8", ">c16"]


def key(dtype):
    return dtype.replace("<", "").replace(">", "big_").replace("?", "bool")


arrays = {key(d): values(d, (5, 7)) for d in plain + big}
arrays["fortran2"] = np.asfortranarray(values("<f4", (5, 7)))
arrays["fortran3"] = np.asfortranarray(values("<f8", (3, 4, 5)))
arrays["fortran_big"] = np.asfortranarray(values(">c8", (4, 3, 2)))
arrays["scalar"] = values("<f4", ())
arrays["empty"] = values("<f4", (3, 0, 2))
arrays["text"] = np.array(["ab", "c"])
arrays["object"] = np.array([{"a": 1}], dtype=object)
arrays["record"] = np.zeros(2, dtype=[("x", "<f4"), ("y", "<i4", (2,))])
arrays["time"] = np.zeros(2, dtype="<M8[s]")
np.savez(here / "numpy.npz", **arrays)
np.savez_compressed(here / "numpy_deflated.npz", **arrays)
np.lib.format.write_array(open(here / "version2.npy", "wb"), values("<f4", (5, 7)), version=(2, 0))
np.lib.format.write_array(open(here / "version3.npy", "wb"), values("<f4", (5, 7)), version=(3, 0))
np.save(here / "bfloat16.npy", values("<f4", (5, 7)).astype(ml_dtypes.bfloat16))
np.save(here / "float8_e5m2.npy", values("<f4", (5, 7)).astype(ml_dtypes.float8_e5m2))
np.save(here / "float8_e4m3fn.npy", values("<f4", (5, 7)).astype(ml_dtypes.float8_e4m3fn))

save_file({key(d): values(d, (5, 7)) for d in plain if "c" not in d}
          | {"scalar": values("<f4", ()), "empty": values("<f4", (3, 0, 2))},
          here / "safetensors.safetensors", metadata={"made": "by safetensors"})

with h5py.File(here / "h5py.h5", "w", track_order=False) as f:
    f.attrs["variable"] = "a text"
    f.attrs["fixed"] = np.bytes_(b"another")
    f.attrs["number"] = 3
    for d in plain + big:
        f.create_dataset("contiguous/" + key(d), data=values(d, (5, 7)))
    for d in ["?", "i1", "<f2", "<f4", ">f4", ">i8", "<c8"]:
        f.create_dataset("deep/chunked/" + key(d), data=values(d, (23, 17)), chunks=(5, 4),
                         compression="gzip", shuffle=True)
    f.create_dataset("four", data=values("<f4", (3, 4, 5, 6)), chunks=(2, 3, 2, 4),
                     compression="gzip")
    f.create_dataset("filled", shape=(4, 4), dtype="<f4", fillvalue=2.5, chunks=(2, 2))
    f["scalar"] = values("<f4", ())
    f["empty"] = values("<f4", (3, 0, 2))
    f["null"] = h5py.Empty("<f4")
    f["text"] = "words"
    f["record"] = np.zeros(2, dtype=[("x", "<f4"), ("y", "<i4")])
    f["enumeration"] = np.zeros(2, dtype=h5py.enum_dtype({"A": 0, "B": 1}, basetype="i1"))
    bf16 = values("<f4", (5, 7)).astype(ml_dtypes.bfloat16)
    f["bf16_opaque"] = bf16.view("V2")
    f["bf16_u2"] = bf16.view("<u2")
    f["bf16_big_u2"] = bf16.view("<u2").astype(">u2")
    f["soft"] = h5py.SoftLink("/contiguous/f4")
    f["elsewhere"] = h5py.ExternalLink("h5py.h5", "/four")
    f["deep/loop"] = f["/"]
    f["same"] = f["four"]
    layout = h5py.VirtualLayout(shape=(5, 7), dtype="<f4")
    layout[:] = h5py.VirtualSource("other.h5", "x", shape=(5, 7))
    f.create_virtual_dataset("virtual", layout)
    f.create_dataset("outside", (4,), "<f4", external=[("other.bin", 0, 16)])
    f.create_dataset("huge_chunk", (1 << 14, 1 << 14), "<f4", chunks=(1 << 13, 1 << 13),
                     compression="gzip")

with h5py.File(here / "user_block.h5", "w", userblock_size=1024) as f:
    f["x"] = values("<f4", (5, 7))

# The index that a sharded model has, here of one shard.
names = load_file(here / "safetensors.safetensors")
index = {"metadata": {"total_size": sum(a.nbytes for a in names.values())},
         "weight_map": {name: "safetensors.safetensors" for name in names}}
(here / "sharded.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
