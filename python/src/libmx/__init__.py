# SPDX-License-Identifier: Apache-2.0
"""Block-scaled low-precision formats, bit for bit: the mx toolkit for Python.

Arrays are NumPy arrays (ml_dtypes types too), PyTorch tensors, or anything with DLPack or the buffer
protocol, with any strides. None is copied. Other objects raise an Error. Every result is the same
bytes as that of the command `mx`, whatever the number of threads.

Contiguous float32, bfloat16 and float16 on a CUDA device (DLPack, CUDA array interface) stay there, and
so do results, which are queued on the current stream, if libmx was built with CUDA.

>>> import numpy as np, libmx
>>> x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(2, 32)
>>> codes, scales = libmx.quantize(x, "mxfp4:scale=even")
>>> libmx.fake_quantize(x, "mxfp4:scale=even")[0, :4]
array([-3., -3., -3., -3.], dtype=float32)
"""

from __future__ import annotations

import atexit
import builtins
import functools
import json
import os
import tempfile
from typing import (Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union,
                    overload)

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import _device, _exchange, _libmx
from ._arrays import (Array, Like, WithoutLibrary, array_of as _array, as_view, bits_of, converted, flat as _flat,
                      is_torch, like, narrow_type, of_bits, require_memory, set_num_threads, threads_of)
from ._documents import (Analysis, Document, Gate, Model, Path, Source, Texts, arrays_of, dumps_of, gate, name_of,
                         open as open, page_of, reading_options, report, results_of, sha256_of, source_of, texts)

Error = _libmx.Error
MissingFileError = _libmx.MissingFileError
ForbiddenFileError = _libmx.ForbiddenFileError
__version__ = "0.1.0"
# Without `open`, which Python has: `import *` leaves that.
__all__ = ["Analysis", "Blocks", "Document", "Error", "ForbiddenFileError", "Gate", "MissingFileError",
           "Model", "Recipe", "Statistics", "analyze", "cast", "cluster", "compare", "dequantize",
           "dialects", "diff", "evaluate", "explain", "fake_quantize", "formats", "gate", "lint",
           "matmul", "quantize", "recipe", "report", "save_checkpoint", "set_num_threads",
           "statistics"]


def __dir__() -> List[str]:
    return sorted([*__all__, "open", "torch", "__doc__", "__version__"])


class Recipe:
    """How values become codes and scales. `str()` gives the canonical spelling, by which recipes
    are compared, hashed and pickled. A notebook shows what libmx.explain() says of it.

    Raises
    ------
    Error
        Naming the part that is wrong.
    """

    __slots__ = ("_core", "_text")

    def __init__(self, text: str) -> None:
        self._core = _libmx.Recipe(text)
        self._text = str(self._core)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"libmx.recipe({self._text!r})"

    def _repr_html_(self) -> str:
        return explain(self)._repr_html_()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> Tuple[Any, ...]:
        return Recipe, (self._text,)


RecipeLike = Union[str, Recipe]
Recipes = Union[RecipeLike, Iterable[RecipeLike]]
RecipeValue = Union[str, int, bool, Tuple[int, int]]


def recipe(recipe: RecipeLike, **keys: RecipeValue) -> Recipe:
    """Parses `PRESET[:key=value,...]`.

    Parameters
    ----------
    recipe
        Such as "mxfp4:scale=even", or a Recipe.
    **keys
        Keys of the recipe, in place of those in the text: block=16 or block=(16, 16), axis=,
        round=, scale=, dialect= and the others of `mx explain rules`.

    Returns
    -------
    Recipe

    Raises
    ------
    Error
        For what is no recipe, naming the part that is wrong.

    Examples
    --------
    >>> libmx.recipe("mxfp4", block=16, round="stochastic")
    libmx.recipe('mxfp4:round=stochastic,block=1x16')
    """
    if not isinstance(recipe, (str, Recipe)):
        raise Error(f"a {type(recipe).__name__} is no recipe: a string such as 'mxfp4:scale=even' is expected")
    if keys:
        preset, _, rest = str(recipe).partition(":")
        parts = [part for part in rest.split(",") if part and part.partition("=")[0] not in keys]
        recipe = f"{preset}:{','.join(parts + [f'{k}={_spelled(k, v)}' for k, v in keys.items()])}"
    return recipe if isinstance(recipe, Recipe) else _parsed(recipe)


_recipe_of = recipe
# A file that a recipe names is read when the recipe is used, not here.
_parsed = functools.lru_cache(maxsize=256)(Recipe)
atexit.register(_parsed.cache_clear)  # before nanobind counts what is left


def _spelled(key: str, value: RecipeValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return f"1x{value}" if key == "block" and isinstance(value, int) else str(value)


def _spelled_type(dtype: Any) -> Optional[str]:
    """The name of a type of any library."""
    if dtype is None or isinstance(dtype, str):
        return dtype
    return getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype).rpartition(".")[2]


