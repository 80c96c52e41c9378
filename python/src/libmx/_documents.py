# SPDX-License-Identifier: Apache-2.0
"""Results of mx as documents: the JSON of the command, its tables and its pages."""

from __future__ import annotations

import builtins
import fnmatch
import hashlib
import html
import json
import math
import os
import re
from typing import (TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Protocol,
                    Sequence, Tuple, Union)

from . import _libmx
from ._arrays import Array, as_view

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

Texts = Union[str, Iterable[str]]
Path = Union[str, "os.PathLike[str]"]


class Module(Protocol):
    """A torch.nn.Module."""

    def named_parameters(self) -> Iterable[Tuple[str, Any]]: ...




def texts(x: Any) -> List[str]:
    """One text or several, as a list; recipes and paths count as texts."""
    if isinstance(x, (str, os.PathLike)) or not isinstance(x, Iterable):
        x = [x]
    return [os.fspath(t) if isinstance(t, os.PathLike) else str(t) for t in x]


def sha256_of(path: str) -> str:
    """Empty for an address: it would take all bytes of the file."""
    if path.startswith(("https://", "http://", "hf://", "s3://")):
        return ""
    digest = hashlib.sha256()
    with builtins.open(path, "rb") as f:
        while piece := f.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


_reading = {"as_": "as", "shape": "shape", "dtype": "dtype", "offset": "offset", "raw": "raw",
            "integers": "integers", "swizzled": "swizzled", "splits": "splits",
            "transposed": "transposed", "experts": "experts", "heads": "heads"}


def reading_options(given: Mapping[str, Any]) -> Dict[str, Any]:
    """Keyword arguments for reading files, by the names of the compiled part."""
    options: Dict[str, Any] = {}
    for key, value in given.items():
        if key not in _reading:
            raise TypeError(f"unknown keyword argument {key!r}")
        if key in ("splits", "transposed", "experts", "heads"):
            value = texts(value)
        elif key == "shape" and not isinstance(value, str):
            value = "x".join(str(int(n)) for n in value)
        options[_reading[key]] = value
    return options


def page_of(members: Mapping[str, object]) -> str:
    """A table of two columns for a notebook."""
    rows = (f"<tr><th>{html.escape(str(k))}</th><td>{html.escape(str(v))}</td></tr>"
            for k, v in members.items() if v is not None)
    return f"<table>{''.join(rows)}</table>"


# Options and commands by what Python calls them. Text of files may contain others, which stay.
_keywords = {name: name.replace("-", "_") for name in (
    "as-given", "at", "context", "decompose", "each", "eval", "experts", "heads", "histograms", "ignore",
    "input-scales", "labels", "layers", "layout", "norm-bias", "original", "page", "pairs", "policy",
    "regret", "role-pattern", "sample", "seed", "shard", "stride", "swizzled", "target", "tokens", "values")}
_keywords.update({
    "as": "as_", "byte-offset": "offset", "draws": "seeds", "group": "groups", "html": "page", "recipe": "recipes",
    "role": "roles", "role-pattern": "role_patterns", "rule": "rules", "split": "splits", "tensor": "tensors",
    "transpose": "transposed", "transpose-first": "transposed_first", "transpose-second": "transposed_second"})
_switches = {"as-given", "decompose", "histograms", "html", "layers", "regret", "swizzled", "values"}
_functions = {"eval": "evaluate", **{name: name for name in (
    "analyze", "cluster", "compare", "diff", "gate", "lint", "report")}}
# A command with arguments is for a terminal, and stays whole.
_advice = re.compile(
    r"(?P<whole>(?:\$ |['`])mx [a-z]+ [^'`\n]*)|\bmx explain (?P<explained>policy|RECIPE)\b|"
    r"\bmx (?P<command>analyze|cluster|compare|diff|eval|gate|lint|report)\b(?! [A-Z'*<{])|"
    r"(?<![\w-])--(?P<option>[a-z]+(?:-[a-z]+)*)(?![\w-])(?:\s+(?P<value>[A-Z][A-Z0-9=:/]*)\b)?")


def in_python(text: str) -> str:
    """Advice of the command, in words of this package: (--eval) is (eval=)."""
    def translated(m: "re.Match[str]") -> str:
        if m["explained"]:
            return 'libmx.explain("policy")' if m["explained"] == "policy" else "libmx.explain(RECIPE)"
        if m["command"]:
            return "libmx." + _functions[m["command"]]
        if m["option"] == "json":
            return "save()" + (f" {m['value']}" if m["value"] else "")
        if m["option"] not in _keywords:
            return m[0]
        keyword = _keywords[m["option"]] + "="
        if m["option"] in _switches:
            return keyword + "True" + (f" {m['value']}" if m["value"] else "")
        return keyword + (f'"{m["value"]}"' if m["value"] else "")
    return _advice.sub(translated, text)


