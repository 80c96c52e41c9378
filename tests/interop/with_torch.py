# SPDX-License-Identifier: Apache-2.0
"""PyTorch: every dtype that torch.save stores, views, nested containers, tied tensors, modules,
TorchScript, and torch.distributed.checkpoint of one process."""
import collections
import os

import harness

np, torch = harness.need("numpy", "torch")
from arrays import SHAPES, bits, expected  # noqa: E402  (needs NumPy)

here = harness.scratch()
NUMPY = {"bool": "b1", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4",
         "uint32": "u4", "int64": "i8", "uint64": "u8", "float16": "f2", "float32": "f4",
         "float64": "f8", "complex64": "c8", "complex128": "c16"}
NARROW = {"bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
          "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ",
          "float8_e8m0fnu": "F8_E8M0"}


def made(name, shape, seed=1):
    """A tensor of random bits."""
    if name in NUMPY:
        return torch.from_numpy(np.array(bits(NUMPY[name], shape, seed)))
    dtype = getattr(torch, name)
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    raw = bits("u1", (int(np.prod(shape, dtype=np.int64)) * dtype.itemsize,), seed)
    return torch.from_numpy(np.array(raw)).view(dtype).reshape(shape)


def wanted(tensor):
    """`tensor` in C order; values by NumPy where it knows the dtype, else by PyTorch."""
    tensor = tensor.detach().resolve_neg().resolve_conj()
    name = str(tensor.dtype).split(".")[1]
    tensor = tensor.clone(memory_format=torch.contiguous_format)
    if name in NUMPY:
        return expected(tensor.numpy())
    stored = tensor.reshape(-1).view(torch.uint8).numpy().tobytes()
    return harness.Expected(NARROW[name], tensor.shape, stored, tensor.to(torch.float32).numpy())


def check(path, state):
    harness.check(path, {name: wanted(tensor) for name, tensor in state.items()})


def views():
    for name in ["float32", "bfloat16", "float8_e4m3fn", "int64", "complex128"]:
        base = made(name, (12, 10, 8))
        yield name + ".transposed", base.transpose(0, 2)
        yield name + ".permuted", base.permute(1, 2, 0)
        yield name + ".stepped", base[1::3, ::2, 3:]
        yield name + ".row", base[5]
        yield name + ".column", base[:, 4, 2]
        yield name + ".expanded", base[:1, :, :1].expand(7, 10, 9)
        yield name + ".overlapping", base.as_strided((5, 6, 7), (3, 2, 1), 11)
        yield name + ".last", base.flatten()[-1]
        yield name + ".none", base[3:3]
    image = made("float32", (2, 3, 8, 9))
    yield "channels_last", image.to(memory_format=torch.channels_last)
    yield "large", made("float32", (2100, 2200)).t()  # beyond what is turned in memory


state = {f"{name}.{'x'.join(map(str, shape))}": made(name, shape)
         for name in [*NUMPY, *NARROW] if hasattr(torch, name) for shape in SHAPES}
torch.save(state, here / "dtypes.pt")
check(here / "dtypes.pt", state)
torch.save(collections.OrderedDict(views()), here / "views.pth")
check(here / "views.pth", dict(views()))

weight = torch.nn.Parameter(made("float32", (6, 5)))
model = torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.BatchNorm1d(6))
model[0].weight = weight  # tied
optimizer = torch.optim.AdamW(model.parameters())
model(torch.ones(3, 5)).sum().backward()
optimizer.step()
torch.save({"model": model.state_dict(), "tied": weight, "optimizer": optimizer.state_dict(),
            "list": [made("int8", (3,)), (made("uint8", (4,)), "text", None)], "epoch": 3},
           here / "nested.bin")
nested = {"model." + name: tensor for name, tensor in model.state_dict().items()}
nested["tied"] = weight
for index, entry in optimizer.state_dict()["state"].items():
    for name, tensor in entry.items():
        nested[f"optimizer.state.{index}.{name}"] = tensor
nested["list.0"], nested["list.1.0"] = made("int8", (3,)), made("uint8", (4,))
check(here / "nested.bin", nested)

torch.save(model, here / "module.pt")
check(here / "module.pt", model.state_dict())
torch.save(made("float16", (3, 4)), here / "single.pt")
check(here / "single.pt", {"single": made("float16", (3, 4))})
torch.jit.script(model).save(str(here / "script.pt"))
check(here / "script.pt", model.state_dict())

try:
    import torch.distributed.checkpoint as dcp
    os.environ.setdefault("USE_LIBUV", "0")
    dcp.save(dict(state), checkpoint_id=here / "distributed", no_dist=True)
except Exception as problem:
    print("not written here: torch.distributed.checkpoint", problem)
else:
    check(here / "distributed", state)
harness.finish()
