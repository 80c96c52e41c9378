# SPDX-License-Identifier: Apache-2.0
"""Training with emulated formats in PyTorch: quantized copies with a straight-through gradient,
linear layers whose six operands have a recipe each, and figures and dumps of a training under way.

Products of quantized operands are made by torch.matmul in float32, unless an accumulator model is
named. Tensors on another device are copied to the host and back, which is said here because it is
slow.
"""

from __future__ import annotations

import fnmatch
import json
import struct
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import torch

from . import (Analysis, Error, RecipeLike, analyze, fake_quantize as _fake_quantize, matmul,
               quantize, recipe)

__all__ = ["Linear", "LinearConfig", "Watch", "capture", "convert_", "fake_quantize",
           "from_mx_specs", "watch"]


def _on_host(x: torch.Tensor) -> torch.Tensor:
    x = x.detach()
    return x if x.device.type == "cpu" else x.cpu()


def _quantized(x: torch.Tensor, r: Optional[RecipeLike], name: str = "") -> torch.Tensor:
    """x quantized and back along its last axis, in x's type and on x's device."""
    if r is None:
        return x
    return _fake_quantize(_on_host(x), r, name).to(x.device)


def _beyond(x: torch.Tensor, y: torch.Tensor, r: RecipeLike, name: str) -> torch.Tensor:
    """Where an element lies beyond the largest value of its block."""
    codes = torch.from_numpy(quantize(_on_host(x), r, name).elements)
    by = recipe(r)
    magnitude = codes & ((1 << (by._core.bits() - 1)) - 1)
    return (magnitude == magnitude.max()).to(x.device) & (x.abs() > y.abs())


class _FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, r: RecipeLike, name: str, ste: str) -> torch.Tensor:
        y = _quantized(x, r, name)
        if ste == "clip":
            ctx.save_for_backward(_beyond(x, y, r, name))
        return y

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> Tuple[Any, ...]:
        for beyond in ctx.saved_tensors:
            dy = dy.masked_fill(beyond, 0)
        return dy, None, None, None


def fake_quantize(x: torch.Tensor, r: RecipeLike, name: str = "",
                  ste: str = "identity") -> torch.Tensor:
    """x quantized and back. The gradient passes as it is; with ste="clip" it is zero where an
    element lies beyond the largest value of its block."""
    if ste not in ("identity", "clip"):
        raise Error(f"ste {ste!r} is neither 'identity' nor 'clip'")
    return _FakeQuantize.apply(x, r, name, ste)


Pair = Union[None, RecipeLike, Tuple[Optional[RecipeLike], Optional[RecipeLike]]]


def _pair(p: Pair) -> Tuple[Optional[str], Optional[str]]:
    a, b = p if isinstance(p, tuple) else (p, p)
    return (None if a is None else str(recipe(a)), None if b is None else str(recipe(b)))


@dataclass(frozen=True)
class LinearConfig:
    """Recipes of the operands of the three products, one for both or a pair:
    fprop (x, w): Y = X W^T; dgrad (dy, w): dX = dY W; wgrad (dy, x): dW = dY^T X.
    Each operand is quantized from the high-precision tensor along the axis that is summed over; None
    leaves it as it is. accumulate: a model of `mx accumulators`, or None for torch.matmul."""

    fprop: Pair = None
    dgrad: Pair = None
    wgrad: Pair = None
    accumulate: Optional[str] = None

    def __post_init__(self) -> None:
        for operand in ("fprop", "dgrad", "wgrad"):
            object.__setattr__(self, operand, _pair(getattr(self, operand)))
        if self.accumulate is not None and any(
                r is None for p in (self.fprop, self.dgrad, self.wgrad) for r in p):
            raise Error("accumulate= needs a recipe for all six operands")


def _product(a: torch.Tensor, b: torch.Tensor, recipes: Tuple[Optional[str], Optional[str]],
             accumulate: Optional[str], names: Tuple[str, str]) -> torch.Tensor:
    """a (M, K) times b (N, K) transposed."""
    if accumulate is not None:
        y = matmul(_on_host(a), _on_host(b).t(), recipes, accumulate)  # type: ignore[arg-type]
        return torch.from_numpy(y).to(a.device, a.dtype)
    return _quantized(a, recipes[0], names[0]) @ _quantized(b, recipes[1], names[1]).t()


class _LinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, config: LinearConfig,
                name: str) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        ctx.config, ctx.name = config, name
        rows = x.reshape(-1, x.shape[-1])
        y = _product(rows, w, config.fprop, config.accumulate, (name + ".x", name + ".w"))
        return y.reshape(*x.shape[:-1], w.shape[0])

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> Tuple[Any, ...]:
        x, w = ctx.saved_tensors
        config, name = ctx.config, ctx.name
        rows = dy.reshape(-1, dy.shape[-1])
        dx = dw = None
        if ctx.needs_input_grad[0]:
            dx = _product(rows, w.t(), config.dgrad, config.accumulate,
                          (name + ".dy", name + ".w")).reshape(x.shape)
        if ctx.needs_input_grad[1]:
            dw = _product(rows.t(), x.reshape(-1, x.shape[-1]).t(), config.wgrad,
                          config.accumulate, (name + ".dy", name + ".x"))
        return dx, dw, None, None