class Blocks:
    """A quantized array. Unpacks into its arrays: codes, scales, then offsets and tensor_scale where
    the recipe has them, so that no part of the values is left out.

    codes: uint8, packed as `mx quantize --packed` stores them (4-bit codes two to a byte, low
    nibble first; 6-bit codes four in three bytes), one axis. scales: one per block in the shape of
    the grid, uint8 codes of the scale format, or float32 if scales have no codes. offsets: uint16
    bits of binary16, or None. tensor_scale: a number, or None; under outer=row, col or ROWSxCOLS a
    float32 array with one for each row, column or tile. elements: one code to a byte, in x's shape;
    unpacked on first use, and read by dequantize() from then on.
    """

    __slots__ = ("recipe", "shape", "codes", "scales", "offsets", "tensor_scale", "_elements")

    def __init__(self, recipe: RecipeLike, shape: Sequence[int], codes: Array, scales: Array,
                 offsets: Optional[Array] = None,
                 tensor_scale: Union[None, float, Array] = None) -> None:
        self.recipe = _recipe_of(recipe)
        self.shape = tuple(map(int, shape))
        # Parts stay as they are given: dequantize() converts those of other libraries.
        parts: Any = codes, scales, offsets, tensor_scale
        self.codes: NDArray[Any] = parts[0]
        self.scales: NDArray[Any] = parts[1]
        self.offsets: Optional[NDArray[np.uint16]] = parts[2]
        self.tensor_scale: Union[None, float, NDArray[np.float32]] = parts[3]
        self._elements: Optional[NDArray[np.uint8]] = None

    @property
    def elements(self) -> NDArray[np.uint8]:
        if self._elements is None:
            count = int(np.prod(self.shape, dtype=np.int64))
            self._elements = _libmx.unpack(self.recipe._core.bits(), _flat(self.codes, np.uint8),
                                           count).reshape(self.shape)
        return self._elements

    @property
    def nbytes(self) -> int:
        """The bytes of codes, scales and offsets."""
        return sum(_array(part).nbytes for part in (self.codes, self.scales, self.offsets)
                   if part is not None)

    def __iter__(self) -> Iterator[Any]:
        others = (part for part in (self.offsets, self.tensor_scale) if part is not None)
        return iter((self.codes, self.scales, *others))

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> NDArray[Any]:
        return self.dequantize(dtype)

    def _repr_html_(self) -> str:
        return page_of({"recipe": self.recipe, "shape": self.shape, "scales": _array(self.scales).shape,
                        "tensor scale": self.tensor_scale, "bytes": f"{self.nbytes:,}"})

    def __repr__(self) -> str:
        return f"<libmx.Blocks {self.shape} {self.recipe}>"

    def __getstate__(self) -> Tuple[Any, ...]:
        return (self.recipe, self.shape, self.codes, self.scales, self.offsets,
                self.tensor_scale, self._elements)

    def __setstate__(self, state: Tuple[Any, ...]) -> None:
        for name, value in zip(self.__slots__, state):
            setattr(self, name, value)

    def dequantize(self, dtype: Optional[DTypeLike] = None, threads: int = 0) -> NDArray[Any]:
        """The values: offset + tensor_scale * scale * value, rotated back if the recipe rotates.

        Parameters
        ----------
        dtype
            A type of NumPy or ml_dtypes, to which they are rounded once; float32 by default. On a GPU
            float32, bfloat16 or float16, by its name or as a type of the array's library.
        threads
            See set_num_threads().

        Returns
        -------
        numpy.ndarray
            Of the shape `shape`; codes on a GPU give an array of their library there.

        Raises
        ------
        Error
            If the parts do not fit the shape.
        """
        if self._elements is None and _device.holds(self.codes):
            there: NDArray[Any] = _device.dequantize(self, self.recipe._core, _spelled_type(dtype))
            return there
        packed = self.codes if self._elements is None else _libmx.pack(
            self.recipe._core.bits(), _flat(self._elements, np.uint8))
        scales = _array(self.scales)
        coded = scales.dtype == np.uint8
        outer: Any = self.tensor_scale
        one = outer is None or np.ndim(outer) == 0
        y = _libmx.dequantize(
            self.recipe._core, list(self.shape), _flat(packed, np.uint8),
            _flat(scales if coded else (), np.uint8), _flat(() if coded else scales, np.float32),
            _flat(() if self.offsets is None else self.offsets, np.uint16),
            outer if one else None, _flat(() if one else outer, np.float32), threads_of(threads))
        return y if dtype is None else converted(y, dtype)

    def swizzled_scales(self) -> NDArray[np.uint8]:
        """The scales in the order of NVIDIA's scaled products, with one axis: tiles of 128 rows by 4
        columns of scales, 512 bytes each, tile after tile along a row of tiles. In a tile, that of row r
        and column c is byte (r % 32) * 16 + r // 32 * 4 + c; missing rows and columns are zero. Axes
        before the last two are rows.

        Returns
        -------
        numpy.ndarray
            uint8 codes of the scale format.

        Raises
        ------
        Error
            For arrays that are no matrices in 1xN blocks along the last axis, and for scales without
            codes.

        Examples
        --------
        >>> q = libmx.quantize(np.ones((64, 96), np.float32), "mxfp8")
        >>> q.scales.shape, q.swizzled_scales().shape
        ((64, 3), (512,))
        """
        return _exchange.swizzled(self)

    def to_torch(self, swizzle: bool = False) -> _exchange.TorchParts:
        """Codes and scales as tensors of PyTorch in its types, of copies of the bytes.

        Parameters
        ----------
        swizzle
            The scales are swizzled_scales(), as torch._scaled_mm takes them.

        Returns
        -------
        TorchParts
            elements in the shape of the array: float8_e4m3fn, float8_e5m2, int8, or float4_e2m1fn_x2
            with two along the last axis (low nibble first); uint8 codes of other formats, and where
            PyTorch lacks the type. scales: float8_e8m0fnu, float8_e4m3fn (UE4M3), float32, or uint8
            (UE5M3). tensor_scale: as in Blocks, a float32 tensor or None.

        Raises
        ------
        Error
            For recipes with an offset, for an odd last axis of E2M1, and as swizzled_scales().
        """
        return _exchange.to_torch(self, swizzle)

    def to_torchao(self, dtype: Any = None, swizzle: bool = False) -> Any:
        """An MXTensor or NVFP4Tensor of torchao 0.15 or later with these codes and scales: that which
        torchao makes itself under `dialect=torchao@0.18`, if the installed one is 0.18.

        Parameters
        ----------
        dtype
            The type of PyTorch that the tensor stands for; float32 by default.
        swizzle
            Its scales are swizzled.

        Raises
        ------
        Error
            For recipes without a counterpart: other formats than MXFP8, MXFP6, MXFP4 and NVFP4, blocks
            that are not along the last axis, several tensor scales, or one that is stored as its
            reciprocal (dialects te and compressed-tensors).
        """
        return _exchange.to_torchao(self, dtype, swizzle)


