# SPDX-License-Identifier: Apache-2.0
"""Writes the fixtures of PyTorch's formats (see README.md). Run it in this folder.

Element i (C order) of every numeric tensor is (i % 113) - 7, or i % 113 where the type is unsigned;
of truth values, i % 3 == 0; of complex numbers, that value and its half as the imaginary part.
"""
import collections
import os
import shutil
import socket
import sys
import zipfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

UNSIGNED = {torch.uint8, torch.uint16, torch.uint32, torch.uint64}
DTYPES = """float32 float64 float16 bfloat16 uint8 int8 int16 int32 int64 bool uint16 uint32 uint64
complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz""".split()


def values(dtype, *shape):
    count = 1
    for extent in shape:
        count *= extent
    i = torch.arange(count) % 113
    if dtype == torch.bool:
        flat = torch.arange(count) % 3 == 0
    elif dtype in UNSIGNED:
        flat = i.to(dtype)
    elif dtype.is_complex:
        flat = torch.complex((i - 7).to(torch.float64), (i - 7).to(torch.float64) / 2).to(dtype)
    else:
        flat = (i - 7).to(torch.float32).to(dtype)
    return flat.reshape(shape)


class Configuration:
    def __init__(self):
        self.rate = 0.5


class Recorder:
    """An object with tensors among its attributes, one of them itself again."""

    def __init__(self):
        self.first = values(torch.float32, 5, 7)
        self.inner = {"second": values(torch.int8, 5, 7)}
        self.loop = self


class Wrapper:
    """An object that is rebuilt by a call with a tensor, as quantized tensors of other libraries."""

    def __init__(self, data):
        self.data = data

    def __reduce__(self):
        return Wrapper, (self.data,)


class Scaled(torch.nn.Module):
    """A module for TorchScript, with a parameter and a buffer."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(values(torch.float32, 5, 7))
        self.register_buffer("steps", values(torch.int64, 3))

    def forward(self, x):
        return x @ self.weight


def drop_debug_entries(path):
    """TorchScript stores the names of source files; nothing else is changed."""
    with zipfile.ZipFile(path) as old:
        entries = {name: old.read(name) for name in old.namelist()
                   if not name.endswith(".debug_pkl")}
    with zipfile.ZipFile(path, "w") as new:
        for name, data in entries.items():
            new.writestr(zipfile.ZipInfo(name), data)


def write_single_files():
    state = {name: values(getattr(torch, name), 5, 7) for name in DTYPES}
    state["scalar"] = values(torch.float32)
    state["empty"] = torch.zeros(3, 0, 2)
    torch.save(state, "torch_dtypes.pt")

    base = values(torch.float32, 7, 5)
    wide = torch.zeros(5, 14)
    wide[:, ::2] = values(torch.float32, 5, 7)
    cube = torch.zeros(5, 3, 4, dtype=torch.int16)
    cube.permute(1, 2, 0).copy_(values(torch.int16, 3, 4, 5))
    buffer = torch.zeros(40)
    buffer[3:38] = values(torch.float32, 5, 7).flatten()
    views = {
        "transposed": values(torch.float32, 5, 7).t().contiguous().t(),
        "stepped": wide[:, ::2],
        "permuted": cube.permute(1, 2, 0),
        "offset": buffer[3:38].view(5, 7),
        "row": values(torch.float32, 7)[None].expand(3, 7),
        "column": values(torch.float32, 3)[:, None].expand(3, 4),
        "channels_last": values(torch.float32, 2, 3, 4, 5).to(memory_format=torch.channels_last),
        "overlapping": values(torch.float32, 9).as_strided((3, 5), (2, 1)),
        "negative": torch._neg_view(base),
    }
    torch.save(views, "torch_views.pt")

    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    module[0].weight.data = values(torch.float32, 3, 4)
    embedding = torch.nn.Parameter(values(torch.float32, 5, 7))
    optimizer = torch.optim.AdamW([embedding])
    embedding.grad = torch.ones(5, 7)
    optimizer.step()
    embedding.data = values(torch.float32, 5, 7)
    for entry in optimizer.state.values():
        entry["exp_avg"].copy_(values(torch.float32, 5, 7))
    torch.save({
        "model": collections.OrderedDict(embedding=embedding, head=embedding,
                                         first_rows=embedding.detach()[:2]),
        "optimizer": optimizer.state_dict(),
        "history": [values(torch.float64, 2, 3), (values(torch.uint8, 3), "text")],
        3: values(torch.float32, 2),
        "epoch": 12,
        "module": module,
        "configuration": Configuration(),
        "recorder": Recorder(),
        "quantized": torch.quantize_per_tensor(values(torch.float32, 5, 7), 0.5, 0, torch.qint8),
        "sparse": torch.eye(3).to_sparse(),
        "high_precision": values(torch.bfloat16, 5, 7),
        "wrapper": Wrapper(values(torch.float32, 5, 7)),
    }, "torch_nested.pt")

    torch.save(values(torch.float32, 5, 7), "torch_tensor.pt")
    torch.save(Configuration(), "torch_object.pt")
    torch.save({"x": values(torch.float32, 5, 7)}, "torch_old.pt",
               _use_new_zipfile_serialization=False)
    # The output of a big-endian machine; torch.save only writes the byte order of its machine.
    write_big_endian("torch_big_endian.pt")

    torch.jit.script(Scaled()).save("torch_script.pt")
    drop_debug_entries("torch_script.pt")


def write_big_endian(path):
    state = {name: values(getattr(torch, name), 5, 7)
             for name in ["float32", "bfloat16", "int64", "complex64", "uint8"]}
    swapped = collections.OrderedDict()
    for name, tensor in state.items():
        part = tensor.element_size() // (2 if tensor.is_complex() else 1)
        raw = tensor.contiguous().view(torch.uint8).reshape(-1, part).flip(1).contiguous()
        swapped[name] = raw.flatten().view(tensor.dtype).reshape(tensor.shape)
    original = sys.byteorder
    sys.byteorder = "big"  # what torch.save writes into the entry `byteorder`
    try:
        torch.save(swapped, path)
    finally:
        sys.byteorder = original


def rank(index, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=index, world_size=world)
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor
    mesh = init_device_mesh("cpu", (world,))

    def shard(tensor, axis):
        return distribute_tensor(tensor, mesh, [Shard(axis)])

    dcp.save({
        "rows": shard(values(torch.float32, 5, 7), 0),
        "columns": shard(values(torch.bfloat16, 6, 70), 1),
        "one_row": shard(values(torch.float32, 1, 7), 0),
        "replicated": values(torch.int32, 5, 7),
        "scalar": values(torch.float32),
        "optimizer": {"state": {"w": {"exp_avg": shard(values(torch.float32, 4, 3), 0)}},
                      "rate": 0.1},
    }, checkpoint_id="torch_distributed")
    dist.destroy_process_group()


if __name__ == "__main__":
    write_single_files()
    shutil.rmtree("torch_distributed", ignore_errors=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    mp.spawn(rank, args=(2, free), nprocs=2)
