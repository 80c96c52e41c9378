# SPDX-License-Identifier: Apache-2.0
"""Training with emulated formats in PyTorch: quantized copies with a straight-through gradient, linear
layers with a recipe for each of six operands, and figures and dumps of a training run.

Products of quantized operands are those of torch.matmul, in the tensors' own type, unless an accumulator
model is given. Tensors on another device are copied to the host and back."""

from __future__ import annotations

import fnmatch
import functools
import json
import math
import os
import struct
import warnings
from dataclasses import dataclass
from typing import (Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set,
                    Tuple, Union)

import numpy as np
import torch
from torch import library

from . import (Analysis, Error, Recipe, RecipeLike, Statistics, analyze,
               fake_quantize as _fake_quantize, matmul, quantize, recipe, statistics)
from ._arrays import _names as _stored, require_memory

__all__ = ["Linear", "LinearConfig", "NormAlert", "Watch", "capture", "convert_", "fake_quantize",
           "from_mx_specs", "save", "watch", "watch_norms"]


def _on_host(x: torch.Tensor) -> torch.Tensor:
    require_memory(x)
    x = x.detach()
    return (x if x.device.type == "cpu" else x.cpu()).resolve_neg()


def _round_trip(x: torch.Tensor, recipe: str, name: str) -> torch.Tensor:
    y: torch.Tensor = _fake_quantize(_on_host(x), recipe, name)
    return y.to(x.device)


if hasattr(library, "custom_op"):  # 2.4 and later: torch.compile takes it as one operation
    _round_trip = library.custom_op(
        "libmx::fake_quantize", _round_trip, mutates_args=(),
        schema="(Tensor x, str recipe, str name) -> Tensor")
    _round_trip.register_fake(
        lambda x, recipe, name: torch.empty(x.shape, dtype=x.dtype, device=x.device))
    _round_trip.register_autograd(
        lambda ctx, dy: (dy, None, None))


@functools.lru_cache(maxsize=None)
def _outermost(by: Recipe) -> Tuple[int, int]:
    """The codes of the largest and of the smallest value."""
    q = quantize(np.ones((256, 256), np.float32), by)
    q.elements[...] = np.arange(256) % (1 << by._core.bits())
    y = q.dequantize()[0]
    y[~np.isfinite(y)] = 0
    return int(y.argmax()), int(y.argmin())


def _beyond(x: torch.Tensor, by: Recipe, name: str) -> torch.Tensor:
    """Where x is beyond the largest or smallest value of its block."""
    if "transform=" in str(by):
        raise Error(f"ste='clip' with {by}: a rotated block does not clamp single elements")
    host = _on_host(x)
    q = quantize(host, by, name)
    largest, smallest = _outermost(by)
    q.elements[...] = largest
    above = host > torch.from_numpy(q.dequantize())
    q.elements[...] = smallest
    return (above | (host < torch.from_numpy(q.dequantize()))).to(x.device)


class _FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, r: str, name: str, ste: str) -> torch.Tensor:
        if ste == "clip":
            ctx.save_for_backward(_beyond(x, recipe(r), name))
        return _round_trip(x, r, name)

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> Tuple[Any, ...]:
        for beyond in ctx.saved_tensors:
            dy = dy.masked_fill(beyond, 0)
        return dy, None, None, None


def fake_quantize(x: torch.Tensor, r: RecipeLike, name: str = "",
                  ste: str = "identity") -> torch.Tensor:
    """x quantized and dequantized, in x's type and on x's device. The gradient passes unchanged; with
    ste="clip" it is zero where |x| is beyond the largest value of its block. Stochastic rounding draws
    by `name` and index. Raises Error as libmx.fake_quantize does."""
    if ste not in ("identity", "clip"):
        raise Error(f"ste {ste!r} is neither 'identity' nor 'clip'")
    y: torch.Tensor = _FakeQuantize.apply(x, str(recipe(r)), name, ste)
    return y


Pair = Union[None, RecipeLike, Tuple[Optional[RecipeLike], Optional[RecipeLike]]]
_Recipes = Tuple[Optional[str], Optional[str]]


def _pair(p: Pair) -> _Recipes:
    a, b = p if isinstance(p, tuple) else (p, p)
    return (None if a is None else str(recipe(a)), None if b is None else str(recipe(b)))


