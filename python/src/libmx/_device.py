# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of CUDA devices: quantized there, on the stream of their library, without a copy."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

from . import _libmx
from ._arrays import _fail, _names, is_torch, require_memory

_CUDA = 2  # of DLPack's devices
# Of the CUDA array interface, which has no bfloat16.
_typestrings = {"<f4": "F32", "<f2": "F16", "|u1": "U8", "<u2": "U16", "<i2": "I16"}
_types = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}


def holds(x: Any) -> bool:
    """Whether x is an array in the memory of a CUDA device."""
    if is_torch(x):
        return x.device.type == "cuda" and sys.modules["torch"].version.hip is None
    if hasattr(x, "__cuda_array_interface__"):
        return True
    try:
        return hasattr(x, "__dlpack_device__") and x.__dlpack_device__()[0] == _CUDA
    except (BufferError, RuntimeError, ValueError):  # on several devices
        return False


@functools.lru_cache(maxsize=1)
def missing() -> str:
    """Why no device can be used; "" if one can."""
    return _libmx.missing_device()


@functools.lru_cache(maxsize=4096)
def _copies(recipe: str, shape: Tuple[int, ...], packed: bool) -> str:
    return _libmx.copies(_libmx.Recipe(recipe), shape, packed)


def copies(x: Any, recipe: Any, packed: bool = False) -> str:
    """Why x would be copied to the host under a recipe; "" if not. Raises Error without the recipe's axis."""
    return _copies(str(recipe), tuple(map(int, x.shape)), packed)


def takes(x: Any, recipe: str) -> bool:
    """Whether x, a tensor of PyTorch, can be quantized where it is by kernels of this library."""
    return (x.device.type == "cuda" and holds(x) and not missing() and str(x.dtype).rpartition(".")[2] in
            ("float32", "bfloat16", "float16") and not sys.modules["torch"].cuda.is_current_stream_capturing()
            and not copies(x, recipe))


class _Place(NamedTuple):
    address: int
    shape: Tuple[int, ...]
    dtype: str
    device: int
    stream: int
    owner: Any  # of the memory, while work is queued

    def array(self, name: str = "") -> Any:
        return _libmx.DeviceArray.of(self.address, self.shape, self.dtype, self.device, self.stream, name)


def _of_torch(x: Any) -> _Place:
    torch = sys.modules["torch"]
    require_memory(x)
    x = x.detach().resolve_neg().contiguous()
    stored = _names.get(str(x.dtype).rpartition(".")[2], "")
    stream = torch.cuda.current_stream(x.device).cuda_stream
    return _Place(x.data_ptr(), tuple(x.shape), stored, x.device.index, stream, x)


def _of_interface(x: Any) -> _Place:
    d = x.__cuda_array_interface__
    shape, strides = tuple(d["shape"]), d.get("strides")
    stored = _typestrings.get(d["typestr"], d["typestr"])
    if strides is not None:
        size = int(d["typestr"][2:])
        for n, step in reversed(list(zip(shape, strides))):
            if n != 1 and step != size:
                _fail(f"{type(x).__name__} on a GPU is not contiguous: copy it first")
            size *= n
    device = x.__dlpack_device__()[1] if hasattr(x, "__dlpack_device__") else 0
    return _Place(d["data"][0], shape, stored, device, d.get("stream") or 0, x)


def place_of(x: Any) -> _Place:
    """Where x is. Raises Error for what is not contiguous, and for types without kernels."""
    if missing():
        _fail(f"the array is on a GPU, which this libmx does not use: {missing()}; "
              f"{'x.cpu()' if is_torch(x) else 'a copy on the host'} is quantized as well")
    if is_torch(x):
        place = _of_torch(x)
    elif hasattr(x, "__cuda_array_interface__"):
        place = _of_interface(x)
    else:
        address, shape, stored, device = _libmx.dlpack_place(x)
        place = _Place(address, tuple(shape), stored, device, 0, x)
    if place.dtype not in _types and place.dtype not in ("U8", "U16", "I16"):
        _fail(f"{x.dtype} on a GPU is none of float32, bfloat16 and float16: convert it first")
    return place