def quantize(x: Array, recipe: RecipeLike, name: str = "", threads: int = 0,
             **keys: RecipeValue) -> Blocks:
    """Codes and scales of an array under a recipe: the bytes of `mx quantize --packed`. A block with
    NaN or Inf has the scale NaN.

    Parameters
    ----------
    x
        Of any shape that has the recipe's axis.
    recipe, **keys
        As of libmx.recipe().
    name
        Stochastic rounding draws by it and the index, as the command does by the tensor's name.
    threads
        See set_num_threads().

    Returns
    -------
    Blocks
        Unpacks into codes and scales. Those of an array on a GPU are there, in its library, offsets of
        PyTorch as int16; where the recipe has no kernels there, quantize a copy on the host.

    Raises
    ------
    Error
        For types that are not real numbers, for arrays without the recipe's axis, and for recipes
        whose scales differ inside a block.

    Examples
    --------
    >>> codes, scales = libmx.quantize(np.ones((2, 64), np.float32), "mxfp8")
    >>> codes.shape, scales.shape, scales.dtype.name
    ((128,), (2, 2), 'uint8')
    """
    by = _recipe_of(recipe, **keys)
    if _device.holds(x):
        return Blocks(by, *_device.quantize(x, by._core, name))
    v = as_view(x, name)
    return Blocks(by, v.shape, *_libmx.quantize(v, by._core, threads_of(threads)))


def dequantize(q: Blocks, dtype: Optional[DTypeLike] = None, threads: int = 0) -> NDArray[Any]:
    """The values of codes and scales: q.dequantize().

    Parameters
    ----------
    q
        What quantize() returns.
    dtype, threads
        As of Blocks.dequantize().

    Returns
    -------
    numpy.ndarray

    Raises
    ------
    Error
        If the parts do not fit the shape.

    Examples
    --------
    >>> libmx.dequantize(libmx.quantize(np.array([1, 1.05, 100], np.float32), "mxfp8"))
    array([  1.,   1.,  96.], dtype=float32)
    """
    return q.dequantize(dtype, threads)


@overload
def fake_quantize(x: NDArray[Any], recipe: RecipeLike, name: str = "", *, threads: int = 0,
                  **keys: RecipeValue) -> NDArray[Any]: ...
@overload
def fake_quantize(x: Like, recipe: RecipeLike, name: str = "", *, threads: int = 0,
                  **keys: RecipeValue) -> Like: ...
@overload
def fake_quantize(x: WithoutLibrary, recipe: RecipeLike, name: str = "", *, threads: int = 0,
                  **keys: RecipeValue) -> NDArray[Any]: ...
@overload
def fake_quantize(x: Array, recipe: RecipeLike, name: str = "", *, out: Like, threads: int = 0,
                  **keys: RecipeValue) -> Like: ...
def fake_quantize(x: Array, recipe: RecipeLike, name: str = "", out: Any = None, threads: int = 0,
                  **keys: RecipeValue) -> Any:
    """The values after quantizing and dequantizing. Accepts every recipe; blocks with NaN or Inf
    become NaN. bfloat16 and float16 get the float32 result rounded once to nearest even.

    Parameters
    ----------
    x
        Of any shape that has the recipe's axis.
    recipe, **keys
        As of libmx.recipe().
    name
        Stochastic rounding draws by it and the index.
    out
        Of x's shape and any type: gets the result; it may be x.
    threads
        See set_num_threads().

    Returns
    -------
    array
        In x's shape, type and library; float32 for integers. `out` if given.

    Raises
    ------
    Error
        As quantize does, and if `out` has another shape.

    Examples
    --------
    >>> libmx.fake_quantize(np.array([1, 1.3, 5], np.float32), "mxfp4")
    array([1. , 1.5, 4. ], dtype=float32)
    """
    by = _recipe_of(recipe, **keys)
    if _device.holds(x):
        return _device.fake_quantize(x, by._core, name, out)
    v = as_view(x, name)
    if is_torch(out):
        require_memory(out)
    if out is not None and tuple(out.shape) != v.shape:
        raise Error(f"out has the shape {tuple(out.shape)}; {v.shape} is expected")
    target = bits_of(out, x)
    if target is not None:
        _libmx.fake_quantize_into(v, by._core, target, narrow_type(out), threads_of(threads))
        return out
    to = x if out is None else out
    kind = narrow_type(to)
    values = _libmx.fake_quantize(v, by._core, kind, threads_of(threads))
    y = like(to, of_bits(values, kind))
    if out is None:
        return y
    out[...] = y
    return out