@dataclass(frozen=True)
class LinearConfig:
    """Recipes of the operands of the three products, one for both or a pair:
    fprop (x, w): Y = X W^T; dgrad (dy, w): dX = dY W; wgrad (dy, x): dW = dY^T X.
    Each operand has its blocks along the axis that is summed over; None leaves it as it is.

    *_transform: "hadamard" rotates both operands of the product along that axis first, in float32,
    `transform_size` neighbours together (16, 32, 64 or 128), as `mx layer --transform` does.
    source: an operand of two products is quantized both times from the "tensor", or the second time
    from its first copy ("requantized").
    accumulate: a model of `mx explain accumulators`, which needs all six recipes; None is torch.matmul.
    Raises Error for what is not one of these."""

    fprop: Pair = None
    dgrad: Pair = None
    wgrad: Pair = None
    fprop_transform: Optional[str] = None
    dgrad_transform: Optional[str] = None
    wgrad_transform: Optional[str] = None
    transform_size: int = 32
    source: str = "tensor"
    accumulate: Optional[str] = None

    def __post_init__(self) -> None:
        for product in ("fprop", "dgrad", "wgrad"):
            object.__setattr__(self, product, _pair(getattr(self, product)))
            transform = getattr(self, product + "_transform")
            if transform not in (None, "hadamard"):
                raise Error(f"{product}_transform={transform!r} is neither None nor 'hadamard'")
        if self.transform_size not in (16, 32, 64, 128):
            raise Error(f"transform_size={self.transform_size} is none of 16, 32, 64, 128")
        if self.source not in ("tensor", "requantized"):
            raise Error(f"source={self.source!r} is neither 'tensor' nor 'requantized'")
        if self.source == "requantized" and (self.fprop_transform or self.dgrad_transform):
            raise Error("source='requantized' takes no transform of fprop and dgrad")
        if self.accumulate is not None and any(
                r is None for p in (self.fprop, self.dgrad, self.wgrad) for r in p):  # type: ignore
            raise Error("accumulate= needs a recipe for all six operands")


def _rotated(x: torch.Tensor, size: int) -> torch.Tensor:
    """Rows of x rotated by Hadamard matrices of `size`, and the rest of a row by the largest that fit:
    the butterflies of libmx/transform/rotation.hpp, in float32."""
    y = x.detach().float()
    parts, at, length = [], 0, int(y.shape[-1])
    while at < length:
        n = min(size, 1 << ((length - at).bit_length() - 1))
        groups = (length - at) // n if n == size else 1
        part = y[..., at:at + groups * n]
        distance = 1
        while distance < n:
            a, b = part.reshape(*y.shape[:-1], -1, 2, distance).unbind(-2)
            part = torch.stack((a + b, a - b), -2)
            distance *= 2
        factor = float(np.float32(1 / math.sqrt(n)))
        parts.append(part.reshape(*y.shape[:-1], groups * n) * factor)
        at += groups * n
    return torch.cat(parts, -1).to(x.dtype) if parts else x


def _drawn(r: Optional[str]) -> str:
    """A name for the draws of stochastic rounding, from PyTorch's generator: another one in every step,
    the same one after torch.manual_seed and when activation checkpointing repeats a forward pass."""
    if r is None or "round=stochastic" not in r:
        return ""
    return str(int(torch.randint(2 ** 62, ()).item()))


def _quantized(x: torch.Tensor, r: Optional[str]) -> torch.Tensor:
    return x if r is None else _round_trip(x, r, _drawn(r))