class Document:
    """A result of mx: `records` as dictionaries, undefined figures as None; `content` is the whole JSON
    object. Printing shows the table of the command, with advice in words of Python. Documents can be
    pickled."""

    def __init__(self, text: bytes, table: str) -> None:
        self._text, self._table = text, table
        self._content: Optional[Dict[str, Any]] = None

    @property
    def content(self) -> Dict[str, Any]:
        """The whole JSON object; docs/reference/schemas describes its members."""
        if self._content is None:
            self._content = json.loads(self._text)
        return self._content

    @property
    def records(self) -> List[Dict[str, Any]]:
        """The member `results`; to_pandas() makes a table of it."""
        records: List[Dict[str, Any]] = self.content["results"]
        return records

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return iter(self.records)

    def __getitem__(self, at: int) -> Dict[str, Any]:
        return self.records[at]

    def to_pandas(self) -> "pandas.DataFrame":
        """The records as a table of pandas, which has to be installed."""
        import pandas
        return pandas.DataFrame(self.records)

    def table(self) -> str:
        """The output of the command, 100 columns wide."""
        return self._table

    def __str__(self) -> str:
        return in_python(self._table)

    def __repr__(self) -> str:
        return f"<libmx document {self.content['schema']}: {len(self)} results>"

    def __getstate__(self) -> Tuple[bytes, str]:
        return self._text, self._table

    def __setstate__(self, state: Tuple[bytes, str]) -> None:
        self._text, self._table = state
        self._content = None

    def save(self, path: Any) -> None:
        """Writes the JSON that the command writes with --json: `mx report`, `mx gate` and others
        read it."""
        with builtins.open(path, "wb") as f:
            f.write(self._text)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Gate(Document):
    """The outcome of rules; true if all of them hold."""

    def __init__(self, text: bytes, table: str, holds: bool) -> None:
        super().__init__(text, table)
        self.holds = holds

    def __bool__(self) -> bool:
        return self.holds

    def __getstate__(self) -> Any:
        return self._text, self._table, self.holds

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state[:2])
        self.holds = state[2]


class Analysis(Document):
    """The results of analyze, compare, cluster and diff."""

    def __init__(self, text: Any, table: Any = "") -> None:
        # Records that were made elsewhere become a document as well.
        if not isinstance(text, bytes):
            content = {"schema": "mx.analysis/1", "tool": {"name": "mx", "version": "0.1.0"},
                       "inputs": [], "results": list(text), "skipped": list(table)}
            text, table = json.dumps(content, indent=1, allow_nan=False).encode() + b"\n", ""
        super().__init__(text, table)

    @property
    def skipped(self) -> List[Dict[str, Any]]:
        """What was left out, and why."""
        skipped: List[Dict[str, Any]] = self.content.get("skipped", [])
        return skipped

    def column(self, member: str) -> List[Any]:
        """A member of every record."""
        return [r.get(member) for r in self.records]

    def plot(self, metric: str = "sqnr_db", *, tensors: str = "*", ax: Any = None) -> Any:
        """Draws a member of the records with matplotlib, which has to be installed.

        Parameters
        ----------
        metric
            A number of the records: docs/reference/metrics.md has them. Undefined figures leave a gap.
        tensors
            A pattern of names, as in fnmatch: "*down_proj*" shows one kind of module by layer.
        ax
            matplotlib.axes.Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            A line for each recipe over the tensors, in the order of the file.

        Raises
        ------
        KeyError
            If no record of these tensors has that member.
        """
        import matplotlib.pyplot as plt  # type: ignore[import-not-found,unused-ignore]
        records = [r for r in self.records if fnmatch.fnmatchcase(r.get("tensor", ""), tensors)]
        if not any(metric in r for r in records):
            raise KeyError(f"no record of tensors {tensors!r} has the member {metric!r}")
        names = list(dict.fromkeys(r["tensor"] for r in records))
        axes = plt.subplots(figsize=(8, 4))[1] if ax is None else ax
        for recipe in dict.fromkeys(r["recipe"] for r in records):
            of = {r["tensor"]: r.get(metric) for r in records if r["recipe"] == recipe}
            values = [of.get(name) for name in names]
            axes.plot(range(len(names)), [math.nan if v is None else v for v in values], marker=".",
                      label=recipe)
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize="x-small")
        axes.set_ylabel(metric)
        axes.legend()
        return axes

    def report(self, path: Any = None, *, title: str = "", policy: str = "", target: str = "",
               eval: str = "") -> str:
        """Writes the page that `mx report` makes of these results to `path`. Returns the verdict in one
        line. If the results come from analyze(..., page=True), the page has all of its figures: it is
        that of `mx analyze --html`. policy, target, eval: as --policy, --target and --eval."""
        return report([self], path, title=title, policy=policy, target=target, eval=eval)

    def gate(self, rules: Texts, *, recipes: Any = (), policy: str = "", target: str = "",
             eval: str = "") -> Gate:
        """Checks the results against rules, as `mx gate`: "clamp_rate<0.001",
        "norm:saturated_block_rate==0 or null", "policy"."""
        return gate([self], rules, recipes=recipes, policy=policy, target=target, eval=eval)

    def _repr_html_(self) -> str:
        fragment: str = _libmx.report(_kept([self]), {}, "", f"libmx-{id(self):x}-")[1]
        return in_python(fragment)


