# SPDX-License-Identifier: Apache-2.0
"""Figures and dumps of a training run: libmx.torch has what is public here."""

from __future__ import annotations

import fnmatch
import functools
import json
import logging
import math
import os
import struct
import sys
import warnings
from dataclasses import dataclass
from typing import (Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set,
                    Tuple, TypeVar, Union)

import numpy as np
import torch

from . import (Analysis, Error, Recipe, RecipeLike, Statistics, _device, analyze, quantize, recipe,
               statistics)
from ._arrays import _names as _stored, require_memory

Patterns = Union[str, Sequence[str]]
logger = logging.getLogger("libmx.torch")


def on_host(x: torch.Tensor) -> torch.Tensor:
    require_memory(x)
    x = x.detach()
    return (x if x.device.type == "cpu" else x.cpu()).resolve_neg()


def _own_part(x: Any) -> torch.Tensor:
    """x; of a DTensor what this process has of it."""
    if hasattr(x, "to_local"):
        x = x.to_local()
    y: torch.Tensor = x.wait() if hasattr(x, "wait") else x  # it may be on its way
    return y


def patterns_of(patterns: Patterns) -> Tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else tuple(patterns)


def matches(name: str, patterns: Patterns) -> bool:
    """Whether a pattern matches the name, or what follows one of its dots."""
    return any(fnmatch.fnmatchcase(name, p) or fnmatch.fnmatchcase(name, "*." + p)
               for p in patterns_of(patterns))


def _recipes(given: Any) -> List[Recipe]:
    found = [recipe(r) for r in ([given] if isinstance(given, (str, Recipe)) else given)]
    if not found:
        raise Error("recipes: at least one is expected")
    return list(dict.fromkeys(found))


def _of_this_process(path: Any) -> str:
    """`path`; in rank R > 0 of a job of torch.distributed the file rank-R/NAME beside it."""
    own, dist = str(os.fspath(path)), torch.distributed
    rank = dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
    if rank:
        own = os.path.join(os.path.dirname(own), f"rank-{rank}", os.path.basename(own))
    os.makedirs(os.path.dirname(own) or ".", exist_ok=True)
    return own


def _is_norm(module: torch.nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    return "norm" in type(module).__name__.lower() and isinstance(weight, torch.nn.Parameter) \
        and weight.dim() == 1


def _in_backward() -> bool:
    """False in PyTorch before 2.0, which does not provide it."""
    task = getattr(torch._C, "_current_graph_task_id", None)
    return task is not None and task() != -1


def _forget_compiled_code() -> None:
    """Compiled code does not see later hooks: it is compiled again at the next call."""
    if "torch._dynamo" in sys.modules:
        sys.modules["torch._dynamo"].reset()


class _Steps:
    """Numbers of steps. Those that the caller gives are followed, also if they grow by more than 1."""

    def __init__(self, every: int, first: int) -> None:
        if every < 1:
            raise Error(f"every={every}: at least 1 is expected")
        self.every, self.at, self._last = every, first, first - 1
        self._told = False

    def due(self) -> bool:
        """Whether the step under way is measured: a multiple of `every`, or the first one after it."""
        return self.at // self.every > self._last // self.every

    def end(self, told: Optional[int]) -> Tuple[int, bool]:
        """The number of the step that ends, and whether it was to be measured."""
        if told is not None:
            if not self._told and told != self.at:
                self._last = told - 1
            self._told, self.at = True, told
        at, due = self.at, self.due()
        self.at += max(at - self._last, 1)
        self._last = at
        return at, due


class _Hook:
    """A hook of a module. Copies of a watched model, pickled ones too, are not watched."""

    def __init__(self, take: Optional[Callable[..., None]] = None) -> None:
        # What it does is not for compilers: the figures of a step are numbers, not tensors.
        compiler = getattr(torch, "compiler", None)
        if take is not None and hasattr(compiler, "disable"):
            take = compiler.disable(take)  # type: ignore[union-attr]
        self._take = take

    def __call__(self, *arguments: Any) -> None:
        if self._take is not None:
            self._take(*arguments)

    def __reduce__(self) -> Tuple[Any, ...]:
        return _Hook, ()


class _Products:
    """A hook of the products with the parameters of a converted module."""

    def __init__(self, module: torch.nn.Module, hook: _Hook) -> None:
        self._hooks, self._hook = vars(module).setdefault("mx_products", []), hook
        self._hooks.append(hook)

    def remove(self) -> None:
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)


