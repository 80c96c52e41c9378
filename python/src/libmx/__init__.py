# SPDX-License-Identifier: Apache-2.0
"""Block-scaled low-precision formats, bit for bit: the verb of the mx toolkit for Python.

Arrays are NumPy arrays (ml_dtypes types too), PyTorch tensors on the CPU, or anything with DLPack or
the buffer protocol, in any strides. None is copied. What is not understood is refused with an Error.
Every result has the bytes that the command `mx` writes, whatever the number of threads.
"""

from __future__ import annotations

import builtins
import json
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _libmx
from ._arrays import as_view, like

Error = _libmx.Error
__version__ = "0.1.0"
__all__ = ["Analysis", "Blocks", "Error", "Model", "Recipe", "analyze", "cast", "dialects",
           "dequantize", "fake_quantize", "formats", "matmul", "open", "quantize", "recipe"]


class Recipe:
    """How values become codes and scales; `str()` gives the canonical spelling, which is what
    recipes are compared, hashed and pickled by. Raises Error naming the part that is wrong."""

    __slots__ = ("_core", "_text")

    def __init__(self, text: str) -> None:
        self._core = _libmx.Recipe(text)
        self._text = str(self._core)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"libmx.recipe({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> Tuple[Any, ...]:
        return Recipe, (self._text,)


RecipeLike = Union[str, Recipe]


def recipe(r: RecipeLike) -> Recipe:
    """Parses `PRESET[:key=value,...]`, such as "mxfp4:scale=even"."""
    return r if isinstance(r, Recipe) else Recipe(r)


class Blocks:
    """A quantized array. Unpacks into (codes, scales).

    codes: uint8, packed as `mx quantize --packed` stores them (4-bit codes two to a byte, low nibble
    first; 6-bit codes four in three bytes), one axis. scales: one per block in the shape of the grid,
    uint8 codes of the scale format, or float32 where scales have no codes. offsets: uint16 bits of
    binary16, or None. tensor_scale: a number, or None.
    """

    __slots__ = ("recipe", "shape", "codes", "scales", "offsets", "tensor_scale", "elements")

    def __init__(self, by: Recipe, shape: Sequence[int], codes: np.ndarray, scales: np.ndarray,
                 offsets: Optional[np.ndarray] = None, tensor_scale: Optional[float] = None) -> None:
        self.recipe = by
        self.shape = tuple(int(n) for n in shape)
        self.codes, self.scales = codes, scales
        self.offsets, self.tensor_scale = offsets, tensor_scale
        count = 1
        for n in self.shape:
            count *= n
        self.elements = _libmx.unpack(by._core.bits(), np.ascontiguousarray(codes), count)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.codes, self.scales))

    def __repr__(self) -> str:
        return f"<libmx.Blocks {self.shape} {self.recipe}>"

    def dequantize(self, dtype: Any = None, threads: int = 0) -> np.ndarray:
        """The values in float32, or rounded once to `dtype`."""
        coded = self.scales.dtype == np.uint8
        empty = np.zeros(0, np.uint8)
        y = _libmx.dequantize(
            self.recipe._core, list(self.shape), self.elements.ravel(),
            np.ascontiguousarray(self.scales).ravel() if coded else empty,
            np.zeros(0, np.float32) if coded else np.ascontiguousarray(self.scales).ravel(),
            np.zeros(0, np.uint16) if self.offsets is None else self.offsets.ravel(),
            self.tensor_scale, threads)
        return y if dtype is None else y.astype(dtype)


def quantize(x: Any, r: RecipeLike, name: str = "", threads: int = 0) -> Blocks:
    """Codes and scales of an array. Stochastic rounding draws by `name` and index, as the command
    does by the tensor's name."""
    by = recipe(r)
    v = as_view(x, name)
    codes, packed, scales, offsets, tensor_scale = _libmx.quantize(v, by._core, threads)
    q = Blocks.__new__(Blocks)
    q.recipe, q.shape, q.codes, q.scales = by, codes.shape, packed, scales
    q.offsets, q.tensor_scale, q.elements = offsets, tensor_scale, codes
    return q


def dequantize(q: Blocks, dtype: Any = None, threads: int = 0) -> np.ndarray:
    """The values that codes and scales stand for."""
    return q.dequantize(dtype, threads)


def fake_quantize(x: Any, r: RecipeLike, name: str = "", out: Any = None, threads: int = 0) -> Any:
    """What becomes of the values: quantized and back, in x's own type and library. 16-bit types get
    the float32 result rounded once to nearest even. With `out`, the result is written there; it may
    be x."""
    by = recipe(r)
    v = as_view(x, name)
    if out is None:
        return like(x, _libmx.fake_quantize(v, by._core, threads))
    if isinstance(out, np.ndarray) and out.dtype == np.float32 and out.flags.c_contiguous:
        _libmx.fake_quantize_into(v, by._core, out, threads)
        return out
    y = like(out, _libmx.fake_quantize(v, by._core, threads))
    out[...] = y
    return out