Results = Union[Path, Document, Iterable[Union[Path, Document]]]


def _kept(results: Any) -> List[Tuple[str, Optional[bytes]]]:
    if isinstance(results, (Document, str, os.PathLike)):
        results = [results]
    kept: List[Tuple[str, Optional[bytes]]] = []
    for at, r in enumerate(results):
        if isinstance(r, Document):
            kept.append((f"results {at + 1}" if at else "results", r._text))
        else:
            kept.append((os.fspath(r), None))
    return kept


def results_of(sources: Sequence[Any]) -> Optional[List[Tuple[str, Optional[bytes]]]]:
    """Results for the compiled part if that is what the sources are, documents or paths; None if they
    are dumps."""
    paths = [os.fspath(s) for s in sources if isinstance(s, (str, os.PathLike))]
    documents = sum(isinstance(s, Document) for s in sources)
    if documents + len(paths) < len(sources):
        if documents:
            raise _libmx.Error("diff compares two results, or dumps: here are both")
        return None
    return _kept(sources) if documents or _libmx.are_results(paths) else None


def report(results: Results, path: Optional[Path] = None, *, title: str = "", policy: str = "",
           target: str = "", eval: str = "") -> str:
    """The page of a review of several results: `mx report`.

    Parameters
    ----------
    results
        A document or several, or paths of files that the command or save() wrote.
    path
        Where the page is written, if given.
    title, policy, target, eval
        As --title, --policy, --target and --eval.

    Returns
    -------
    str
        The verdict in one line.

    Raises
    ------
    Error
        For what is no result.

    Examples
    --------
    >>> a = libmx.analyze(np.ones((4, 64), np.float32), ["mxfp8", "mxfp4"])
    >>> verdict = libmx.report([a], "page.html")
    """
    options = {"policy": policy, "target": target, "eval": os.fspath(eval), "digest": sha256_of}
    page, _, summary = _libmx.report(_kept(results), options, title, "")
    if path is not None:
        with builtins.open(path, "wb") as f:
            f.write(page)
    return in_python(summary)


def gate(results: Results, rules: Texts, *, recipes: Any = (), policy: str = "", target: str = "",
         eval: str = "") -> Gate:
    """Checks results against rules: `mx gate`.

    Parameters
    ----------
    results
        A document or several, or paths of files.
    rules
        Such as "clamp_rate<0.001" or "norm:saturated_block_rate==0 or null"; "policy".
    recipes
        Those that the rules are for; all by default.
    policy, target, eval
        As of report().

    Returns
    -------
    Gate
        True if all rules hold.

    Raises
    ------
    Error
        For what is no rule or no result.

    Examples
    --------
    >>> a = libmx.analyze(np.ones((4, 64), np.float32), "mxfp8")
    >>> bool(libmx.gate(a, "clamp_rate<0.001"))
    True
    """
    return Gate(*_libmx.gate(_kept(results), {
        "rules": texts(rules), "recipes": texts(recipes), "policy": policy, "target": target,
        "eval": os.fspath(eval)}))