def _product(config: LinearConfig, which: str, a: torch.Tensor,
             b: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """a (M, K) times the transpose of b (N, K), and the quantized a and b."""
    recipes: _Recipes = getattr(config, which)
    if getattr(config, which + "_transform"):
        a, b = _rotated(a, config.transform_size), _rotated(b, config.transform_size)
    if config.accumulate is None:
        a, b = _quantized(a, recipes[0]), _quantized(b, recipes[1])
        return a @ b.t(), a, b
    # The model quantizes its operands itself; one that was quantized keeps its values.
    y = matmul(_on_host(a), _on_host(b).t(), recipes, config.accumulate)  # type: ignore[arg-type]
    if config.source == "requantized":
        a, b = _quantized(a, recipes[0]), _quantized(b, recipes[1])
    return torch.as_tensor(y).to(a.device, a.dtype), a, b


class _LinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, config: LinearConfig) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        y, xq, wq = _product(config, "fprop", rows, w)
        again = config.source == "requantized"
        ctx.save_for_backward(xq if again else rows, wq if again else w)
        ctx.config, ctx.shape = config, x.shape
        return y.reshape(*x.shape[:-1], w.shape[0])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: torch.Tensor) -> Tuple[Any, ...]:
        x, w = ctx.saved_tensors
        config: LinearConfig = ctx.config
        rows = dy.reshape(-1, dy.shape[-1])
        dx = dw = None
        again = config.source == "requantized"
        if ctx.needs_input_grad[0] or again and ctx.needs_input_grad[1]:
            dx, copy, _ = _product(config, "dgrad", rows, w.t())
            dx = dx.reshape(ctx.shape)
            rows = copy if again else rows
        if ctx.needs_input_grad[1]:
            dw, _, _ = _product(config, "wgrad", rows.t(), x.t())
        return dx if ctx.needs_input_grad[0] else None, dw, None


def _autocast_type(device: str) -> Optional[torch.dtype]:
    """The type in which autocast computes a linear layer."""
    if hasattr(torch, "get_autocast_dtype"):  # 2.4 and later
        return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    if device == "cpu":
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


class Linear(torch.nn.Linear):
    """torch.nn.Linear with a LinearConfig. The bias is added in the tensors' type; its gradient is that
    of torch. Under autocast, input and parameters are cast first, as in torch.nn.Linear."""

    config: LinearConfig

    def __init__(self, in_features: int, out_features: int, bias: bool = True,
                 config: LinearConfig = LinearConfig(), **more: Any) -> None:
        super().__init__(in_features, out_features, bias, **more)
        self.config = config

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        to = _autocast_type(input.device.type)
        if to is None:
            y: torch.Tensor = _LinearFunction.apply(input, self.weight, self.config)
            return y if self.bias is None else y + self.bias
        with torch.autocast(input.device.type, enabled=False):
            y = _LinearFunction.apply(input.to(to), self.weight.to(to), self.config)
            return y if self.bias is None else y + self.bias.to(to)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.config}"


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, p) for p in patterns)


def convert_(model: torch.nn.Module, config: LinearConfig,
             skip: Sequence[str] = ("lm_head", "*router*", "*gate")) -> List[str]:
    """Replaces in place every torch.nn.Linear whose name matches no pattern of `skip` by a
    libmx.torch.Linear; parameters, hooks and optimizers stay. Returns the names of the replaced layers."""
    done = []
    for name, module in model.named_modules():
        if type(module) is torch.nn.Linear and not _matches(name, skip):
            module.__class__ = Linear
            module.config = config  # type: ignore[assignment]
            done.append(name)
    return done


_elements = {"fp8_e4m3": "mxfp8", "fp8_e5m2": "mxfp8_e5m2", "fp6_e3m2": "mxfp6_e3m2",
             "fp6_e2m3": "mxfp6_e2m3", "fp4_e2m1": "mxfp4", "fp4": "mxfp4", "int8": "mxint8",
             "int4": "mxint8:element=int4"}
_rounds = {"nearest": "away", "even": "rtne", "floor": "zero"}
# Settings beyond the operands, with the values under which they have no effect.
_outside = {"bfloat": (0, 32), "fp": (0,), "bfloat_subnorms": (True,), "softmax_exp2": (False,),
            "vec_use_exp2": (False,), "vec_use_recip": (False,)}
_no_effect = {"custom_cuda", "round", "round_m", "round_weight", "round_output",
              "round_grad_weight", "round_grad_input", "round_mx_input_grad_input"}