def cast(x: Any, element: str, round: str = "rtne", saturate: bool = True, seed: int = 0,
         name: str = "", threads: int = 0) -> np.ndarray:
    """Values cast to an element or scale format ("e4m3", "e2m1", "ue4m3", ...) without a scale, as
    float32. `saturate=False`: NaN or Inf beyond the largest value, where there is one."""
    return _libmx.cast(as_view(x, name), element, round, saturate, seed, threads)


def matmul(a: Any, b: Any, r: Union[RecipeLike, Tuple[RecipeLike, RecipeLike]],
           accumulate: str = "exact", threads: int = 0) -> np.ndarray:
    """a @ b as a matrix unit computes it: a (M, K) and b (K, N), both quantized along K, added up as
    the model `accumulate` says ("exact", "sm100.mxf8f6f4", ...; `mx accumulators` lists them)."""
    ra, rb = r if isinstance(r, tuple) else (r, r)
    ra, rb = recipe(ra), recipe(rb)
    if len(getattr(b, "shape", ())) != 2 or len(getattr(a, "shape", ())) != 2:
        raise Error("matmul: both operands have to have two axes")
    return _libmx.multiply(as_view(a, "a"), ra._core, as_view(b.T, "b"), rb._core, accumulate,
                           threads)


class Model:
    """An opened checkpoint: a mapping from names to tensors that are read when they are used."""

    def __init__(self, path: str) -> None:
        self._views: Dict[str, Any] = {v.name: v for v in _libmx.open(str(path))}

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: Any) -> None:
        self._views = {}

    def keys(self) -> List[str]:
        return list(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __contains__(self, name: object) -> bool:
        return name in self._views

    def view(self, name: str) -> Any:
        """The tensor without reading it: `.dtype`, `.shape`, and an input of every function here."""
        if name not in self._views:
            raise KeyError(name)
        return self._views[name]

    def __getitem__(self, name: str) -> np.ndarray:
        """All values, decoded, as float32."""
        values: np.ndarray = self.view(name).values()
        return values


def open(path: Any) -> Model:
    """Opens a safetensors, NPY, GGUF or raw file, a directory or a pattern; only headers are
    read."""
    return Model(path)


class Analysis:
    """What an analysis found: `records` has a dictionary per tensor and recipe, with the members of
    the schema mx.analysis/1; undefined figures are None."""

    def __init__(self, records: List[Dict[str, Any]], skipped: List[Dict[str, str]]) -> None:
        self.records, self.skipped = records, skipped

    def __len__(self) -> int:
        return len(self.records)

    def column(self, member: str) -> List[Any]:
        return [r.get(member) for r in self.records]

    def table(self, members: Sequence[str] = ("sqnr_db", "underflow_rate", "saturated_block_rate",
                                              "gain")) -> str:
        """A text table with one line per tensor and recipe."""
        head = ["tensor", "recipe", *members]
        rows = [[str(r["tensor"]), str(r["recipe"]),
                 *("-" if r.get(m) is None else f"{r[m]:.4g}" for m in members)]
                for r in self.records]
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        def line(row: Sequence[str]) -> str:
            return "  ".join(c.ljust(w) if i < 2 else c.rjust(w)
                             for i, (c, w) in enumerate(zip(row, widths))).rstrip()
        return "\n".join([line(head), line(["-" * w for w in widths]), *map(line, rows)])

    __str__ = table

    def _repr_html_(self) -> str:
        from html import escape
        lines = self.table().splitlines()
        return "<pre>" + escape("\n".join(lines)) + "</pre>"

    def save(self, path: Any) -> None:
        """Writes the records as mx.analysis/1, which `mx report`, `mx gate` and `mx diff` read."""
        with builtins.open(path, "w", encoding="utf-8") as f:
            json.dump({"schema": "mx.analysis/1", "version": __version__, "results": self.records,
                       "skipped": self.skipped}, f, indent=1, allow_nan=False)
            f.write("\n")


def analyze(tensors: Any, recipes: Union[RecipeLike, Iterable[RecipeLike]], *,
            histograms: bool = False, decompose: bool = False, threads: int = 0) -> Analysis:
    """Every metric of every tensor under every recipe, with one read. `tensors`: a path, a Model, or
    a dictionary from names to arrays."""
    rs = [recipe(r) for r in ([recipes] if isinstance(recipes, (str, Recipe)) else recipes)]
    if isinstance(tensors, Mapping):
        views = [as_view(x, name) for name, x in tensors.items()]
    else:
        model = tensors if isinstance(tensors, Model) else Model(tensors)
        views = [model.view(name) for name in model]
    return Analysis(*_libmx.analyze(views, [r._core for r in rs], histograms, decompose, threads))


def formats() -> List[str]:
    """The element formats by name; `mx formats` describes them."""
    return _libmx.elements()


def dialects() -> List[str]:
    """Whose exact behaviour a recipe can follow; `mx dialects` describes them."""
    return _libmx.dialects()