class _Hooks:
    """Passes weights, activations and gradients of linear layers, and the gains of norms, to
    `take(kind, name, tensor)` while `active()`. A forward pass that activation checkpointing repeats counts once,
    and passes under torch.no_grad() do not count."""

    def __init__(self, model: torch.nn.Module, kinds: Patterns, layers: Patterns,
                 active: Callable[[], bool],
                 take: Callable[[str, str, torch.Tensor], None]) -> None:
        self._kinds, self._active, self._take = set(patterns_of(kinds)), active, take
        self._direct: Set[str] = set()  # layers seen outside of a backward pass
        for unknown in sorted(self._kinds - {"weight", "activation", "gradient"}):
            raise Error(f"{unknown!r} is none of weight, activation, gradient")
        self._handles: List[Any] = []
        left = []
        for name, module in model.named_modules():
            if not matches(name, layers) or "parametrizations" in name.split("."):
                continue
            # The output projection of MultiheadAttention is read, not called.
            called = isinstance(module, torch.nn.Linear) and not isinstance(
                module, torch.nn.modules.linear.NonDynamicallyQuantizableLinear)
            if called or _is_norm(module):
                self._handles.append(module.register_forward_hook(_Hook(functools.partial(
                    self._forward, name))))
            elif getattr(type(module), "_mx_names", ()):
                self._handles.append(_Products(module, _Hook(functools.partial(
                    self._product, name, module))))
            elif not isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and any(
                    p is not None and not torch.nn.parameter.is_lazy(p) and p.dim() > 1
                    for p in module._parameters.values()):
                left.append(name or "the model")
        if not self._handles:
            raise Error("no linear layer and no norm " + (
                "in the model" if patterns_of(layers) == ("*",)
                else f"matches {', '.join(patterns_of(layers))}"))
        if left:
            logger.warning("not measured: %s: of attention and experts, convert_(model, LinearConfig()) "
                           "makes the products known, and changes none", ", ".join(left))
        _forget_compiled_code()

    def _counted(self, name: str) -> bool:
        """Whether values count, and are not those of a forward pass made again."""
        if not self._handles or not self._active() or not torch.is_grad_enabled():
            return False
        if _in_backward():
            return name not in self._direct
        self._direct.add(name)
        return True

    def _forward(self, name: str, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        if not self._counted(name):
            return
        self._weight(name + ".weight", module.weight)
        if isinstance(module, torch.nn.Linear):
            self._operands(name, inputs[0] if inputs else None, output)

    def _product(self, name: str, module: torch.nn.Module, parameter: str, x: Any, w: Any,
                 y: Any) -> None:
        """Of x and the transpose of w, a part of the parameter, which is taken whole."""
        name = (name + "." if name else "") + parameter
        if self._counted(name):
            whole: Any = module._parameters.get(parameter, w)
            self._weight(name, whole if w.stride(-1) == 1 else whole.transpose(-2, -1))
            self._operands(name.removesuffix(".weight"), x, y)

    def _weight(self, name: str, w: Any) -> None:
        if "weight" in self._kinds:
            self._take("weight", name, _own_part(w))

    def _operands(self, name: str, x: Any, y: Any) -> None:
        if "activation" in self._kinds and x is not None:
            self._take("activation", name + ".input", _own_part(x))
        if "gradient" in self._kinds and isinstance(y, torch.Tensor) and y.requires_grad:
            hooked: Any = y  # register_hook has no types
            hooked.register_hook(lambda dy: self._take("gradient", name + ".output.grad",
                                                       _own_part(dy)))

    def end_step(self) -> None:
        self._direct.clear()

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []


_Self = TypeVar("_Self", bound="_Hooked")


class _Hooked:
    """What has hooks in a model until it is closed, as a context manager. Copies, pickled ones too,
    have none."""

    _hooks: Optional[_Hooks]

    def close(self) -> None:
        """Removes the hooks."""
        if self._hooks is not None:
            self._hooks.remove()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __getstate__(self) -> Dict[str, Any]:
        return {**vars(self), "_hooks": None}


_shown = ("sqnr_db", "underflow_rate", "saturated_block_rate", "gain")


class Watch(_Hooked):
    """Figures of a training run; made by watch(). A context manager. Copies, pickled ones too, have the
    figures but watch no model."""

    def __init__(self, model: torch.nn.Module, recipes: Any, tensors: Patterns, every: int,
                 layers: Patterns, step: int, log: Any) -> None:
        self.recipes = _recipes(recipes)
        self._keys = [str(r) for r in self.recipes]
        self._steps = _Steps(every, step)
        self._log = None if log is None else _of_this_process(log)
        self._latest: Dict[Tuple[str, str], Dict[str, Any]] = {}
        self._counted: Dict[Tuple[str, str], Set[bytes]] = {}
        self.statistics: Dict[Tuple[str, str], Any] = {}
        self._hooks = _Hooks(model, tensors, layers, self._steps.due, self._take)

    @property
    def step(self) -> int:
        """The number of the step under way."""
        return self._steps.at

    @property
    def records(self) -> List[Dict[str, Any]]:
        """The latest figures of every tensor under every recipe, members of mx.analysis/1, and `step`."""
        return list(self._latest.values())

    def _take(self, kind: str, name: str, x: torch.Tensor) -> None:
        if kind == "weight" and (name, self._keys[0]) in self.statistics:
            return  # the same in every part of a batch
        for key, r in zip(self._keys, self.recipes):
            if (name, key) not in self.statistics:
                self.statistics[name, key] = statistics(r, name)
        there = all(_device.takes(x, key) for key in self._keys)
        Statistics.update_all([self.statistics[name, key] for key in self._keys], x if there else on_host(x))

    def merge(self, other: Mapping[Tuple[str, str], Any]) -> None:
        """Adds the `statistics` of another process of this step, in any order. A weight with the sums of
        one that is counted is its replica, and is not added."""
        def sums(s: Any) -> bytes:
            return b"".join(part.tobytes() for part in s.to_sum_max())

        for key, theirs in other.items():
            ours = self.statistics.get(key)
            if ours is None:
                ours = self.statistics[key] = statistics(theirs.recipe, theirs.name)
            elif key[0].endswith(".weight"):
                counted = self._counted.setdefault(key, {sums(ours)})
                if sums(theirs) in counted:
                    continue
                counted.add(sums(theirs))
            ours.merge(theirs)

    def scalars(self, step: Optional[int] = None) -> Iterator[Tuple[str, float]]:
        """Ends a step, by its number if the caller counts: (tag, value) of its measurements, for any
        writer of scalars; empty in steps that are not measured. Tags: mx/RECIPE/TENSOR/FIGURE. Parts of
        a batch count together."""
        at, measured = self._steps.end(step)
        found, self.statistics, self._counted = self.statistics, {}, {}
        if self._hooks is not None:
            self._hooks.end_step()
        tags = []
        lines = []
        for (name, r), s in found.items() if measured else ():
            record = self._latest[name, r] = {**s.record(), "step": at}
            lines.append(json.dumps(record) + "\n")
            tags += [(f"mx/{r}/{name}/{figure}", float(record[figure])) for figure in _shown
                     if record.get(figure) is not None]
        if self._log is not None and lines:
            with open(self._log, "a") as f:
                f.writelines(lines)
        return iter(tags)

    def save(self, path: Any) -> None:
        """Writes `records` as mx.analysis/1, for `mx report|gate|diff`. Rank R > 0 of a job of
        torch.distributed writes into the folder rank-R beside."""
        Analysis([{k: v for k, v in r.items() if k != "step"} for r in self.records],
                 []).save(_of_this_process(path))


def watch(model: torch.nn.Module, recipes: Union[RecipeLike, Sequence[RecipeLike]],
          tensors: Patterns = ("weight", "activation", "gradient"), every: int = 50,
          layers: Patterns = ("*",), step: int = 0, log: Any = None) -> Watch:
    """Measures linear layers (weights, inputs, gradients of outputs) and gains of norms in every
    `every`-th step, during its forward and backward passes; call .scalars() once a step. `layers`:
    patterns of module names, or of their last parts. step: the number of the first step. log: a file to
    which every record is appended, as a line of JSON; in memory are the latest only. Of a DTensor, the
    part of this process is measured. Forward passes under torch.no_grad() do not count. Code of
    torch.compile is compiled again."""
    return Watch(model, recipes, tensors, every, layers, step, log)


def save(path: Any, tensors: Mapping[str, torch.Tensor]) -> None:
    """Writes tensors of floating types as a safetensors file, which the command reads. The file appears
    whole or not at all. Raises Error for other types, and for tensors without memory of their own."""
    header: Dict[str, Any] = {}
    at = 0
    for name, x in tensors.items():
        spelled = str(x.dtype).rpartition(".")[2]
        if spelled not in _stored or not x.dtype.is_floating_point:
            raise Error(f"{name} is of {x.dtype}: only floating types are written")
        require_memory(x)
        size = x.numel() * x.element_size()
        header[name] = {"dtype": _stored[spelled], "shape": list(x.shape),
                        "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    unfinished = f"{os.fspath(path)}.{os.getpid()}.part"  # other processes may write this file too
    try:
        with open(unfinished, "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            for x in tensors.values():
                flat = on_host(x).contiguous().reshape(-1)
                if type(flat) is not torch.Tensor:
                    flat = flat.as_subclass(torch.Tensor)
                f.write(flat.view(torch.uint8).numpy().data)
        os.replace(unfinished, path)
    finally:
        if os.path.exists(unfinished):
            os.remove(unfinished)


class capture(_Hooked):
    """Writes weights, inputs and gradients of linear layers, and gains of norms, of given steps as
    FOLDER/step-N.safetensors, which the command reads:

        with capture(model, "dumps", steps=[0, 100]) as c:
            for ...: loss.backward(); optimizer.step(); c.step()

    `step`: the number of the first step. If a batch is processed in parts, the first one is written. The
    tensors of a step are in memory until it ends. Of a DTensor, the part of this process is written; rank
    R > 0 of a job of torch.distributed writes into FOLDER/rank-R."""

    def __init__(self, model: torch.nn.Module, folder: Any, steps: Iterable[int],
                 tensors: Patterns = ("weight", "activation", "gradient"),
                 layers: Patterns = ("*",), step: int = 0) -> None:
        os.makedirs(folder, exist_ok=True)
        self.folder, self.steps, self.at = os.fspath(folder), set(steps), step
        self._found: Dict[str, torch.Tensor] = {}
        self._hooks = _Hooks(model, tensors, layers, self._due, self._take)

    def _due(self) -> bool:
        return self.at in self.steps

    def _take(self, kind: str, name: str, x: torch.Tensor) -> None:
        if name not in self._found:
            self._found[name] = on_host(x).clone()

    def step(self, step: Optional[int] = None) -> None:
        """Ends a step, by its number if the caller counts."""
        at = self.at if step is None else step
        found, self._found, self.at = self._found, {}, at + 1
        if self._hooks is not None:
            self._hooks.end_step()
        if found and at in self.steps:
            save(_of_this_process(os.path.join(self.folder, f"step-{at}.safetensors")), found)


@dataclass(frozen=True)
class NormAlert:
    """The effect of a recipe on the gains of a norm. what: "approaches" (block maxima drift towards the
    mantissas at which the recipe clamps), "saturates" (all elements of a block get the largest code),
    "collapses" (all elements of a block get one other code). Shares are of blocks. distance: mean log2
    of the block maxima's mantissas over the lower edge of the clamp zone; negative below it, None if the
    recipe has no such zone. crossing: the step at which a straight line through the distances reaches
    zero."""

    step: int
    tensor: str
    recipe: str
    what: str
    saturated_block_rate: float
    collapsed_block_rate: float
    distance: Optional[float]
    crossing: Optional[int] = None

    def __str__(self) -> str:
        return f"step {self.step}: {self.tensor} under {self.recipe}: " + {
            "saturates": f"{self.saturated_block_rate:.1%} of blocks take the largest code whole",
            "collapses": f"{self.collapsed_block_rate:.1%} of blocks take one code whole",
            "approaches": f"block maxima reach the clamp zone near step {self.crossing}",
        }[self.what]


@functools.lru_cache(maxsize=None)
def _zone(by: Recipe) -> Tuple[int, Optional[float]]:
    """The block of a vector, and the mantissa from which its maximum clamps."""
    ones = np.ones(4096, np.float32)
    histogram = analyze({"": ones}, by, histograms=True).records[0]["amax_mantissa_histogram"]
    block = 4096 // int(np.prod(quantize(ones, by).scales.shape))
    return block, histogram["clamp_zone"][0] if histogram["clamp_zone"] else None


class NormWatch:
    """Monitors the gains of norms; made by watch_norms()."""

    def __init__(self, model: torch.nn.Module, recipes: Any, callback: Callable[[NormAlert], Any],
                 every: int, what: Sequence[str], step: int) -> None:
        for unknown in sorted(set(what) - {"approaches", "saturates", "collapses"}):
            raise Error(f"{unknown!r} is none of approaches, saturates, collapses")
        self.what = tuple(what)
        # Modules, not gains: FSDP and load_state_dict(assign=True) put others in their place.
        self.norms = {name + ".weight": module for name, module in model.named_modules()
                      if _is_norm(module)}
        if not self.norms:
            raise Error("no norm with gains in the model")
        self.recipes = _recipes(recipes)
        self.callback, self._steps = callback, _Steps(every, step)
        self.records: List[Dict[str, Any]] = []
        self._maxima: Dict[Tuple[str, int], List[Tuple[int, np.ndarray]]] = {}
        self._told: Set[Tuple[str, str, str]] = set()

    def step(self, step: Optional[int] = None) -> List[NormAlert]:
        """Ends a step, by its number if the caller counts: measures the gains if this step is measured,
        and calls back for new alerts."""
        at, measured = self._steps.end(step)
        if not measured:
            return []
        gains = {name: on_host(_own_part(norm.weight)) for name, norm in self.norms.items()}
        self.records = analyze(gains, self.recipes).records
        for block in {_zone(r)[0] for r in self.recipes}:
            for name, g in gains.items():
                a = g.float().abs().numpy().reshape(-1)
                a = np.pad(a, (0, -len(a) % block)).reshape(-1, block).max(1)
                kept = self._maxima.setdefault((name, block), [])
                kept.append((at, np.log2(np.maximum(a, 2.0 ** -126))))
                del kept[:-3]
        alerts = [alert for record in self.records for alert in self._alerts(at, record)]
        for alert in alerts:
            self.callback(alert)
        return alerts

    def _alerts(self, at: int, record: Dict[str, Any]) -> Iterator[NormAlert]:
        name, r = str(record["tensor"]), str(record["recipe"])
        block, edge = _zone(recipe(r))
        kept = self._maxima[name, block]
        distance, crossing = None, None
        if edge is not None:
            place = kept[-1][1] % 1.0  # log2 of mantissas
            distance = float(np.mean(place - math.log2(edge)))
            if len(kept) == 3 and distance < 0:
                crossing = self._crossing(kept, place, math.log2(edge))
        saturated = float(record["saturated_block_rate"] or 0)
        collapsed = float(record["collapsed_block_rate"] or 0)
        holds = {"approaches": crossing is not None, "saturates": saturated > 0,
                 "collapses": collapsed > saturated and not record["exact"]}
        for what in self.what:
            key = name, r, what
            if not holds[what]:
                self._told.discard(key)
            elif key not in self._told:
                self._told.add(key)
                yield NormAlert(at, name, r, what, saturated, collapsed, distance, crossing)

    @staticmethod
    def _crossing(kept: List[Tuple[int, np.ndarray]], place: np.ndarray,
                  edge: float) -> Optional[int]:
        """The step at which half of the blocks will have their maxima in the clamp zone, if their drift
        over three measurements, all in one direction, reaches it within ten times as long."""
        (first, a), (_, b), (last, c) = kept
        drift = (c - a) / max(last - first, 1)
        steady = (b - a) * (c - b) > 0
        way = np.where(drift > 0, np.maximum(edge - place, 0), place)  # the zone ends at 2^n
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(steady, way / np.abs(drift), np.inf)
        half = float(np.sort(steps)[(len(steps) - 1) // 2])
        return last + math.ceil(half) if half <= 10 * (last - first) else None


def _warn(alert: NormAlert) -> None:
    warnings.warn(str(alert), stacklevel=4)


def watch_norms(model: torch.nn.Module, recipes: Union[RecipeLike, Sequence[RecipeLike]],
                callback: Callable[[NormAlert], Any] = _warn, every: int = 1,
                what: Sequence[str] = ("approaches", "saturates"), step: int = 0) -> NormWatch:
    """Measures the gains of every norm (LayerNorm, RMSNorm, ...) in every `every`-th step: call .step()
    once a step. `callback` receives a NormAlert when blocks of a norm begin to do one of `what`, and
    again only after it has ended; without a callback, a warning is issued. "collapses" is off by
    default, because all gains of a new model are near 1. step: the number of the first step. `records`
    has the latest figures, members of mx.analysis/1. Of a DTensor, the part of this process is measured.
    Raises Error for a model without norms."""
    return NormWatch(model, recipes, callback, every, what, step)
