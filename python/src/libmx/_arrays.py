# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries as views, without a copy, and results back in their library."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Tuple, TypeVar, Union

import numpy as np

from . import _libmx

if TYPE_CHECKING:
    from typing_extensions import Buffer


class DLPack(Protocol):
    """An array of NumPy, PyTorch, JAX and others."""

    def __dlpack__(self) -> Any: ...


WithoutLibrary = Union["Buffer", _libmx.View]
Array = Union[DLPack, WithoutLibrary]
Like = TypeVar("Like", bound=DLPack)

# Names of types in NumPy, ml_dtypes and PyTorch, by their names in files.
_names = {
    "float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0",
    "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "int8": "I8", "uint8": "U8", "int16": "I16", "uint16": "U16", "int32": "I32",
    "uint32": "U32", "int64": "I64", "uint64": "U64",
}
_carriers = {1: "uint8", 2: "int16"}  # of types that no exchange protocol has


def _fail(message: str) -> NoReturn:
    raise _libmx.Error(message)


def _torch() -> Any:
    return sys.modules.get("torch")


_set_threads = 0


def set_num_threads(threads: int) -> None:
    """Sets how many threads a call uses that does not say `threads=`. Calls of few elements use the
    caller's thread only. Results do not depend on it.

    Parameters
    ----------
    threads
        0 as before any call of this: torch.get_num_threads() where torch is imported, otherwise
        OMP_NUM_THREADS, otherwise those of the machine.

    Returns
    -------
    None

    Raises
    ------
    Error
        For a number below 0 or above 32767.

    Examples
    --------
    >>> libmx.set_num_threads(0)
    """
    global _set_threads
    _set_threads = _counted(threads)


def _counted(threads: int) -> int:
    if not 0 <= threads < 2 ** 15:
        _fail(f"threads={threads}: a number up to 32767 is expected, or 0")
    return threads


def threads_of(threads: int) -> int:
    """The number of threads for the compiled part, 0 if the environment decides."""
    return _counted(threads) or _set_threads or int(
        getattr(_torch(), "get_num_threads", int)())


def is_torch(x: Any) -> bool:
    torch = _torch()
    return torch is not None and isinstance(x, torch.Tensor)


def _without_memory(x: Any) -> str:
    """What a tensor of PyTorch without memory is, and what gives its values."""
    kind = type(x).__name__
    if kind == "FakeTensor":
        return "is a FakeTensor, a shape without values: call libmx outside of FakeTensorMode"
    if x.device.type == "meta":
        return "is on meta, a shape without values: load or initialize it first"
    if "Uninitialized" in kind:
        return "is not initialized: run a batch through its module first"
    if hasattr(x, "to_local"):
        return (f"is a {kind}, without memory of its own: x.full_tensor() gathers it, x.to_local() is "
                "the part of this process")
    if hasattr(x, "local_tensor"):
        return f"is a {kind}, without memory of its own: x.local_tensor() is the part of this process"
    if hasattr(x, "wait"):
        return f"is a {kind}, on its way from other processes: x.wait() gives it"
    if hasattr(x, "get_data"):
        return f"is a {kind}: x.get_data() gives its values, x.get_mask() its mask"
    torch = _torch()
    if hasattr(x, "_is_zerotensor") and x._is_zerotensor():
        return "is made of zeros without memory: torch.zeros(x.shape) has some"
    if type(x) not in (torch.Tensor, torch.nn.Parameter):
        return (f"is a {kind}, which keeps its values in other tensors: x.dequantize(), or what its "
                "library has for it, gives a plain tensor")
    return ("has no memory, as inside of torch.func (vmap, grad, functionalize): call libmx outside "
            "of it")


def require_numbers(x: Any) -> None:
    """Raises Error unless a tensor of PyTorch is real numbers, one for each element."""
    if x.is_nested:
        _fail("the tensor is nested: x.unbind() gives its parts")
    if x.layout != _torch().strided:
        _fail(f"the tensor is {x.layout}: x.to_dense() makes it strided")
    if x.dtype.is_complex:
        _fail(f"{x.dtype} is no type of real numbers: torch.view_as_real(x.resolve_conj()) gives its "
              "parts")
    if x.is_quantized:
        _fail(f"{x.dtype} has scales of its own: x.dequantize() gives its values, x.int_repr() its codes")


def require_memory(x: Any) -> None:
    """Raises Error unless a tensor of PyTorch is numbers in memory of its own, on any device."""
    require_numbers(x)
    try:
        count = x.numel()
        if count == 0:
            return
        has_memory = x.data_ptr() != 0
        storage = x.untyped_storage() if hasattr(x, "untyped_storage") else x.storage()
        last = x.storage_offset() + (count - 1 if x.is_contiguous() else sum(
            (n - 1) * step for n, step in zip(x.shape, x.stride())))
        held, needed = storage.nbytes(), (last + 1) * x.element_size()
    except (RuntimeError, ValueError):  # PyTorch's answer where there is nothing to point at
        has_memory, held, needed = False, 0, 0
    if held < needed:  # the pointer of a part of a freed storage is not null
        _fail(f"the tensor's storage was freed, it has {held} of {needed} bytes: fill it first, under "
              "FSDP by unshard() or summon_full_params()")
    if not has_memory:
        _fail(f"the tensor {_without_memory(x)}")


@functools.lru_cache(maxsize=None)
def _torch_type(dtype: Any) -> str:
    """The name of a type in files."""
    spelled = str(dtype).rpartition(".")[2]
    if spelled not in _names:
        _fail(f"{dtype} is no type of numbers that libmx reads")
    return _names[spelled]