def _numbers(x: Any) -> _Place:
    place = place_of(x)
    if place.dtype not in _types:
        _fail(f"{x.dtype} on a GPU is none of float32, bfloat16 and float16: convert it first")
    return place


def _empty(like: Any, shape: Sequence[int], dtype: str) -> Any:
    """An array of like's library on like's device."""
    if is_torch(like):
        torch = sys.modules["torch"]
        return torch.empty(tuple(shape), dtype=getattr(torch, dtype), device=like.device)
    if not hasattr(like, "__array_namespace__"):
        _fail(f"{type(like).__name__}: its library does not say how to make an array on a GPU; give out=")
    space = like.__array_namespace__()
    return space.empty(tuple(shape), dtype=getattr(space, dtype), device=like.device)


def _changed_in_place(out: Any) -> Optional[Callable[[Any], None]]:
    """What tells PyTorch that kernels wrote to `out`, as its own operations do; None if they must not."""
    tells: Optional[Callable[[Any], None]] = getattr(sys.modules["torch"].autograd.graph, "increment_version", None)
    fits = holds(out) and out.is_contiguous() and str(out.dtype).rpartition(".")[2] in _types.values()
    return tells if fits and not out.requires_grad and not out.is_neg() else None


def fake_quantize(x: Any, core: Any, name: str, out: Any) -> Any:
    here = _numbers(x)
    if out is not None and tuple(out.shape) != here.shape:
        _fail(f"out has the shape {tuple(out.shape)}; {here.shape} is expected")
    changed = _changed_in_place(out) if is_torch(out) else None
    direct = not is_torch(out) or changed is not None
    y = out if out is not None and direct else _empty(x, here.shape, _types[here.dtype])
    _libmx.fake_quantize_there(here.array(name), core, _numbers(y).array())
    if changed is not None:
        changed(out)
    if direct:
        return y
    with sys.modules["torch"].no_grad():
        out.copy_(y)
    return out


def cast(x: Any, element: str, round: str, saturate: bool, seed: int, name: str) -> Any:
    here = _numbers(x)
    y = _empty(x, here.shape, "float32")
    _libmx.cast_there(here.array(name), element, round, saturate, seed, _numbers(y).array())
    return y


def quantize(x: Any, core: Any, name: str) -> Tuple[Any, ...]:
    """Shape, codes, scales, offsets and the tensor scale, as Blocks has them, on x's device."""
    here = _numbers(x)
    count, grid, has_offsets = _libmx.packed_layout(core, here.shape)
    codes, scales = _empty(x, (count,), "uint8"), _empty(x, grid, "uint8")
    offsets = _empty(x, grid, "int16" if is_torch(x) else "uint16") if has_offsets else None
    places = [0 if part is None else place_of(part).address for part in (codes, scales, offsets)]
    return here.shape, codes, scales, offsets, _libmx.quantize_there(here.array(name), core, *places)


def dequantize(q: Any, core: Any, dtype: Optional[str]) -> Any:
    parts: List[Optional[_Place]] = [None if part is None else place_of(part)
                                     for part in (q.codes, q.scales, q.offsets)]
    count, grid, has_offsets = _libmx.packed_layout(core, q.shape)
    sizes = [(count,), tuple(grid), tuple(grid) if has_offsets else None]
    if [None if part is None else part.shape for part in parts] != sizes:
        _fail(f"blocks of {q.shape} under {q.recipe} have parts of the shapes {sizes}")
    y = _empty(q.codes, q.shape, "float32" if dtype is None else dtype)
    _libmx.dequantize_there(*(0 if part is None else part.address for part in parts), q.tensor_scale, core,
                            _numbers(y).array())
    return y


def update(cores: List[Any], x: Any) -> None:
    _libmx.Statistics.update_there(cores, _numbers(x).array())