def cast(x: Array, element: str, round: str = "rtne", saturate: bool = True, seed: int = 0,
         name: str = "", threads: int = 0) -> NDArray[np.float32]:
    """Values cast to an element or scale format without a scale.

    Parameters
    ----------
    x
        Of any shape.
    element
        "e4m3", "e2m1", "ue4m3", ...: a name of formats().
    round
        A row of `mx explain rules`; stochastic rounding draws by seed, name and index.
    saturate
        Beyond the largest value its value; if False NaN or Inf, if the format has them.
    seed, name
        Of stochastic rounding.
    threads
        See set_num_threads().

    Returns
    -------
    numpy.ndarray
        float32, in x's shape.

    Raises
    ------
    Error
        For unknown names, and arrays as quantize.

    Examples
    --------
    >>> libmx.cast(np.array([1.1, 500], np.float32), "e4m3")
    array([  1.125, 448.   ], dtype=float32)
    """
    if _device.holds(x):
        there: NDArray[np.float32] = _device.cast(x, element, round, saturate, seed, name)
        return there
    return _libmx.cast(as_view(x, name), element, round, saturate, seed, threads_of(threads))


def matmul(a: Array, b: Array, recipe: Union[RecipeLike, Tuple[RecipeLike, RecipeLike]],
           accumulate: str = "exact", threads: int = 0) -> NDArray[np.float32]:
    """a @ b as a matrix unit computes it: the bytes of `mx gemm -m`. Both are quantized along K.
    Random roundings draw by the names "a" and "b". Blocks of several rows (block=16x16, 32x1) lie
    over a and over the transpose of b.

    Parameters
    ----------
    a, b
        (M, K) and (K, N).
    recipe
        One for both, or one each.
    accumulate
        The model of sums: "exact", "sm100.mxf8f6f4", ...; `mx explain accumulators` lists them.
    threads
        See set_num_threads().

    Returns
    -------
    numpy.ndarray
        (M, N), float32.

    Raises
    ------
    Error
        For other shapes, for recipes with axis=, and for operands that the model does not support.

    Examples
    --------
    >>> x = np.eye(3, 32, dtype=np.float32)
    >>> libmx.matmul(x, x.T, ("mxfp8", "mxfp4"))
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    ra, rb = recipe if isinstance(recipe, tuple) else (recipe, recipe)
    ra, rb = _recipe_of(ra), _recipe_of(rb)
    for x in (a, b):
        if is_torch(x):
            require_memory(x)
    if len(getattr(b, "shape", ())) != 2 or len(getattr(a, "shape", ())) != 2:
        raise Error("matmul: both operands have to have two axes")
    columns = b.values().T if isinstance(b, _libmx.View) else b.T  # type: ignore[union-attr]
    return _libmx.multiply(as_view(a, "a"), ra._core, as_view(columns, "b"), rb._core, accumulate,
                           threads_of(threads))


class Statistics:
    """The figures of arrays that arrive one after another or in several processes: counts, maxima
    and exact sums. Merging in any order and grouping gives the same bits. Can be pickled."""

    __slots__ = ("recipe", "name", "_core")

    def __init__(self, recipe: RecipeLike, name: str = "") -> None:
        self.recipe, self.name = _recipe_of(recipe), name
        self._core = _libmx.Statistics(self.recipe._core, name)

    def update(self, x: Array, threads: int = 0) -> None:
        """Adds an array. Blocks do not span arrays, and each array has its own tensor scale, if the
        recipe has one. Raises Error as quantize does, without adding anything."""
        Statistics.update_all([self], x, threads)

    @staticmethod
    def update_all(each: Iterable["Statistics"], x: Array, threads: int = 0) -> None:
        """Adds an array to each of several statistics of one tensor, under different recipes, in one
        pass over the array. Raises Error as update does, without adding anything to any of them."""
        every = list(each)
        if every and _device.holds(x):
            _device.update([s._core for s in every], x)
        elif every:
            _libmx.Statistics.update_all([s._core for s in every], as_view(x, every[0].name),
                                         threads_of(threads))

    def merge(self, other: "Statistics") -> None:
        """Adds the statistics of another one. Raises Error if the recipes differ."""
        self._core.merge(other._core)

    def record(self) -> Dict[str, Any]:
        """The figures of all arrays, a record like those of analyze. For several arrays the shape
        is the number of elements, and tensor_scale and spread_error are None."""
        record: Dict[str, Any] = self._core.record()
        return record

    def __repr__(self) -> str:
        return f"<libmx.Statistics of {self.name or 'no name'} under {self.recipe}>"

    def _repr_html_(self) -> str:
        return page_of(self.record())

    def to_sum_max(self) -> Tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Two arrays of float64 for processes to reduce: the first by SUM, the second by MAX, both
        in float64. from_sum_max of the result equals that of merge, bit for bit, for up to 2**20
        processes and 2**53 elements. The reduction is exact in any order, because the sums are
        integers."""
        return self._core.sums(), self._core.maxima()

    @classmethod
    def from_sum_max(cls, recipe: RecipeLike, sums: Array, maxima: Array,
                     name: str = "") -> "Statistics":
        """The inverse of to_sum_max. Raises Error for arrays that to_sum_max does not give."""
        s = cls(recipe, name)
        s._core = _libmx.Statistics.with_numbers(s.recipe._core, name, _flat(sums, np.float64),
                                                 _flat(maxima, np.float64))
        return s

    def __getstate__(self) -> Tuple[Any, ...]:
        return (str(self.recipe), self.name, *self.to_sum_max(), self._core.shape)

    def __setstate__(self, state: Tuple[Any, ...]) -> None:
        text, name, sums, maxima, shape = state
        same = Statistics.from_sum_max(text, sums, maxima, name)
        self.recipe, self.name, self._core = same.recipe, name, same._core
        self._core.shape = shape