@functools.lru_cache(maxsize=None)
def _numpy_type(dtype: Any) -> Tuple[str, Any]:
    spelled = dtype.name
    if spelled not in _names:
        _fail(f"dtype {spelled} is no type of numbers that libmx reads: "
              "x.astype(numpy.float32) converts it")
    if not dtype.isnative:
        _fail(f"dtype {dtype} is of the other byte order: x.astype({spelled!r}) converts it")
    extended = dtype.kind == "V" or spelled == "bfloat16" or spelled.startswith("float8")
    return _names[spelled], _carriers[dtype.itemsize] if extended else None


def as_view(x: Any, name: str) -> Any:
    """A view of x under `name`; views themselves keep their name unless one is given."""
    if isinstance(x, (np.ndarray, np.generic)):
        x = np.asarray(x)
        stored, carrier = _numpy_type(x.dtype)
        return _libmx.View.of(x if carrier is None else x.view(carrier), stored, name)
    if isinstance(x, _libmx.View):
        return x.named(name) if name else x
    if is_torch(x):
        torch = _torch()
        require_memory(x)
        if x.device.type != "cpu":
            _fail(f"the tensor is on {x.device}: x.cpu() copies it to where libmx reads")
        x = x.detach().resolve_neg()  # a negative view is negated in a copy
        if type(x) is not torch.Tensor:
            x = x.as_subclass(torch.Tensor)
        # By its address: PyTorch's DLPack takes 4 us.
        return _libmx.View.at(x.data_ptr(), x.shape, x.stride(), _torch_type(x.dtype), name, x)
    if hasattr(x, "__dlpack__"):
        spelled = str(getattr(x, "dtype", "")).rpartition(".")[2]
        if spelled not in _names:
            _fail(f"{type(x).__name__} of {getattr(x, 'dtype', 'no dtype')} is no array of numbers "
                  "that libmx reads")
        try:
            return _libmx.View.of(x, _names[spelled], name)
        except TypeError:
            _fail(f"{type(x).__name__} does not give its memory by DLPack: it is on another "
                  "device, of a type that DLPack lacks, or read-only in a library without DLPack 1")
    try:
        return as_view(np.asarray(memoryview(x)), name)
    except (TypeError, ValueError):
        _fail(f"{type(x).__name__} is no array: it has neither DLPack nor the buffer protocol")


@functools.lru_cache(maxsize=None)
def _stored_name(dtype: Any) -> str:
    return _names.get(getattr(dtype, "name", None) or str(dtype).rpartition(".")[2], "")


def dtype_name(x: Any) -> str:
    """The type of x by the names that files use; "" for others."""
    return _stored_name(getattr(x, "dtype", None))


def narrow_type(x: Any) -> str:
    """The type in which the compiled part returns results for x."""
    known = is_torch(x) or isinstance(x, (np.ndarray, np.generic))
    stored = dtype_name(x) if known else ""
    return stored if stored in ("BF16", "F16") else "F32"


def of_bits(y: Any, kind: str) -> Any:
    """Results of the compiled part, bits of bfloat16 as int16 for torch and ml_dtypes to view."""
    return y.view(np.float16) if kind == "F16" else y.view(np.int16) if kind == "BF16" else y


def bits_of(out: Any, x: Any) -> Any:
    """A NumPy array over the memory of `out` for writing in place, or None: for tensors of PyTorch,
    which count changes, for other types and layouts than those of results, and for memory that overlaps
    x."""
    if not isinstance(out, np.ndarray) or not out.flags.c_contiguous or not out.flags.writeable:
        return None
    if dtype_name(out) not in ("F32", "BF16", "F16"):
        return None
    if isinstance(x, np.ndarray) and np.may_share_memory(x, out):
        if x.ctypes.data != out.ctypes.data or x.strides != out.strides or x.dtype != out.dtype:
            return None
    return out if out.dtype == np.float32 else out.view(np.int16)


def converted(y: Any, dtype: Any) -> Any:
    """y, an array of NumPy, in `dtype`: rounded to nearest even, with subnormals, whatever the mode of
    the caller's arithmetic."""
    with _libmx.PlainArithmetic():
        return np.asarray(y).astype(dtype, copy=False)


def array_of(x: Any) -> Any:
    """x as an array of NumPy, on the host."""
    if is_torch(x):
        require_memory(x)
        x = x.detach().resolve_neg().cpu()
    elif hasattr(x, "__cuda_array_interface__") and hasattr(x, "get"):  # as CuPy calls it
        x = x.get()
    return np.asarray(x)


def flat(x: Any, dtype: Any) -> Any:
    """x along one axis, in `dtype`."""
    return np.ascontiguousarray(converted(array_of(x), dtype)).reshape(-1)


def like(x: Any, y: Any) -> Any:
    """Results in the library and floating type of x: `y` has this type already, or its bits, or is
    float32, which stays for integers."""
    if is_torch(x):
        torch = _torch()
        if x.dtype == torch.float32:
            return torch.from_numpy(y)
        if y.dtype == np.int16:
            return torch.from_numpy(y).view(torch.bfloat16)
        if x.dtype == torch.float64:  # PyTorch's threads may have the caller's mode
            y = converted(y, np.float64)
        t = torch.from_numpy(y)
        with _libmx.PlainArithmetic():
            return t.to(x.dtype) if x.dtype.is_floating_point else t
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype != y.dtype:
        if y.dtype == np.int16:
            return y.view(x.dtype)
        if x.dtype.kind == "f" or _names.get(x.dtype.name, "").startswith(("BF", "F")):
            return converted(y, x.dtype)
    return y