def from_mx_specs(specs: Mapping[str, Any]) -> LinearConfig:
    """microxcaling's dictionary, as for finalize_mx_specs(), as a LinearConfig with
    dialect=microxcaling. Raises Error for settings of operands that no recipe has. Warns of other
    settings that are not emulated, such as bfloat=16 and its roundings. For inputs of three axes,
    microxcaling's blocks of wgrad end with a sequence, and those of libmx may continue in the next one;
    there is no difference if lengths are multiples of the block."""
    left = []
    for key, value in specs.items():
        if key in _outside:
            if value is not None and value not in _outside[key]:
                left.append(f"{key}={value!r}")
        elif key not in _no_effect and key not in (
                "w_elem_format", "a_elem_format", "w_elem_format_bp", "a_elem_format_bp_ex",
                "a_elem_format_bp_os", "block_size", "scale_bits", "shared_exp_method",
                "mx_flush_fp32_subnorms", "quantize_backprop", "round_mx_output",
                "round_mx_weight_grad_input", "round_mx_grad_output_grad_input",
                "round_mx_input_grad_weight", "round_mx_grad_output_grad_weight"):
            raise Error(f"mx_specs: {key!r} is no key of microxcaling")
    for key, only in (("scale_bits", (0, 8, None)), ("shared_exp_method", ("max", None))):
        if specs.get(key) not in only:
            raise Error(f"mx_specs: {key}={specs[key]!r} has no counterpart")
    block = specs.get("block_size") or 0
    flush = ",flush_subnormals=true" if specs.get("mx_flush_fp32_subnorms") else ""

    def of(rounding: str, base: str, *keys: str) -> Optional[str]:
        for key in keys:
            element = specs.get(key)
            if element is None:
                continue
            if element not in _elements:
                raise Error(f"mx_specs: {key}={element!r} has no counterpart")
            if block < 1:
                raise Error(f"mx_specs: block_size={block} has no counterpart: blocks have a size")
            how = specs.get(rounding) or specs.get(base) or specs.get("round") or "nearest"
            if how not in _rounds:
                raise Error(f"mx_specs: {rounding}={how!r} has no counterpart")
            preset = _elements[element]
            return str(recipe(f"{preset}{',' if ':' in preset else ':'}dialect=microxcaling,"
                              f"block=1x{block},round={_rounds[how]}{flush}"))
        return None

    if left:
        warnings.warn("libmx.torch rounds the operands of linear layers only: not emulated: "
                      + ", ".join(left), stacklevel=2)
    fprop = (of("round_mx_output", "round", "a_elem_format"),
             of("round_mx_output", "round", "w_elem_format"))
    if specs.get("quantize_backprop") is False:
        return LinearConfig(fprop=fprop)
    back, ex = "round_grad_input", ("a_elem_format_bp_ex", "a_elem_format")
    return LinearConfig(
        fprop=fprop,
        dgrad=(of("round_mx_grad_output_grad_input", back, "a_elem_format_bp_os", "a_elem_format"),
               of("round_mx_weight_grad_input", back, "w_elem_format_bp", "w_elem_format")),
        wgrad=(of("round_mx_grad_output_grad_weight", back, *ex),
               of("round_mx_input_grad_weight", back, *ex)))