def statistics(recipe: RecipeLike, name: str = "") -> Statistics:
    """Statistics of no array yet.

    Parameters
    ----------
    recipe
        A string or a Recipe.
    name
        What results call the tensor; random roundings draw by it.

    Returns
    -------
    Statistics

    Raises
    ------
    Error
        For what is no recipe.

    Examples
    --------
    >>> s = libmx.statistics("mxfp8", "w")
    >>> for part in np.split(np.ones((4, 64), np.float32), 2):
    ...     s.update(part)
    >>> s.record()["elements"], s.record()["exact"]
    (256, True)
    """
    return Statistics(recipe, name)


def _measuring(recipes: Any, tensors: Texts, roles: Texts, role_patterns: Texts, norm_bias: float,
               groups: Texts, reading: Mapping[str, Any]) -> Dict[str, Any]:
    return {"recipes": texts(recipes), "tensors": texts(tensors), "roles": texts(roles),
            "role_patterns": texts(role_patterns), "norm_bias": float(norm_bias),
            "groups": texts(groups), **reading_options(reading)}


# Options of the command that are called otherwise here.
_words = {"recipes": "recipe", "tensors": "tensor", "roles": "role", "role_patterns": "role-pattern",
          "groups": "group", "offset": "byte-offset", "splits": "split", "transposed": "transpose",
          "seeds": "draws"}


def _parts(command: str, source: Any, options: Dict[str, Any], shard: Any,
           parts: Texts) -> Dict[str, Any]:
    """The options with those of a run in parts: a part holds the command that makes it."""
    merged = texts(parts)
    if not shard and not merged:
        return options
    if shard and merged:
        raise Error(f"{command}: shard makes a part and parts merges all; give one of them")
    if isinstance(arrays_of(source), (Mapping, Model)):
        raise Error(f"{command}: parts are of files: give a path as the source")
    given: List[Tuple[str, Optional[str]]] = []
    for key, value in options.items():
        if key in ("digest", "page"):
            continue
        name = _words.get(key, key.removesuffix("_axis").replace("_", "-"))
        if isinstance(value, bool):
            if key == "regret" and command == "compare":
                given.append(("regret" if value else "no-regret", None))
            elif value:
                given.append((name, None))
        else:
            values = value if isinstance(value, list) else [value]
            given += [(name, str(v)) for v in values if v not in ("", 0.0)]
    if "digest" in options and not options.get("page"):
        given.append(("sha256", None))
    if shard:
        shard = shard if isinstance(shard, str) else "{}/{}".format(*shard)
    return {**options, "shard": shard or "", "parts": merged, "command": command,
            "files": texts(source), "given": given}


def _judging(policy: str, target: str, eval: str, sha256: bool, page: bool) -> Dict[str, Any]:
    options: Dict[str, Any] = {"policy": policy, "target": target, "eval": os.fspath(eval),
                               "page": page}
    if sha256 or page:
        options["digest"] = sha256_of
    return options


