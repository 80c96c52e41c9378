# SPDX-License-Identifier: Apache-2.0
"""Block-scaled low-precision formats, bit for bit: the mx toolkit for Python.

Arrays are NumPy arrays (ml_dtypes types too), PyTorch tensors on the CPU, or anything with DLPack
or the buffer protocol, with any strides. None is copied. Other objects raise an Error. Every result
is the same bytes as that of the command `mx`, whatever the number of threads.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _libmx
from ._arrays import (as_view, bits_of, converted, is_torch, like, narrow_type, of_bits,
                      require_memory)
from ._documents import (Analysis, Document, Gate, Model, Texts, dumps_of, gate, name_of, open,
                         reading_options, report, results_of, sha256_of, source_of, texts)

Error = _libmx.Error
__version__ = "0.1.0"
__all__ = ["Analysis", "Blocks", "Document", "Error", "Gate", "Model", "Recipe", "Statistics",
           "analyze", "cast", "cluster", "compare", "dequantize", "dialects", "diff", "evaluate",
           "explain", "fake_quantize", "formats", "gate", "matmul", "open", "quantize", "recipe", "report",
           "statistics"]


class Recipe:
    """How values become codes and scales. `str()` gives the canonical spelling, by which recipes
    are compared, hashed and pickled. Raises Error naming the part that is wrong."""

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
    """Parses `PRESET[:key=value,...]`, such as "mxfp4:scale=even". Raises Error for what is none."""
    if not isinstance(r, (str, Recipe)):
        raise Error(f"a {type(r).__name__} is no recipe: a string such as 'mxfp4:scale=even' is expected")
    return r if isinstance(r, Recipe) else Recipe(r)


class Blocks:
    """A quantized array. Unpacks into (codes, scales).

    codes: uint8, packed as `mx quantize --packed` stores them (4-bit codes two to a byte, low
    nibble first; 6-bit codes four in three bytes), one axis. scales: one per block in the shape of
    the grid, uint8 codes of the scale format, or float32 if scales have no codes. offsets: uint16
    bits of binary16, or None. tensor_scale: a number, or None; under outer=row, col or ROWSxCOLS a
    float32 array with one for each row, column or tile. elements: one code to a byte, in x's shape;
    unpacked on first use, and read by dequantize() from then on.
    """

    __slots__ = ("recipe", "shape", "codes", "scales", "offsets", "tensor_scale", "_elements")

    def __init__(self, by: RecipeLike, shape: Sequence[int], codes: Any, scales: Any,
                 offsets: Any = None, tensor_scale: Any = None) -> None:
        self.recipe = recipe(by)
        self.shape = tuple(int(n) for n in shape)
        self.codes, self.scales = codes, scales
        self.offsets, self.tensor_scale = offsets, tensor_scale
        self._elements: Optional[np.ndarray[Any, Any]] = None

    @property
    def elements(self) -> np.ndarray[Any, Any]:
        if self._elements is None:
            count = int(np.prod(self.shape, dtype=np.int64))
            self._elements = _libmx.unpack(self.recipe._core.bits(), _flat(self.codes, np.uint8),
                                           count).reshape(self.shape)
        return self._elements

    def __iter__(self) -> Iterator[Any]:
        return iter((self.codes, self.scales))

    def __repr__(self) -> str:
        return f"<libmx.Blocks {self.shape} {self.recipe}>"

    def __getstate__(self) -> Tuple[Any, ...]:
        return (self.recipe, self.shape, self.codes, self.scales, self.offsets,
                self.tensor_scale, self._elements)

    def __setstate__(self, state: Tuple[Any, ...]) -> None:
        for name, value in zip(self.__slots__, state):
            setattr(self, name, value)

    def dequantize(self, dtype: Any = None, threads: int = 0) -> Any:
        """The values in float32, or rounded once to `dtype`, a type of NumPy or ml_dtypes: offset +
        tensor_scale * scale * value, rotated back if the recipe rotates. Raises Error if the parts
        do not fit the shape."""
        packed = self.codes if self._elements is None else _libmx.pack(
            self.recipe._core.bits(), _flat(self._elements, np.uint8))
        scales = _array(self.scales)
        coded = scales.dtype == np.uint8
        one = self.tensor_scale is None or np.ndim(self.tensor_scale) == 0
        y = _libmx.dequantize(
            self.recipe._core, list(self.shape), _flat(packed, np.uint8),
            _flat(scales if coded else (), np.uint8), _flat(() if coded else scales, np.float32),
            _flat(() if self.offsets is None else self.offsets, np.uint16),
            self.tensor_scale if one else None,
            _flat(() if one else self.tensor_scale, np.float32), threads)
        return y if dtype is None else converted(y, dtype)


def _array(x: Any) -> np.ndarray[Any, Any]:
    if is_torch(x):
        require_memory(x)
        x = x.detach().resolve_neg()
    return np.asarray(x)


def _flat(x: Any, dtype: Any) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(converted(_array(x), dtype)).reshape(-1)


def quantize(x: Any, r: RecipeLike, name: str = "", threads: int = 0) -> Blocks:
    """Codes and scales of an array under a recipe, of any shape that has the recipe's axis: the
    bytes of `mx quantize --packed`. Stochastic rounding draws by `name` and index, as the command
    does by the tensor's name. A block with NaN or Inf has the scale NaN. Raises Error for types
    that are not real numbers, for arrays without the recipe's axis, and for recipes whose scales
    differ inside a block."""
    by = recipe(r)
    v = as_view(x, name)
    return Blocks(by, v.shape, *_libmx.quantize(v, by._core, threads))


def dequantize(q: Blocks, dtype: Any = None, threads: int = 0) -> Any:
    """The values of codes and scales; see Blocks.dequantize."""
    return q.dequantize(dtype, threads)


def fake_quantize(x: Any, r: RecipeLike, name: str = "", out: Any = None, threads: int = 0) -> Any:
    """The values after quantizing and dequantizing, in x's shape, type and library; float32 for
    integers. bfloat16 and float16 get the float32 result rounded once to nearest even. Accepts
    every recipe; blocks with NaN or Inf become NaN. `out`, of x's shape and any type, gets the
    result; it may be x. Raises Error as quantize does, and if `out` has another shape."""
    by = recipe(r)
    v = as_view(x, name)
    if is_torch(out):
        require_memory(out)
    if out is not None and tuple(out.shape) != v.shape:
        raise Error(f"out has the shape {tuple(out.shape)}; {v.shape} is expected")
    target = bits_of(out, x)
    if target is not None:
        _libmx.fake_quantize_into(v, by._core, target, narrow_type(out), threads)
        return out
    to = x if out is None else out
    kind = narrow_type(to)
    y = like(to, of_bits(_libmx.fake_quantize(v, by._core, kind, threads), kind))
    if out is None:
        return y
    out[...] = y
    return out


def cast(x: Any, element: str, round: str = "rtne", saturate: bool = True, seed: int = 0,
         name: str = "", threads: int = 0) -> Any:
    """Values cast to an element or scale format ("e4m3", "e2m1", "ue4m3", ...) without a scale, as
    float32 in x's shape. round: a row of `mx explain rules`; stochastic rounding draws by seed, name and
    index. saturate=False: NaN or Inf beyond the largest value, if the format has them. Raises Error
    for unknown names."""
    return _libmx.cast(as_view(x, name), element, round, saturate, seed, threads)


def matmul(a: Any, b: Any, r: Union[RecipeLike, Tuple[RecipeLike, RecipeLike]],
           accumulate: str = "exact", threads: int = 0) -> Any:
    """a @ b as a matrix unit computes it, in float32: a (M, K) and b (K, N), both quantized along
    K, by one recipe or by one each, summed under the model `accumulate` ("exact", "sm100.mxf8f6f4",
    ...; `mx explain accumulators` lists them): the bytes of `mx gemm -m`. Random roundings draw by the
    names "a" and "b". Blocks of several rows (block=16x16, 32x1) lie over a and over the transpose
    of b. Raises Error for other shapes, for recipes with axis=, and for operands that the model
    does not support."""
    ra, rb = r if isinstance(r, tuple) else (r, r)
    ra, rb = recipe(ra), recipe(rb)
    for x in (a, b):
        if is_torch(x):
            require_memory(x)
    if len(getattr(b, "shape", ())) != 2 or len(getattr(a, "shape", ())) != 2:
        raise Error("matmul: both operands have to have two axes")
    columns = b.values().T if isinstance(b, _libmx.View) else b.T
    return _libmx.multiply(as_view(a, "a"), ra._core, as_view(columns, "b"), rb._core, accumulate,
                           threads)


class Statistics:
    """The figures of arrays that arrive one after another or in several processes: counts, maxima
    and exact sums. Merging in any order and grouping gives the same bits. Can be pickled."""

    __slots__ = ("recipe", "name", "_core")

    def __init__(self, r: RecipeLike, name: str = "") -> None:
        self.recipe, self.name = recipe(r), name
        self._core = _libmx.Statistics(self.recipe._core, name)

    def update(self, x: Any, threads: int = 0) -> None:
        """Adds an array. Blocks do not span arrays, and each array has its own tensor scale, if the
        recipe has one. Raises Error as quantize does, without adding anything."""
        self._core.update(as_view(x, self.name), threads)

    @staticmethod
    def update_all(each: Iterable["Statistics"], x: Any, threads: int = 0) -> None:
        """Adds an array to each of several statistics of one tensor, under different recipes, in one
        pass over the array. Raises Error as update does, without adding anything to any of them."""
        every = list(each)
        if every:
            _libmx.Statistics.update_all([s._core for s in every], as_view(x, every[0].name), threads)

    def merge(self, other: "Statistics") -> None:
        """Adds the statistics of another one. Raises Error if the recipes differ."""
        self._core.merge(other._core)

    def record(self) -> Dict[str, Any]:
        """The figures of all arrays, a record like those of analyze. For several arrays the shape
        is the number of elements, and tensor_scale and spread_error are None."""
        record: Dict[str, Any] = self._core.record()
        return record

    def to_sum_max(self) -> Tuple[Any, Any]:
        """Two arrays of float64 for processes to reduce: the first by SUM, the second by MAX, both
        in float64. from_sum_max of the result equals that of merge, bit for bit, for up to 2**20
        processes and 2**53 elements. The reduction is exact in any order, because the sums are
        integers."""
        return self._core.sums(), self._core.maxima()

    @classmethod
    def from_sum_max(cls, r: RecipeLike, sums: Any, maxima: Any, name: str = "") -> "Statistics":
        """The inverse of to_sum_max. Raises Error for arrays that to_sum_max does not give."""
        s = cls(r, name)
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


def statistics(r: RecipeLike, name: str = "") -> Statistics:
    """Statistics of no array yet. Results call the tensor `name`; random roundings draw by it."""
    return Statistics(r, name)


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
    if isinstance(source, (Mapping, Model)):
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


def analyze(source: Any, recipes: Any = (), *, tensors: Texts = (), roles: Texts = (),
            role_patterns: Texts = (), norm_bias: float = 0.0, histograms: bool = False,
            decompose: bool = False, regret: bool = False, groups: Texts = (), page: bool = False,
            baselines: bool = False, policy: str = "", target: str = "", eval: str = "", sha256: bool = False,
            shard: Any = "", parts: Texts = (), threads: int = 0, **reading: Any) -> Analysis:
    """Every metric of every tensor under every recipe, with one read: `mx analyze`, whose JSON
    save() writes byte for byte.

    source: a path, directory or pattern, several of them, an opened Model, or a mapping from names
    to arrays, none of which is copied. recipes: one or several; by default those of the policy.
    tensors, roles: patterns of names, and roles, of the tensors to measure (--tensor, --role).
    histograms, decompose, regret, baselines, role_patterns, norm_bias, sha256: as the command's options. page:
    also measure what the page shows. groups: as --group. policy, target, eval: the basis of the
    verdict. shard: "3/7" or (3, 7) measures a part, which save() writes; parts: the files of all parts,
    made by calls that differ in shard and threads only, for the result of one call; `mx merge` does
    the same. Other keyword arguments are those of open(). Raises Error, also if there is nothing to
    measure."""
    options = {**_measuring(recipes, tensors, roles, role_patterns, norm_bias, groups, reading),
               **_judging(policy, target, eval, sha256, page),
               "histograms": histograms, "decompose": decompose, "regret": regret,
               "baselines": baselines}
    options = _parts("analyze", source, options, shard, parts)
    return Analysis(*_libmx.analyze(source_of(source), options, threads))


def evaluate(model: Any, tokens: Any = (), recipes: Any = (), *, weights: Any = (),
             activations: Any = (), kv: Any = (), attention: Any = (), at: Texts = (),
             accumulate: str = "", sample: int = 0, seed: int = 1, context: int = 0, stride: int = 0,
             heads: int = 0, precision: str = "float32", each: str = "", pairs: int = 0,
             layers: bool = False, per_token: bool = False, threads: int = 0) -> Document:
    """What recipes do to a language model: `mx eval`. records has cross_entropy, perplexity,
    kld_mean and more for each recipe.

    model: a folder with config.json and safetensors, an index, or a GGUF file. tokens: ids in any
    sequence or array of one axis; or sample: so many are drawn from the model itself, by seed.
    recipes: for weights and inputs of linear layers, or settings ("weights=mxfp4
    activations=mxfp8"); weights, activations: for one of them; kv: cached keys and values;
    attention: operands of its products; at: settings of some layers ("*.down_proj:x=mxfp8").
    accumulate: a model of sums. context, stride: tokens of a window, and from one to the next.
    heads: of a model of llama2.c. each: layer, block, kind or tensor, quantized alone and left
    alone; pairs: pairs of these. layers: errors of the outputs of layers. per_token: every token's
    figures. Raises Error."""
    if is_torch(tokens):
        require_memory(tokens)
    ids = tokens.tolist() if hasattr(tokens, "tolist") else list(tokens)
    options = {"tokens": [int(t) for t in ids], "recipes": texts(recipes),
               "weights": texts(weights), "activations": texts(activations), "kv": texts(kv),
               "attention": texts(attention), "at": texts(at), "accumulate": accumulate,
               "sample": sample, "seed": seed, "context": context, "stride": stride, "heads": heads,
               "precision": precision, "each": each, "pairs": pairs, "layers": layers,
               "per_token": per_token}
    return Document(*_libmx.evaluate(os.fspath(model), options, threads))


def compare(source: Any, recipes: Any = (), *, axes: Optional[Mapping[str, Any]] = None,
            baseline: Any = "", seeds: int = 5, phase_sweep: bool = False,
            regret: Optional[bool] = None, tensors: Texts = (), roles: Texts = (),
            role_patterns: Texts = (), norm_bias: float = 0.0, groups: Texts = (),
            page: bool = False, policy: str = "", target: str = "", eval: str = "",
            sha256: bool = False, shard: Any = "", parts: Texts = (), threads: int = 0,
            **reading: Any) -> Analysis:
    """Ranks every combination of axes of recipes: `mx compare`. axes: from keys of recipes
    ("element", "scale_format", "dialect", "transform", "transform_size", "offset", "axis", "block",
    "round", "scale") to the values to try; recipes: the recipes to apply them to. regret: whether
    to measure it, like --regret and --no-regret; None: if that is cheap. The other arguments are
    those of analyze and of the command."""
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
    return Analysis(*_libmx.compare(source_of(source), options, threads))


_sweep_keys = ("element", "scale_format", "dialect", "transform", "transform_size", "offset",
               "axis", "block", "round", "scale")


def cluster(source: Any, recipes: Any = (), *, tensors: Texts = (), roles: Texts = (),
            role_patterns: Texts = (), norm_bias: float = 0.0, groups: Texts = (),
            page: bool = False, policy: str = "", target: str = "", eval: str = "",
            sha256: bool = False, shard: Any = "", parts: Texts = (), threads: int = 0,
            **reading: Any) -> Analysis:
    """Finds blocks that lose all information, gives the reason, and measures remedies: `mx
    cluster`, with the arguments of analyze. content["findings"] lists them."""
    options = {**_measuring(recipes, tensors, roles, role_patterns, norm_bias, groups, reading),
               **_judging(policy, target, eval, sha256, page)}
    options = _parts("cluster", source, options, shard, parts)
    return Analysis(*_libmx.cluster(source_of(source), options, threads))


def diff(dumps: Sequence[Any], recipes: Any = (), *, labels: Texts = (), as_given: bool = False,
         tensors: Texts = (), roles: Texts = (), role_patterns: Texts = (), norm_bias: float = 0.0,
         groups: Texts = (), transposed_first: Texts = (), transposed_second: Texts = (),
         threads: int = 0, **reading: Any) -> Analysis:
    """Compares dumps of one model, each with the next: `mx diff`. dumps: paths, opened Models or
    mappings from names to arrays; the latter two are named by their index (0, 1, ...) and keep the
    given order. transposed_first, transposed_second: patterns of tensors whose last two axes are
    swapped in the first, or the second, of two dumps. Two results (Analysis, or paths of results
    files) are compared by tensor and recipe instead. The other arguments are those of analyze and
    of the command."""
    options = _measuring(recipes, tensors, roles, role_patterns, norm_bias, groups, reading)
    options.update(labels=texts(labels), as_given=as_given, transposed_first=texts(transposed_first),
                   transposed_second=texts(transposed_second))
    results = results_of(dumps)
    if results is not None:
        return Analysis(*_libmx.changes(results, options))
    names = [name_of(d, at) for at, d in enumerate(dumps)]
    return Analysis(*_libmx.diff(names, dumps_of(dumps), options, threads))


def _by_name(texts_of: Tuple[bytes, str]) -> Dict[str, Dict[str, Any]]:
    return {str(r["name"]): r for r in Document(*texts_of).records}


def formats() -> Dict[str, Dict[str, Any]]:
    """Element, scale and block formats by name, with their exact limits: the records of
    `mx explain formats`."""
    return _by_name(_libmx.formats())


def dialects() -> Dict[str, Dict[str, Any]]:
    """The implementations that a recipe can reproduce exactly (dialect=NAME), by name: the records
    of `mx explain dialects`."""
    return _by_name(_libmx.dialects([]))


def explain(what: Any, *which: Any, target: str = "") -> Document:
    """Says what a recipe does, what the codes of a format mean, or with "policy" by which rules
    recipes are recommended: `mx explain`. which: codes of the format, or the name of a policy.
    Raises Error for unknown names."""
    return Document(*_libmx.explain(str(what), texts(which), target))