def _is_norm(module: torch.nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    return "norm" in type(module).__name__.lower() and isinstance(weight, torch.nn.Parameter) \
        and weight.dim() == 1


def _in_backward() -> bool:
    """False in PyTorch before 2.0, which does not provide it."""
    task = getattr(torch._C, "_current_graph_task_id", None)
    return task is not None and task() != -1


class _Hooks:
    """Passes weights, activations and gradients of linear layers, and the gains of norms, to `take(kind,
    name, tensor)` while `active()`. A forward pass that activation checkpointing repeats counts once,
    and passes under torch.no_grad() do not count."""

    def __init__(self, model: torch.nn.Module, kinds: Iterable[str], layers: Sequence[str],
                 active: Callable[[], bool],
                 take: Callable[[str, str, torch.Tensor], None]) -> None:
        self._kinds, self._active, self._take = set(kinds), active, take
        self._direct: Set[str] = set()  # layers seen outside of a backward pass
        for unknown in sorted(self._kinds - {"weight", "activation", "gradient"}):
            raise Error(f"{unknown!r} is none of weight, activation, gradient")
        self._handles = []
        for name, module in model.named_modules():
            if _matches(name, layers) and (isinstance(module, torch.nn.Linear) or _is_norm(module)):
                self._handles.append(module.register_forward_hook(functools.partial(
                    self._forward, name)))
        if not self._handles:
            raise Error("no linear layer and no norm " + (
                "in the model" if tuple(layers) == ("*",) else f"matches {', '.join(layers)}"))

    def _forward(self, name: str, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        if not self._active() or not torch.is_grad_enabled():
            return
        if _in_backward():
            if name in self._direct:
                return  # a forward pass made again: its values were taken
        else:
            self._direct.add(name)
        if "weight" in self._kinds:
            self._take("weight", name + ".weight", module.weight)  # type: ignore[arg-type]
        if not isinstance(module, torch.nn.Linear):
            return
        if "activation" in self._kinds and inputs:
            self._take("activation", name + ".input", inputs[0])
        if "gradient" in self._kinds and isinstance(output, torch.Tensor) and output.requires_grad:
            output.register_hook(functools.partial(  # type: ignore[no-untyped-call]
                self._take, "gradient", name + ".output.grad"))

    def end_step(self) -> None:
        self._direct.clear()

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


_shown = ("sqnr_db", "underflow_rate", "saturated_block_rate", "gain")


class Watch:
    """Figures of a training run; made by watch()."""

    def __init__(self, model: torch.nn.Module, recipes: Sequence[RecipeLike],
                 tensors: Sequence[str], every: int, layers: Sequence[str]) -> None:
        if every < 1:
            raise Error(f"every={every}: at least 1 is expected")
        given = [recipe(r) for r in ([recipes] if isinstance(recipes, str) else recipes)]
        if not given:
            raise Error("recipes: at least one is expected")
        self.recipes = list(dict.fromkeys(given))
        self._keys = [str(r) for r in self.recipes]
        self.every, self.step = every, 0
        self.records: List[Dict[str, Any]] = []
        self.statistics: Dict[Tuple[str, str], Any] = {}
        self._hooks = _Hooks(model, tensors, layers, lambda: self.step % self.every == 0,
                             self._take)

    def _take(self, kind: str, name: str, x: torch.Tensor) -> None:
        if kind == "weight" and (name, self._keys[0]) in self.statistics:
            return  # the same in every part of a batch
        for key, r in zip(self._keys, self.recipes):
            if (name, key) not in self.statistics:
                self.statistics[name, key] = statistics(r, name)
        Statistics.update_all([self.statistics[name, key] for key in self._keys], _on_host(x))

    def merge(self, other: Mapping[Tuple[str, str], Any]) -> None:
        """Adds the `statistics` of another process of this step, in any order."""
        for key, theirs in other.items():
            if key in self.statistics:
                self.statistics[key].merge(theirs)
            else:
                self.statistics[key] = theirs

    def scalars(self, step: Optional[int] = None) -> Iterator[Tuple[str, float]]:
        """Ends a step: (tag, value) of its measurements, for any writer of scalars; empty in steps that
        are not measured. Tags: mx/RECIPE/TENSOR/FIGURE. Parts of a batch count together."""
        at = self.step if step is None else step
        tags = []
        for (name, r), s in self.statistics.items():
            record = {**s.record(), "step": at}
            self.records.append(record)
            tags += [(f"mx/{r}/{name}/{figure}", float(record[figure])) for figure in _shown
                     if record.get(figure) is not None]
        self.statistics = {}
        self.step += 1
        self._hooks.end_step()
        return iter(tags)

    def save(self, path: Any) -> None:
        """Writes the latest figures of every tensor as mx.analysis/1, for `mx report|gate|diff`."""
        latest = {(r["tensor"], r["recipe"]): {k: v for k, v in r.items() if k != "step"}
                  for r in self.records}
        Analysis(list(latest.values()), []).save(path)

    def close(self) -> None:
        """Removes the hooks."""
        self._hooks.remove()


def watch(model: torch.nn.Module, recipes: Sequence[RecipeLike],
          tensors: Sequence[str] = ("weight", "activation", "gradient"), every: int = 50,
          layers: Sequence[str] = ("*",)) -> Watch:
    """Measures linear layers (weights, inputs, gradients of outputs) and gains of norms in every
    `every`-th step, during its forward and backward passes; call .scalars() once a step. `layers`:
    patterns of module names. Forward passes under torch.no_grad() do not count."""
    return Watch(model, recipes, tensors, every, layers)


def save(path: Any, tensors: Mapping[str, torch.Tensor]) -> None:
    """Writes tensors of floating types as a safetensors file, which the command reads. The file appears
    whole or not at all."""
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
    unfinished = f"{path}.part"
    with open(unfinished, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for x in tensors.values():
            flat = _on_host(x).contiguous().reshape(-1)
            f.write(flat.view(torch.uint8).numpy().data)
    os.replace(unfinished, path)


class capture:
    """Writes weights, inputs and gradients of linear layers, and gains of norms, of given steps as
    FOLDER/step-N.safetensors, which the command reads:

        with capture(model, "dumps", steps=[0, 100]) as c:
            for ...: loss.backward(); optimizer.step(); c.step()

    If a batch is processed in parts, the first one is written. The tensors of a step are in memory until
    it ends."""

    def __init__(self, model: torch.nn.Module, folder: Any, steps: Iterable[int],
                 tensors: Sequence[str] = ("weight", "activation", "gradient"),
                 layers: Sequence[str] = ("*",)) -> None:
        os.makedirs(folder, exist_ok=True)
        self.folder, self.steps, self.at = os.fspath(folder), set(steps), 0
        self._found: Dict[str, torch.Tensor] = {}
        self._hooks = _Hooks(model, tensors, layers, lambda: self.at in self.steps, self._take)

    def _take(self, kind: str, name: str, x: torch.Tensor) -> None:
        if name not in self._found:
            self._found[name] = _on_host(x).clone()

    def step(self) -> None:
        """Ends a step."""
        if self._found:
            save(os.path.join(self.folder, f"step-{self.at}.safetensors"), self._found)
            self._found = {}
        self._hooks.end_step()
        self.at += 1

    def __enter__(self) -> "capture":
        return self

    def __exit__(self, *_: Any) -> None:
        self._hooks.remove()


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

    def __init__(self, model: torch.nn.Module, recipes: Sequence[RecipeLike],
                 callback: Callable[[NormAlert], Any], every: int, what: Sequence[str]) -> None:
        if every < 1:
            raise Error(f"every={every}: at least 1 is expected")
        for unknown in sorted(set(what) - {"approaches", "saturates", "collapses"}):
            raise Error(f"{unknown!r} is none of approaches, saturates, collapses")
        self.what = tuple(what)
        self.gains = {name + ".weight": module.weight for name, module in model.named_modules()
                      if _is_norm(module)}
        if not self.gains:
            raise Error("no norm with gains in the model")
        self.recipes = [recipe(r) for r in ([recipes] if isinstance(recipes, str) else recipes)]
        self.callback, self.every, self.at = callback, every, 0
        self.records: List[Dict[str, Any]] = []
        self._maxima: Dict[Tuple[str, int], List[Tuple[int, np.ndarray]]] = {}
        self._told: Set[Tuple[str, str, str]] = set()

    def step(self, step: Optional[int] = None) -> List[NormAlert]:
        """Ends a step: measures the gains if this step is measured, and calls back for new alerts."""
        at = self.at if step is None else step
        self.at += 1
        if (self.at - 1) % self.every:
            return []
        gains = {name: _on_host(w) for name, w in self.gains.items()}
        self.records = analyze(gains, self.recipes).records
        for block in {_zone(r)[0] for r in self.recipes}:
            for name, g in gains.items():
                a = g.float().abs().numpy()
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


def watch_norms(model: torch.nn.Module, recipes: Sequence[RecipeLike],
                callback: Callable[[NormAlert], Any] = _warn, every: int = 1,
                what: Sequence[str] = ("approaches", "saturates")) -> NormWatch:
    """Measures the gains of every norm (LayerNorm, RMSNorm, ...) in every `every`-th step: call .step()
    once a step. `callback` receives a NormAlert when blocks of a norm begin to do one of `what`, and
    again only after it has ended; without a callback, a warning is issued. "collapses" is off by
    default, because all gains of a new model are near 1. `records` has the latest figures, members of
    mx.analysis/1. Raises Error for a model without norms."""
    return NormWatch(model, recipes, callback, every, what)