def analyze(source: Source, recipes: Recipes = (), *, tensors: Texts = (), roles: Texts = (),
            role_patterns: Texts = (), norm_bias: float = 0.0, histograms: bool = False,
            decompose: bool = False, regret: bool = False, groups: Texts = (), page: bool = False,
            policy: str = "", target: str = "", eval: str = "",
            sha256: bool = False, shard: Any = "", parts: Texts = (), threads: int = 0,
            **reading: Any) -> Analysis:
    """Every metric of every tensor under every recipe, with one read: `mx analyze`, whose JSON
    save() writes byte for byte.

    Parameters
    ----------
    source
        A path, directory or pattern, several of them, or an opened Model; or arrays, none of which
        is copied: one, a list of them (named 0, 1, ...), a mapping by name such as a state_dict(),
        a torch.nn.Module, or pairs of names and arrays.
    recipes
        One or several; by default those of the policy, and what inference uses today: bfloat16, FP8
        with a scale per tensor and INT8 with a scale per row.
    tensors, roles
        Patterns of names, and roles, of the tensors to measure (--tensor, --role).
    histograms, decompose, regret, role_patterns, norm_bias, sha256, groups
        As the command's options (--group).
    page
        Also measure what the page shows.
    policy, target, eval
        The basis of the verdict.
    shard, parts
        "3/7" or (3, 7) measures a part, which save() writes. parts: the files of all parts, made by
        calls that differ in shard and threads only, for the result of one call; `mx merge` does the
        same.
    threads
        See set_num_threads().
    **reading
        As of open().

    Returns
    -------
    Analysis

    Raises
    ------
    Error
        Also if there is nothing to measure.

    Examples
    --------
    >>> a = libmx.analyze(np.ones((4, 64), np.float32), ["mxfp8", "mxfp4"])
    >>> [(r["tensor"], r["recipe"], r["exact"]) for r in a]
    [('0', 'mxfp8', True), ('0', 'mxfp4', True)]
    """
    options = {**_measuring(recipes, tensors, roles, role_patterns, norm_bias, groups, reading),
               **_judging(policy, target, eval, sha256, page),
               "histograms": histograms, "decompose": decompose, "regret": regret}
    options = _parts("analyze", source, options, shard, parts)
    return Analysis(*_libmx.analyze(source_of(source), options, threads_of(threads)))


def evaluate(model: Any, tokens: Any = (), recipes: Any = (), *, weights: Any = (),
             activations: Any = (), kv: Any = (), attention: Any = (), at: Texts = (),
             accumulate: str = "", sample: int = 0, seed: int = 1, context: int = 0, stride: int = 0,
             heads: int = 0, precision: str = "float32", each: str = "", pairs: int = 0,
             layers: bool = False, per_token: bool = False, threads: int = 0) -> Document:
    """What recipes do to a language model: `mx eval`.

    Parameters
    ----------
    model
        A folder with config.json and safetensors, an index, or a GGUF file.
    tokens, sample, seed
        Ids in any sequence or array of one axis; or `sample`: so many are drawn from the model
        itself, by seed.
    recipes
        For weights and inputs of linear layers, or settings ("weights=mxfp4 activations=mxfp8").
    weights, activations, kv, attention
        Recipes for one of them: kv are cached keys and values, attention the operands of its products.
    at
        Settings of some layers ("*.down_proj:x=mxfp8").
    accumulate
        A model of sums.
    context, stride
        Tokens of a window, and from one to the next.
    heads
        Of a model of llama2.c.
    precision
        "float32" or "float64".
    each, pairs
        layer, block, kind or tensor, quantized alone and left alone; pairs: pairs of these.
    layers, per_token
        Errors of the outputs of layers; every token's figures.
    threads
        See set_num_threads().

    Returns
    -------
    Document
        Its records have cross_entropy, perplexity, kld_mean and more for each recipe.

    Raises
    ------
    Error
        MissingFileError if there is no such model.

    Examples
    --------
    >>> try:
    ...     libmx.evaluate("llama", sample=2000, recipes=["mxfp8", "mxfp4"])
    ... except FileNotFoundError as e:
    ...     print(e)
    llama: cannot open: No such file or directory
    """
    if is_torch(tokens):
        require_memory(tokens)
    ids = tokens.tolist() if hasattr(tokens, "tolist") else list(tokens)
    options = {"tokens": [int(t) for t in ids], "recipes": texts(recipes),
               "weights": texts(weights), "activations": texts(activations), "kv": texts(kv),
               "attention": texts(attention), "at": texts(at), "accumulate": accumulate,
               "sample": sample, "seed": seed, "context": context, "stride": stride, "heads": heads,
               "precision": precision, "each": each, "pairs": pairs, "layers": layers,
               "per_token": per_token}
    return Document(*_libmx.evaluate(os.fspath(model), options, threads_of(threads)))


def lint(path: Path, *, rules: Texts = (), ignore: Texts = (), values: bool = False,
         original: Path = "") -> Document:
    """What a quantized checkpoint lacks or states wrongly: `mx lint`. It opens what other functions
    refuse.

    Parameters
    ----------
    path
        A folder with config.json, an index, or a file; a shard stands for its folder.
    rules
        Only these rules; all by default.
    ignore
        Rules, or "RULE:GLOB" for what a rule finds of tensors that match.
    values
        Reads all scales and tensors: the rule "value", and tied tensors byte by byte.
    original
        The model before quantization, a file or folder: the rule "convention".

    Returns
    -------
    Document
        A record for each finding: rule, severity ("error" or "warning"), tensor, message, found, effect
        and repair; errors first. Its table is that of --all. The member `rules` of `content` has those
        that were applied.

    Raises
    ------
    Error
        For an unknown rule, or if no tensor can be read; MissingFileError if there is no such path.

    Examples
    --------
    >>> np.save("weight.npy", np.array([[1, np.nan]], np.float32))
    >>> [(f["rule"], f["severity"], f["tensor"]) for f in libmx.lint("weight.npy", values=True)]
    [('value', 'error', 'weight')]
    """
    return Document(*_libmx.lint(os.fspath(path), texts(rules), texts(ignore), values, os.fspath(original)))


