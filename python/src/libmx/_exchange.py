# SPDX-License-Identifier: Apache-2.0
"""Quantized arrays as other libraries hold them: types of PyTorch, scales of its scaled products, torchao."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Dict, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _libmx
from ._arrays import _fail, array_of, flat, is_torch

if TYPE_CHECKING:
    from . import Blocks

# PyTorch's types by the names of formats.
_types = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "int8": "int8", "e8m0": "float8_e8m0fnu",
          "ue4m3": "float8_e4m3fn", "f32": "float32", "float32": "float32"}


class TorchParts(NamedTuple):
    """What Blocks.to_torch() returns: tensors of PyTorch; tensor_scale may be None."""
    elements: Any
    scales: Any
    tensor_scale: Any


def _layout(q: Blocks) -> Dict[str, Any]:
    return q.recipe._core.layout()


def _require_rows(q: Blocks, what: str) -> None:
    """Raises Error unless blocks run along the last axis of a matrix, which they divide."""
    by = _layout(q)
    rank = len(q.shape)
    if rank < 2 or by["rows"] != 1 or by["axis"] not in (-1, rank - 1) or q.shape[-1] % by["cols"] != 0:
        _fail(f"{what} takes matrices in 1xN blocks along the last axis, which they divide; this is "
              f"{'x'.join(map(str, q.shape)) or 'a number'} under {q.recipe}")


def swizzled(q: Blocks) -> NDArray[np.uint8]:
    """See Blocks.swizzled_scales()."""
    _require_rows(q, "swizzled_scales()")
    scales = array_of(q.scales)
    if scales.dtype != np.uint8:
        _fail(f"swizzled_scales() takes scales that are codes; those of {q.recipe} are float32")
    matrix = scales.reshape(-1, scales.shape[-1])
    down, across = -(-matrix.shape[0] // 128), -(-matrix.shape[1] // 4)
    padded = np.zeros((down * 128, across * 4), np.uint8)
    padded[:matrix.shape[0], :matrix.shape[1]] = matrix
    # Axes: tile row, row // 32, row % 32, tile column, column.
    places = padded.reshape(down, 4, 32, across, 4).transpose(0, 3, 2, 1, 4)
    return np.ascontiguousarray(places).reshape(-1)


def _typed(torch: Any, values: Any, name: str) -> Any:
    """An array as the type of PyTorch for that format, as it is where there is none."""
    t = torch.from_numpy(np.array(values))
    kind = getattr(torch, _types.get(name, ""), t.dtype)
    return t if t.dtype == kind else t.view(kind)


def to_torch(q: Blocks, swizzle: bool) -> TorchParts:
    """See Blocks.to_torch()."""
    torch: Any = importlib.import_module("torch")
    by = _layout(q)
    if q.offsets is not None:
        _fail(f"to_torch() has no counterpart of the offsets of {q.recipe}")
    pair = getattr(torch, "float4_e2m1fn_x2", None) if by["element"] == "e2m1" else None
    if pair is None:
        elements = _typed(torch, q.elements, by["element"])
    else:
        if not q.shape or q.shape[-1] % 2:
            _fail("to_torch() takes an even last axis: float4_e2m1fn_x2 is two elements")
        packed = q.codes if q._elements is None else _libmx.pack(4, flat(q._elements, np.uint8))
        elements = torch.from_numpy(flat(packed, np.uint8).copy()).reshape(*q.shape[:-1], -1).view(pair)
    scales = _typed(torch, swizzled(q) if swizzle else array_of(q.scales), by["scale_format"])
    outer = None if q.tensor_scale is None else torch.tensor(np.asarray(q.tensor_scale, np.float32))
    device = getattr(q.codes, "device", "cpu") if is_torch(q.codes) else "cpu"
    return TorchParts(*(None if part is None else part.to(device) for part in (elements, scales, outer)))


def to_torchao(q: Blocks, dtype: Any, swizzle: bool) -> Any:
    """See Blocks.to_torchao()."""
    torch: Any = importlib.import_module("torch")
    parts = [importlib.import_module(f"torchao.{name}") for name in (
        "prototype.mx_formats.constants", "prototype.mx_formats.mx_tensor", "prototype.mx_formats.nvfp4_tensor",
        "quantization.quantize_.common.kernel_preference")]
    constants: Any = parts[0]
    MXTensor, NVFP4Tensor, KernelPreference = (getattr(part, name) for part, name in zip(
        parts[1:], ("MXTensor", "NVFP4Tensor", "KernelPreference")))
    _require_rows(q, "to_torchao()")
    by = _layout(q)
    element, scale, cols = by["element"], by["scale_format"], by["cols"]
    types = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e2m3": constants.DTYPE_FP6_E2M3,
             "e3m2": constants.DTYPE_FP6_E3M2, "e2m1": torch.float4_e2m1fn_x2}
    number = (element, scale, cols) == ("e2m1", "ue4m3", 16)
    if by["rotates"] or q.offsets is not None or not (number or (scale == "e8m0" and element in types)):
        _fail(f"to_torchao(): torchao has MXFP8, MXFP6, MXFP4 and NVFP4, without offsets and rotations; this is "
              f"{q.recipe}")
    if swizzle and len(q.shape) > 2 and q.shape[-2] % 128 != 0:
        _fail("to_torchao(): torchao's swizzled scales of stacks are of matrices of a multiple of 128 rows, not "
              f"{q.shape[-2]}")
    codes, scales, outer = to_torch(q, swizzle)
    codes = codes.view(torch.uint8) if element == "e2m1" else codes
    if swizzle:  # the same bytes, in the shape that torchao gives them
        scales = scales.reshape(*q.shape[:-2], -(-q.shape[-2] // 128) * 32, -1)
    kind = torch.float32 if dtype is None else dtype
    if not number:
        return MXTensor(codes, scales, types[element], cols, kind, KernelPreference.EMULATED, None, swizzle)
    if outer is not None and (outer.dim() != 0 or by["reciprocal"]):
        _fail(f"to_torchao(): NVFP4Tensor multiplies by one tensor scale; {q.recipe} "
              f"{'keeps a reciprocal' if by['reciprocal'] else 'has several'}")
    return NVFP4Tensor(codes, scales, 16, kind, outer, None, swizzle)