class Model:
    """An opened checkpoint: a mapping from names to tensors that are read when they are used."""

    def __init__(self, paths: Any, **reading: Any) -> None:
        self.paths = texts(paths)
        self._files: Any = _libmx.open(self.paths, reading_options(reading))
        self._views: Dict[str, Any] = {v.name: v for v in self._files.views()}

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the files."""
        self._files, self._views = None, {}

    def keys(self) -> List[str]:
        """Names of the tensors of real numbers, in the order of the files."""
        return list(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def __iter__(self) -> Any:
        return iter(self._views)

    def __contains__(self, name: object) -> bool:
        return name in self._views

    @property
    def left_out(self) -> Dict[str, str]:
        """Tensors that are not real numbers, or not weights, and why."""
        return dict(self._files.left_out()) if self._files else {}

    @property
    def metadata(self) -> Dict[str, str]:
        """Text members of the files' headers."""
        return dict(self._files.metadata()) if self._files else {}

    @property
    def files(self) -> List[Tuple[str, int]]:
        """Paths and bytes of the files."""
        return list(self._files.sizes()) if self._files else []

    def view(self, name: str) -> Any:
        """The tensor without reading it: `.dtype`, `.shape`, and an input of every function here.
        Raises KeyError."""
        if name not in self._views:
            raise KeyError(name)
        return self._views[name]

    def __getitem__(self, name: str) -> Any:
        """All values, decoded, as float32."""
        return self.view(name).values()

    def rows(self, name: str, begin: int, end: Optional[int] = None) -> Any:
        """The values from row `begin` to before row `end` of the first axis, as float32; nothing
        else is read."""
        return self.view(name).values(begin, end)


def open(paths: Union[Path, Iterable[Path]], **reading: Any) -> Model:
    """Opens safetensors, GGUF, NPY, NPZ, PyTorch or raw files; only headers are read. Quantized tensors
    show what they decode to.

    Parameters
    ----------
    paths
        A file, a directory, a pattern, or several, which are one model then.
    **reading
        As of the command: as_ ("bf16"), raw, integers, swizzled, splits ("qkv=q:64,k:64,v:64"),
        transposed and experts (patterns), heads ("cache_*=8"); of raw files shape ((64, 128)),
        dtype ("BF16") and offset (bytes).

    Returns
    -------
    Model
        A mapping from names to tensors, and a context manager.

    Raises
    ------
    Error
        With `file`, `tensor` and `offset`; MissingFileError if there is no such file.

    Examples
    --------
    >>> np.save("x.npy", np.ones((2, 3), np.float32))
    >>> with libmx.open("x.npy") as m:
    ...     [m[name].shape for name in m]
    [(2, 3)]
    """
    return Model(paths, **reading)


def _named_view(x: Any, name: str) -> Any:
    try:
        return as_view(x, name)
    except _libmx.Error as e:
        raise _libmx.Error(f"{name}: {e}") from None


Source = Union[Path, "Model", Array, Module, Mapping[str, Array],
               Iterable[Union[Path, Array, Tuple[str, Array]]]]


def arrays_of(source: Any) -> Any:
    """Arrays by name, if the source is arrays: one, several, pairs with names, or a module. Paths and
    opened models stay."""
    if isinstance(source, (str, os.PathLike, Mapping, Model)):
        return source
    if hasattr(source, "named_parameters"):
        return {name: x.detach() for name, x in source.named_parameters()}
    if _is_array(source):
        return {"0": source}
    if not isinstance(source, Iterable):
        raise _libmx.Error(f"{type(source).__name__}: neither paths nor arrays")
    items = list(source)
    pairs = [x for x in items if isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], str)
             and not isinstance(x[1], (str, os.PathLike))]
    if items and len(pairs) == len(items):
        return dict(pairs)
    if all(isinstance(x, (str, os.PathLike)) for x in items):
        return items
    for at, x in enumerate(items):
        if not _is_array(x):
            raise _libmx.Error(f"item {at} is a {type(x).__name__}: paths, or arrays, are expected")
    return {str(at): x for at, x in enumerate(items)}


def _is_array(x: Any) -> bool:
    return hasattr(x, "__dlpack__") or hasattr(x, "__array_interface__") or isinstance(
        x, (bytes, bytearray, memoryview, _libmx.View))


def source_of(source: Any) -> Any:
    """Paths, an opened model or arrays, for the compiled part."""
    source = arrays_of(source)
    if isinstance(source, Mapping):
        return [_named_view(x, str(name)) for name, x in source.items()]
    if isinstance(source, Model):
        return source._files
    return texts(source)


def name_of(dump: Any, at: int) -> str:
    """The name of a dump."""
    return os.fspath(dump) if isinstance(dump, (str, os.PathLike)) else str(at)


def dumps_of(dumps: Sequence[Any]) -> List[Any]:
    """Dumps for the compiled part: paths stay paths."""
    return [os.fspath(d) if isinstance(d, (str, os.PathLike)) else source_of(d) for d in dumps]