# As the library safetensors orders the tensors of a file: by these, from the last one, then by name.
_file_order = ("U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16", "U16", "F16",
               "BF16", "I32", "U32", "F32", "F64", "I64", "U64")


def save_checkpoint(source: Any, folder: Path, *, layout: str, recipe: RecipeLike, config: Any = None,
                    input_scales: Path = "", threads: int = 0) -> Dict[str, str]:
    """Quantizes a model in memory into a folder or a GGUF file that inference engines load: the bytes that
    `mx quantize --layout` writes of the same tensors in a file that the library safetensors wrote.

    Parameters
    ----------
    source
        A module, also a converted one, or arrays by name, such as its state_dict().
    folder
        New, or empty; under gguf a file, NAME.gguf, which is replaced.
    layout
        "compressed-tensors", "modelopt", "deepseek", "gpt-oss", or "gguf" for Llama, Mistral, Qwen2 and Qwen3.
    recipe
        For what analyze() calls operands of products; norms, biases, embeddings, routers and the like are
        stored as they are. Matrices that engines load as one share their tensor scale.
    config
        The folder of the model's config.json, whose other files (the tokenizer) are copied; or the
        configuration alone, a dictionary or an object with to_dict(). By default that of the module. gguf
        needs the folder, because the file contains the tokenizer.
    input_scales
        A file of `mx eval --dump` with inputs of modules, for their static scales.
    threads
        See set_num_threads().

    Returns
    -------
    dict
        The tensors that are stored as they are, by name (under gguf that in the file), and why.

    Raises
    ------
    Error
        For a recipe that the layout cannot hold, with those that it can; if nothing is quantized; if the
        folder is not empty; under gguf for other models than these.

    Examples
    --------
    >>> w = {"up_proj.weight": np.ones((4, 32), np.float32), "norm.weight": np.ones(32, np.float32)}
    >>> kept = libmx.save_checkpoint(w, "served", layout="compressed-tensors", recipe="mxfp4",
    ...                              config={"model_type": "llama"})
    >>> list(kept)
    ['norm.weight']
    """
    config = getattr(source, "config", None) if config is None else config
    if hasattr(config, "to_dict"):
        config = config.to_dict()
    if not isinstance(config, (str, os.PathLike, Mapping)):
        raise Error("save_checkpoint: config= is the folder of config.json, or the configuration")
    if layout == "gguf" and (isinstance(config, Mapping) or os.path.isfile(config)
                             and os.path.basename(config) != "config.json"):
        raise Error("save_checkpoint: layout gguf takes config=, the folder of config.json and the tokenizer")
    views: List[Any] = source_of(source.state_dict() if hasattr(source, "state_dict") else dict(source))
    views.sort(key=lambda v: (-_file_order.index(v.dtype), v.name))
    options = {"folder": os.fspath(folder), "layout": layout, "recipe": str(recipe),
               "input_scales": os.fspath(input_scales)}
    with tempfile.TemporaryDirectory() as made:
        if isinstance(config, Mapping):
            with builtins.open(os.path.join(made, "config.json"), "w", encoding="utf-8") as f:
                json.dump(dict(config), f)
            config = made
        return _libmx.save_checkpoint(views, {**options, "config": os.fspath(config)},
                                      threads_of(threads))


def compare(source: Source, recipes: Recipes = (), *, axes: Optional[Mapping[str, Any]] = None,
            baseline: Any = "", seeds: int = 5, phase_sweep: bool = False,
            regret: Optional[bool] = None, tensors: Texts = (), roles: Texts = (),
            role_patterns: Texts = (), norm_bias: float = 0.0, groups: Texts = (),
            page: bool = False, policy: str = "", target: str = "", eval: str = "",
            sha256: bool = False, shard: Any = "", parts: Texts = (), threads: int = 0,
            **reading: Any) -> Analysis:
    """Ranks every combination of axes of recipes: `mx compare`.

    Parameters
    ----------
    source
        As of analyze().
    recipes, axes
        axes: from keys of recipes ("element", "scale_format", "dialect", "transform",
        "transform_size", "offset", "axis", "block", "round", "scale") to the values to try;
        recipes: those to apply them to.
    baseline, seeds, phase_sweep
        As the command's options (--draws).
    regret
        Whether to measure it, like --regret and --no-regret; None: if that is cheap.
    tensors, roles, role_patterns, norm_bias, groups, page, policy, target, eval, sha256, shard, parts
        As of analyze().
    threads
        See set_num_threads().
    **reading
        As of open().

    Returns
    -------
    Analysis

    Raises
    ------
    Error
        For unknown axes, and as analyze().

    Examples
    --------
    >>> x = np.linspace(-1, 1, 256, dtype=np.float32)
    >>> c = libmx.compare(x, "mxfp4", axes={"scale": ["floor", "even"]})
    >>> [r["recipe"] for r in c]
    ['mxfp4', 'mxfp4:scale=even']
    """
    options = {**_measuring(recipes, tensors, roles, role_patterns, norm_bias, groups, reading),
               **_judging(policy, target, eval, sha256, page), "baseline": str(baseline),
               "seeds": seeds, "phase_sweep": phase_sweep}
    if regret is not None:
        options["regret"] = regret
    for key, values in (axes or {}).items():
        if key not in _sweep_keys:
            raise Error(f"compare: unknown axis {key!r}; there are {', '.join(_sweep_keys)}")
        options[key + "_axis"] = texts(values)
    options = _parts("compare", source, options, shard, parts)
    return Analysis(*_libmx.compare(source_of(source), options, threads_of(threads)))