class Linear(torch.nn.Linear):
    """torch.nn.Linear with a LinearConfig; the bias is added in high precision."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True,
                 config: LinearConfig = LinearConfig(), name: str = "", **more: Any) -> None:
        super().__init__(in_features, out_features, bias, **more)
        self.config, self.name = config, name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = _LinearFunction.apply(x, self.weight, self.config, self.name)
        return y if self.bias is None else y + self.bias

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.config}"


def convert_(model: torch.nn.Module, config: LinearConfig,
             skip: Sequence[str] = ("lm_head", "*router*", "*gate")) -> List[str]:
    """Replaces every torch.nn.Linear whose name matches no pattern of `skip` by a Linear with the
    same parameters. Returns the names of those replaced."""
    done = []
    for name, module in list(model.named_modules()):
        for child_name, child in list(module.named_children()):
            full = f"{name}.{child_name}" if name else child_name
            if type(child) is not torch.nn.Linear:
                continue
            if any(fnmatch.fnmatchcase(full, s) for s in skip):
                continue
            new = Linear(child.in_features, child.out_features, child.bias is not None, config,
                         full, device="meta")
            new.weight, new.bias = child.weight, child.bias
            new.train(child.training)
            setattr(module, child_name, new)
            done.append(full)
    return done


_elements = {"fp8_e4m3": "mxfp8", "fp8_e5m2": "mxfp8_e5m2", "fp6_e3m2": "mxfp6_e3m2",
             "fp6_e2m3": "mxfp6_e2m3", "fp4_e2m1": "mxfp4", "int8": "mxint8"}
_rounds = {"nearest": "away", "even": "rtne", "floor": "zero"}


def from_mx_specs(specs: Dict[str, Any]) -> LinearConfig:
    """microxcaling's dictionary as a LinearConfig with dialect=microxcaling. Raises Error for what
    has no counterpart."""
    known = {"w_elem_format", "a_elem_format", "w_elem_format_bp", "a_elem_format_bp",
             "a_elem_format_bp_ex", "a_elem_format_bp_os", "block_size", "scale_bits", "round",
             "round_mx_output", "round_m", "round_output", "round_weight", "round_grad_weight",
             "round_grad_input", "bfloat", "bfloat_subnorms", "fp", "custom_cuda",
             "quantize_backprop", "mx_flush_fp32_subnorms", "shared_exp_method", "softmax_exp2",
             "vec_use_exp2", "vec_use_recip"}
    for key, value in specs.items():
        if key not in known and value:
            raise Error(f"mx_specs: {key}={value!r} has no counterpart")
    for key, only in (("scale_bits", (0, 8)), ("shared_exp_method", ("max",)),
                      ("mx_flush_fp32_subnorms", (False,)), ("fp", (0,)),
                      ("bfloat", (0, 16, 32))):
        if specs.get(key, only[0]) not in only:
            raise Error(f"mx_specs: {key}={specs[key]!r} has no counterpart")
    rounding = specs.get("round_mx_output") or specs.get("round", "nearest")
    if rounding not in _rounds:
        raise Error(f"mx_specs: round={rounding!r} has no counterpart")
    block = specs.get("block_size", 32) or 32

    def of(*keys: str) -> Optional[str]:
        for key in keys:
            element = specs.get(key)
            if element:
                if element not in _elements:
                    raise Error(f"mx_specs: {key}={element!r} has no counterpart")
                return (f"{_elements[element]}:dialect=microxcaling,block=1x{block},"
                        f"round={_rounds[rounding]}")
        return None

    if not specs.get("quantize_backprop", True):
        return LinearConfig(fprop=(of("a_elem_format"), of("w_elem_format")))
    return LinearConfig(
        fprop=(of("a_elem_format"), of("w_elem_format")),
        dgrad=(of("a_elem_format_bp_os", "a_elem_format_bp", "a_elem_format"),
               of("w_elem_format_bp", "w_elem_format")),
        wgrad=(of("a_elem_format_bp_ex", "a_elem_format_bp", "a_elem_format"),
               of("a_elem_format_bp", "a_elem_format")))


class _Hooks:
    """Hands activations, gradients and weights of linear layers to `take(kind, name, tensor)` while
    `active()` says so. A forward pass that activation checkpointing repeats counts once."""

    def __init__(self, model: torch.nn.Module, kinds: Iterable[str], active: Callable[[], bool],
                 take: Callable[[str, str, torch.Tensor], None]) -> None:
        kinds = set(kinds)
        unknown = kinds - {"weight", "activation", "gradient"}
        if unknown:
            raise Error(f"{sorted(unknown)[0]!r} is none of weight, activation, gradient")
        self._handles = []
        for name, module in model.named_modules():
            if not isinstance(module, torch.nn.Linear):
                continue

            def forward(m: Any, inputs: Any, output: Any, name: str = name) -> None:
                if not active() or not torch.is_grad_enabled():
                    return
                if "activation" in kinds and inputs:
                    take("activation", f"{name}.input", inputs[0])
                if "weight" in kinds:
                    take("weight", f"{name}.weight", m.weight)

            def backward(m: Any, grad_in: Any, grad_out: Any, name: str = name) -> None:
                if active() and grad_out and grad_out[0] is not None:
                    take("gradient", f"{name}.output.grad", grad_out[0])

            self._handles.append(module.register_forward_hook(forward))
            if "gradient" in kinds:
                self._handles.append(module.register_full_backward_hook(backward))

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


class Watch:
    """Figures of a training under way; made by watch()."""

    def __init__(self, model: torch.nn.Module, recipes: Sequence[RecipeLike],
                 tensors: Sequence[str], every: int) -> None:
        if every < 1:
            raise Error(f"every={every}: at least 1 is called for")
        self.recipes = [recipe(r) for r in recipes]
        self.every, self.step = every, 0
        self._found: Dict[str, torch.Tensor] = {}
        self._records: List[Dict[str, Any]] = []
        self._hooks = _Hooks(model, tensors, lambda: self.step % self.every == 0, self._take)

    def _take(self, kind: str, name: str, x: torch.Tensor) -> None:
        self._found.setdefault(name, _on_host(x).clone())

    def scalars(self, step: Optional[int] = None) -> Iterator[Tuple[str, float]]:
        """Ends a step: (tag, value) of what was measured in it, for any writer of scalars."""
        found, self._found = self._found, {}
        self.step += 1
        if not found:
            return
        at = self.step - 1 if step is None else step
        result = analyze(found, self.recipes)
        for r in result.records:
            self._records.append({**r, "step": at})
            for member in ("sqnr_db", "underflow_rate", "saturated_block_rate", "gain"):
                if r.get(member) is not None:
                    yield f"mx/{r['recipe']}/{r['tensor']}/{member}", r[member]

    def save(self, path: Any) -> None:
        """Writes the latest figures of every tensor as mx.analysis/1."""
        latest = {(r["tensor"], r["recipe"]): r for r in self._records}
        Analysis(list(latest.values()), []).save(path)

    @property
    def records(self) -> List[Dict[str, Any]]:
        return self._records

    def close(self) -> None:
        self._hooks.remove()


def watch(model: torch.nn.Module, recipes: Sequence[RecipeLike],
          tensors: Sequence[str] = ("weight", "activation", "gradient"), every: int = 50) -> Watch:
    """Measures the operands of linear layers in every `every`-th step; call .scalars() once a
    step."""
    return Watch(model, recipes, tensors, every)


_stored = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16",
           torch.bfloat16: "BF16"}


def _save_safetensors(path: str, tensors: Dict[str, torch.Tensor]) -> None:
    header: Dict[str, Any] = {}
    parts, at = [], 0
    for name, x in tensors.items():
        x = x.contiguous()
        width = {2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
        data = x.view(width).numpy().tobytes()
        header[name] = {"dtype": _stored[x.dtype], "shape": list(x.shape),
                        "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.writelines(parts)


class capture:
    """Writes the operands of linear layers of given steps as FOLDER/step-N.safetensors, which the
    command reads:

        with capture(model, "dumps", steps=[0, 100]) as c:
            for ...: loss.backward(); optimizer.step(); c.step()
    """

    def __init__(self, model: torch.nn.Module, folder: str, steps: Iterable[int],
                 tensors: Sequence[str] = ("weight", "activation", "gradient")) -> None:
        import os
        os.makedirs(folder, exist_ok=True)
        self.folder, self.steps, self.at = folder, set(steps), 0
        self._found: Dict[str, torch.Tensor] = {}
        self._hooks = _Hooks(model, tensors, lambda: self.at in self.steps, self._take)

    def _take(self, kind: str, name: str, x: torch.Tensor) -> None:
        self._found.setdefault(name, _on_host(x).clone())

    def step(self) -> None:
        """Ends a step."""
        if self._found:
            _save_safetensors(f"{self.folder}/step-{self.at}.safetensors", self._found)
            self._found = {}
        self.at += 1

    def __enter__(self) -> "capture":
        return self

    def __exit__(self, *_: Any) -> None:
        self._hooks.remove()