_sweep_keys = ("element", "scale_format", "dialect", "transform", "transform_size", "offset",
               "axis", "block", "round", "scale")


def cluster(source: Source, recipes: Recipes = (), *, tensors: Texts = (), roles: Texts = (),
            role_patterns: Texts = (), norm_bias: float = 0.0, groups: Texts = (),
            page: bool = False, policy: str = "", target: str = "", eval: str = "",
            sha256: bool = False, shard: Any = "", parts: Texts = (), threads: int = 0,
            **reading: Any) -> Analysis:
    """Finds blocks that lose all information, gives the reason, and measures remedies: `mx
    cluster`.

    Parameters
    ----------
    source, recipes
        As of analyze().
    tensors, roles, role_patterns, norm_bias, groups, page, policy, target, eval, sha256, shard, parts
        As of analyze().
    threads
        See set_num_threads().
    **reading
        As of open().

    Returns
    -------
    Analysis

    Raises
    ------
    Error
        As analyze().

    Examples
    --------
    >>> gains = np.full(256, 0.96, np.float32)
    >>> k = libmx.cluster({"norm.weight": gains}, "mxfp8")
    >>> [(f["tensor"], f["recipe"]) for f in k.content["findings"]]
    [('norm.weight', 'mxfp8')]
    """
    options = {**_measuring(recipes, tensors, roles, role_patterns, norm_bias, groups, reading),
               **_judging(policy, target, eval, sha256, page)}
    options = _parts("cluster", source, options, shard, parts)
    return Analysis(*_libmx.cluster(source_of(source), options, threads_of(threads)))


def diff(dumps: Sequence[Source], recipes: Recipes = (), *, labels: Texts = (), as_given: bool = False,
         tensors: Texts = (), roles: Texts = (), role_patterns: Texts = (), norm_bias: float = 0.0,
         groups: Texts = (), transposed_first: Texts = (), transposed_second: Texts = (),
         threads: int = 0, **reading: Any) -> Analysis:
    """Compares dumps of one model, each with the next: `mx diff`; or two results by tensor and recipe.

    Parameters
    ----------
    dumps
        Paths, opened Models or arrays as analyze() takes them; the latter two are named by their
        index (0, 1, ...) and keep the given order. Or two results: Analysis, or paths of files.
    recipes
        One or several; none compares values alone.
    labels, as_given
        As the command's options.
    transposed_first, transposed_second
        Patterns of tensors whose last two axes are swapped in the first, or the second, of two dumps.
    tensors, roles, role_patterns, norm_bias, groups
        As of analyze().
    threads
        See set_num_threads().
    **reading
        As of open().

    Returns
    -------
    Analysis

    Raises
    ------
    Error
        As analyze(), and for results beside dumps.

    Examples
    --------
    >>> x = np.ones((4, 64), np.float32)
    >>> d = libmx.diff([{"w": x}, {"w": 2 * x}], "mxfp8")
    >>> d[0]["tensor"]
    'w'
    """
    options = _measuring(recipes, tensors, roles, role_patterns, norm_bias, groups, reading)
    options.update(labels=texts(labels), as_given=as_given, transposed_first=texts(transposed_first),
                   transposed_second=texts(transposed_second))
    results = results_of(dumps)
    if results is not None:
        return Analysis(*_libmx.changes(results, options))
    names = [name_of(d, at) for at, d in enumerate(dumps)]
    return Analysis(*_libmx.diff(names, dumps_of(dumps), options, threads_of(threads)))


def _by_name(texts_of: Tuple[bytes, str]) -> Dict[str, Dict[str, Any]]:
    return {str(r["name"]): r for r in Document(*texts_of).records}


def formats() -> Dict[str, Dict[str, Any]]:
    """Element, scale and block formats, with their exact limits: `mx explain formats`.

    Returns
    -------
    dict
        Records by name.

    Examples
    --------
    >>> libmx.formats()["e4m3"]["max"]
    448.0
    """
    return _by_name(_libmx.formats())


def dialects() -> Dict[str, Dict[str, Any]]:
    """The implementations that a recipe can reproduce exactly (dialect=NAME): `mx explain
    dialects`.

    Returns
    -------
    dict
        Records by name.

    Examples
    --------
    >>> "torchao" in libmx.dialects()
    True
    """
    return _by_name(_libmx.dialects([]))


def explain(what: Any, *which: Any, target: str = "") -> Document:
    """Says what a recipe does, what the codes of a format mean, or with "policy" by which rules
    recipes are recommended: `mx explain`.

    Parameters
    ----------
    what
        A recipe, a name of formats(), or "policy".
    *which
        Codes of the format, or the name of a policy.
    target
        As --target.

    Returns
    -------
    Document

    Raises
    ------
    Error
        For unknown names.

    Examples
    --------
    >>> libmx.explain("e2m1", "0x7")[0]["value"]
    6.0
    """
    return Document(*_libmx.explain(str(what), texts(which), target))
