# SPDX-License-Identifier: Apache-2.0
"""Training with emulated formats in PyTorch: quantized copies with a straight-through gradient, linear
layers with a recipe for each of six operands, and figures and dumps of a training run.

Products of quantized operands are those of torch.matmul, in the tensors' own type, unless an accumulator
model is given. Tensors on a CUDA device are quantized there by kernels, if libmx was built with CUDA;
compiled and captured code, and other devices, quantize by PyTorch's operations, which there are for common
recipes. What has neither is copied to the host and back, which the log says once."""

from __future__ import annotations

import functools
import logging
import math
import types
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from torch import library
from torch.nn import functional as F
from torch.nn.utils import parametrize

from . import (Error, Recipe, RecipeLike, _device, _libmx, _operations, fake_quantize as _fake_quantize, matmul,
               quantize, recipe as _recipe_of)
from ._arrays import require_memory, require_numbers
from ._training import (NormAlert, NormWatch, Patterns, Watch, capture, logger as _log,
                        matches as _matches, on_host as _on_host, patterns_of as _patterns_of, save,
                        watch, watch_norms)

__all__ = ["Conversion", "Linear", "LinearConfig", "NormAlert", "NormWatch", "Watch", "capture",
           "convert_", "fake_quantize", "from_mx_specs", "save", "watch", "watch_norms"]


def __dir__() -> List[str]:
    return sorted([*__all__, "__doc__"])


def _operation(schema: str, like: Callable[..., torch.Tensor]) -> Callable[[Any], Any]:
    """Makes a function one operation of PyTorch 2.4 and later: torch.compile does not look into it, and
    for tensors without values (meta, FakeTensor) `like` gives the result."""
    def made(f: Any) -> Any:
        if not hasattr(library, "custom_op"):
            return f
        name, _, arguments = schema.partition("(")
        operation = library.custom_op("libmx::" + name, f, mutates_args=(), schema="(" + arguments)
        operation.register_fake(like)
        return operation
    return made


_compiling: Any = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
_forward_ad: Any = torch.autograd.forward_ad
_dispatch: Any = torch.utils._python_dispatch
_functorch: Any = getattr(torch._C, "_functorch", None)
_tells_modes = all(hasattr(*of) for of in ((_forward_ad, "_current_level"), (_dispatch, "_get_current_dispatch_mode"),
                                           (_functorch, "peek_interpreter_stack")))


def _is_eager() -> bool:
    """Whether nothing but autograd looks at operations: no compiler, trace, torch.func, tangent or mode."""
    return (_tells_modes and not _compiling() and _forward_ad._current_level < 0
            and _dispatch._get_current_dispatch_mode() is None and _functorch.peek_interpreter_stack() is None
            and not torch.jit.is_tracing())


def _has_gradient(x: torch.Tensor) -> bool:
    return x.requires_grad and torch.is_grad_enabled()


def _is_plain(x: torch.Tensor, recipe: str) -> bool:
    """Whether an operation of PyTorch around libmx would only cost time: 60 us, of a small call most of it."""
    return (_is_eager() and type(x) in (torch.Tensor, torch.nn.Parameter) and not _has_gradient(x)
            and (_is_on_host(x) or _has_kernels(x, recipe)))


def _run(operation: Any, x: torch.Tensor, *rest: Any) -> torch.Tensor:
    """operation(x, ...); the Error of x if its class does not have the operation."""
    y: torch.Tensor
    if _compiling():
        y = operation(x, *rest)
        return y
    try:
        y = operation(x, *rest)
    except NotImplementedError:
        require_memory(x)
        raise
    return y


def _is_on_host(x: torch.Tensor) -> bool:
    return x.device.type == "cpu"


def _has_kernels(x: torch.Tensor, recipe: str) -> bool:
    """Whether x stays on its device under a recipe, by kernels of this library."""
    return _device.takes(x, recipe)


@functools.lru_cache(maxsize=None)
def _say_copied(what: str, device: str) -> None:
    """Says it once."""
    _log.warning("%s: computed on the host: tensors on %s are copied there and back", what, device)


def _steps_and_key(recipe: str, name: str) -> Tuple[Optional[_operations.Steps], int]:
    return _operations.steps_of(recipe), _libmx.tensor_id(name)


if hasattr(torch, "compiler"):  # what is not for a compiler to look into
    _steps_and_key = torch.compiler.assume_constant_result(_steps_and_key)


def _empty_like(x: torch.Tensor, *_: Any) -> torch.Tensor:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


@_operation("fake_quantize(Tensor x, str recipe, str name) -> Tensor", _empty_like)
def _round_trip(x: torch.Tensor, recipe: str, name: str) -> torch.Tensor:
    y: torch.Tensor
    if not _is_on_host(x):
        if _has_kernels(x, recipe):
            y = _fake_quantize(x, recipe, name)
            return y
        steps, key = _steps_and_key(recipe, name)
        if steps is not None and _operations.takes(steps, x):
            return _operations.fake_quantize(x, steps, key)
        _say_copied(recipe, x.device.type)
    y = _fake_quantize(_on_host(x), recipe, name)
    return y.to(x.device)


@_operation("fake_quantize_drawn(Tensor x, str recipe, Tensor draw) -> Tensor", _empty_like)
def _drawn_round_trip(x: torch.Tensor, recipe: str, draw: torch.Tensor) -> torch.Tensor:
    """Stochastic rounding by a number of PyTorch's generator, an integer without axes."""
    if not _is_on_host(x):
        steps, _ = _steps_and_key(recipe, "")
        if steps is not None and _operations.takes(steps, x):
            return _operations.fake_quantize(x, steps, draw)
    return _round_trip(x, recipe, str(int(draw)))


for _made in (_round_trip, _drawn_round_trip):
    if hasattr(_made, "register_autograd"):
        _made.register_autograd(lambda ctx, dy: (dy, None, None))


def _values(x: torch.Tensor, recipe: str, name: str = "",
            draw: Optional[torch.Tensor] = None) -> torch.Tensor:
    """x under a recipe, drawn by name or by `draw`. Beyond the host a compiler sees the steps, and makes a
    kernel of them and their neighbours."""
    if (draw is None or _is_on_host(x)) and _is_plain(x, recipe):
        y: torch.Tensor = _fake_quantize(x, recipe, name if draw is None else str(int(draw)))
        return y
    if _compiling() and not _is_on_host(x):
        steps, key = _steps_and_key(recipe, name)
        if steps is not None and _operations.takes(steps, x):
            return _operations.fake_quantize(x, steps, key if draw is None else draw)
    return _run(_round_trip, x, recipe, name) if draw is None else _run(_drawn_round_trip, x, recipe, draw)


@_operation("matmul(Tensor a, Tensor b, str r, str s, str accumulate) -> Tensor",
            lambda a, b, r, s, accumulate: a.new_empty(a.shape[0], b.shape[1]))
def _modelled(a: torch.Tensor, b: torch.Tensor, r: str, s: str, accumulate: str) -> torch.Tensor:
    if not _is_on_host(a):
        _say_copied(f"{r} by {s} under {accumulate}", a.device.type)
    y = matmul(_on_host(a), _on_host(b), (r, s), accumulate)
    return torch.as_tensor(y).to(a.device, a.dtype)


@functools.lru_cache(maxsize=None)
def _outermost(by: Recipe) -> Tuple[int, int]:
    """The codes of the largest and of the smallest value."""
    q = quantize(np.ones((256, 256), np.float32), by)
    q.elements[...] = np.arange(256) % (1 << by._core.bits())
    y = q.dequantize()[0]
    y[~np.isfinite(y)] = 0
    return int(y.argmax()), int(y.argmin())


@_operation("clamped(Tensor x, str r, str name) -> Tensor",
            lambda x, r, name: torch.empty(x.shape, dtype=torch.bool, device=x.device))
def _beyond(x: torch.Tensor, r: str, name: str) -> torch.Tensor:
    """Where x is beyond the largest or smallest value of its block."""
    by = _recipe_of(r)
    there = not _is_on_host(x) and _has_kernels(x, r) and not _device.copies(x, r, packed=True)
    if not _is_on_host(x) and not there:
        _say_copied(f"ste='clip' of {r}", x.device.type)
    values = x.detach() if there else _on_host(x)
    q = quantize(values, by, name)

    def all_of(code: int) -> torch.Tensor:
        """The values of blocks whose codes are all the same."""
        packed = torch.from_numpy(_libmx.pack(by._core.bits(), np.full(8, code, np.uint8)))
        count = len(q.codes)
        codes: Any = packed.repeat(-(-count // len(packed)))[:count]
        q.codes = codes.to(x.device) if there else codes.numpy()
        return torch.as_tensor(q.dequantize())

    largest, smallest = _outermost(by)
    return ((values > all_of(largest)) | (values < all_of(smallest))).to(x.device)


class _FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(x: torch.Tensor, r: str, name: str, ste: str) -> torch.Tensor:
        return _values(x, r, name)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: torch.Tensor) -> None:
        x, r, name, ste = inputs
        if ste == "clip":
            beyond = _run(_beyond, x, r, name)
            ctx.save_for_backward(beyond)
            if hasattr(ctx, "save_for_forward"):
                ctx.save_for_forward(beyond)

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> Tuple[Any, ...]:
        for beyond in ctx.saved_tensors:
            dy = dy.masked_fill(beyond, 0)
        return dy, None, None, None


class _Transformed(_FakeQuantize):
    """What torch.func takes as well, and torch.compile does not."""

    @staticmethod
    def jvp(ctx: Any, dx: torch.Tensor, *_: Any) -> torch.Tensor:
        for beyond in ctx.saved_tensors:
            dx = dx.masked_fill(beyond, 0)
        return dx.view_as(dx)

    @staticmethod
    def vmap(info: Any, in_dims: Tuple[Any, ...], x: torch.Tensor, *rest: Any) -> Tuple[torch.Tensor, int]:
        """Each tensor by itself: it may have a tensor scale."""
        return torch.stack([_Transformed.apply(one, *rest) for one in x.unbind(in_dims[0])]), 0


def _of_autograd(of: Any) -> Any:
    """A function for autograd alone, whose forward has the context: PyTorch before 2.0 has no other, and
    later ones take 40 us longer for setup_context."""
    def forward(ctx: Any, *inputs: Any) -> Any:
        y = of.forward(*inputs)
        of.setup_context(ctx, inputs, y)
        return y

    return type(of.__name__, (torch.autograd.Function,), {
        "forward": staticmethod(forward), "backward": staticmethod(of.backward)})


def _apply(functions: Tuple[Any, Any, Any], *inputs: Any) -> Any:
    """By what looks at the call: a compiler, only autograd, or torch.func, which came with 2.0."""
    compiled, plain, transformed = functions
    if _compiling():
        return compiled.apply(*inputs)
    only_autograd = _is_eager() or not hasattr(torch.autograd.Function, "setup_context")
    return (plain if only_autograd else transformed).apply(*inputs)


_FAKE_QUANTIZE = _FakeQuantize, _of_autograd(_FakeQuantize), _Transformed


def _require_numbers(*operands: Optional[torch.Tensor]) -> None:
    """Raises Error for tensors that PyTorch's own operations would refuse or take apart, in their words."""
    for x in operands:
        if x is None or type(x) is torch.nn.Parameter:
            continue
        require_numbers(x)
        if hasattr(x, "get_mask"):
            require_memory(x)
        if not x.is_floating_point():
            raise Error(f"{x.dtype} is no floating type: x.float() converts it")


def fake_quantize(x: torch.Tensor, recipe: RecipeLike, name: str = "",
                  ste: str = "identity") -> torch.Tensor:
    """x quantized and dequantized, in x's type and on x's device. The gradient passes unchanged; with
    ste="clip" it is zero where |x| is beyond the largest value of its block. Stochastic rounding draws
    by `name` and index. Raises Error as libmx.fake_quantize does."""
    if ste not in ("identity", "clip"):
        raise Error(f"ste {ste!r} is neither 'identity' nor 'clip'")
    if not _compiling():
        _require_numbers(x)
    # A compiler cannot look into a Recipe: the operation parses a string when it runs.
    text = recipe if _compiling() and isinstance(recipe, str) else str(_recipe_of(recipe))
    if ste == "clip" and "transform=" in text:
        raise Error(f"ste='clip' with {text}: a rotated block does not clamp single elements")
    y: torch.Tensor = _apply(_FAKE_QUANTIZE, x, text, name, ste) if _has_gradient(x) or not _is_eager() \
        else _values(x, text, name)
    return y


Pair = Union[None, RecipeLike, Sequence[Optional[RecipeLike]]]
_Recipes = Tuple[Optional[str], Optional[str]]


def _pair(p: Pair) -> _Recipes:
    if isinstance(p, (tuple, list)) and len(p) != 2:
        raise Error(f"{len(p)} recipes of a product: one for both operands or two are expected")
    a, b = p if isinstance(p, (tuple, list)) else (p, p)
    return (None if a is None else str(_recipe_of(a)), None if b is None else str(_recipe_of(b)))


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

    def _changes(self) -> bool:
        """Whether a product differs from that of torch.nn.Linear."""
        nothing = None, None
        return (self.fprop, self.dgrad, self.wgrad) != (nothing,) * 3 or any(
            (self.fprop_transform, self.dgrad_transform, self.wgrad_transform))


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


def _quantized(x: torch.Tensor, r: Optional[str]) -> torch.Tensor:
    """Stochastic rounding draws by a number of PyTorch's generator: another one in every step, the same one
    after torch.manual_seed and when activation checkpointing repeats a forward pass."""
    if r is None:
        return x
    random = "round=stochastic" in r
    return _values(x, r, draw=torch.randint(2 ** 62, (), device=x.device) if random else None)


def _product(config: LinearConfig, which: str, a: torch.Tensor, b: torch.Tensor,
             bias: Optional[torch.Tensor] = None) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """a (M, K) times the transpose of b (N, K), with a bias, and the quantized a and b."""
    recipes: _Recipes = getattr(config, which)
    if getattr(config, which + "_transform"):
        a, b = _rotated(a, config.transform_size), _rotated(b, config.transform_size)
    if config.accumulate is None:
        a, b = _quantized(a, recipes[0]), _quantized(b, recipes[1])
        return a @ b.t() if bias is None else F.linear(a, b, bias), a, b
    # The model quantizes its operands itself; one that was quantized keeps its values.
    y = _run(_modelled, a, b.t(), *recipes, config.accumulate)
    if config.source == "requantized":
        a, b = _quantized(a, recipes[0]), _quantized(b, recipes[1])
    return y if bias is None else y + bias, a, b


def _kept(config: LinearConfig) -> Tuple[bool, bool]:
    """Which operands of fprop, x and w, are quantized again from their copies."""
    again = config.source == "requantized"
    recipes: Any = config.fprop
    return again and recipes[0] is not None, again and recipes[1] is not None


class _LinearFunction(torch.autograd.Function):
    """y, and the copies of the operands that the second products quantize again."""

    @staticmethod
    def forward(x: torch.Tensor, w: torch.Tensor, bias: Optional[torch.Tensor],
                config: LinearConfig) -> Tuple[torch.Tensor, ...]:
        y, xq, wq = _product(config, "fprop", x.reshape(-1, x.shape[-1]), w, bias)
        copies = [copy for copy, keeps in zip((xq.reshape(x.shape), wq), _kept(config)) if keeps]
        return y.reshape(*x.shape[:-1], w.shape[0]), *copies

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], outputs: Tuple[torch.Tensor, ...]) -> None:
        ctx.config = inputs[3]
        copies = list(outputs[1:])
        ctx.mark_non_differentiable(*copies)
        ctx.save_for_backward(*(copies.pop(0) if keeps else operand
                                for operand, keeps in zip(inputs[:2], _kept(ctx.config))))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: torch.Tensor, *_: Any) -> Tuple[Any, ...]:
        x, w = ctx.saved_tensors
        shape, x = x.shape, x.reshape(-1, x.shape[-1])
        config: LinearConfig = ctx.config
        rows = dy.reshape(-1, dy.shape[-1])
        dx = dw = db = None
        if ctx.needs_input_grad[2]:
            db = rows.sum(0)
        again = config.source == "requantized"
        if ctx.needs_input_grad[0] or again and ctx.needs_input_grad[1]:
            dx, copy, _ = _product(config, "dgrad", rows, w.t())
            dx = dx.reshape(shape)
            rows = copy if again else rows
        if ctx.needs_input_grad[1]:
            dw, _, _ = _product(config, "wgrad", rows.t(), x.t())
        return dx if ctx.needs_input_grad[0] else None, dw, db, None


class _TransformedLinear(_LinearFunction):
    """What torch.func takes as well, and torch.compile does not."""

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], outputs: Tuple[torch.Tensor, ...]) -> None:
        _LinearFunction.setup_context(ctx, inputs, outputs)
        ctx.save_for_forward(*inputs[:2])

    @staticmethod
    def jvp(ctx: Any, dx: Any, dw: Any, db: Any, _: Any) -> Tuple[Any, ...]:
        """Straight through the operands of fprop, as the gradient."""
        x, w = ctx.saved_tensors
        _, xq, wq = _product(ctx.config, "fprop", x.reshape(-1, x.shape[-1]), w)
        dy = x.new_zeros(xq.shape[0], w.shape[0])
        if dx is not None:
            dy = dy + dx.reshape(xq.shape) @ wq.t()
        if dw is not None:
            dy = dy + xq @ dw.t()
        if db is not None:
            dy = dy + db
        return dy.reshape(*x.shape[:-1], w.shape[0]), *(None for _ in filter(None, _kept(ctx.config)))

    @staticmethod
    def vmap(info: Any, in_dims: Tuple[Any, ...], *inputs: Any) -> Tuple[Any, ...]:
        """Each product by itself: operands may have a tensor scale."""
        each = [[x] * info.batch_size if d is None else x.unbind(d) for x, d in zip(inputs, in_dims)]
        found = [_TransformedLinear.apply(*one) for one in zip(*each)]
        return tuple(torch.stack(part) for part in zip(*found)), (0,) * len(found[0])


_LINEAR = _LinearFunction, _of_autograd(_LinearFunction), _TransformedLinear


def _autocast_type(device: str) -> Optional[torch.dtype]:
    """The type in which autocast computes a linear layer."""
    if device == "meta":  # autocast does not know it
        return None
    if hasattr(torch, "get_autocast_dtype"):  # 2.4 and later
        return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    if device == "cpu":
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


def _linear(x: torch.Tensor, w: torch.Tensor, bias: Optional[torch.Tensor],
            config: LinearConfig) -> torch.Tensor:
    """torch.nn.functional.linear with the recipes of `config`."""
    if not config._changes():
        return F.linear(x, w, bias)
    if not _compiling():
        _require_numbers(x, w, bias)
    to = _autocast_type(x.device.type)
    y: torch.Tensor
    if to is None:
        y = _apply(_LINEAR, x, w, bias, config)[0]
        return y
    with torch.autocast(x.device.type, enabled=False):
        y = _apply(_LINEAR, x.to(to), w.to(to), None if bias is None else bias.to(to), config)[0]
        return y


torch.fx.wrap("_linear")  # one call in a traced graph


class Linear(torch.nn.Linear):
    """torch.nn.Linear with a LinearConfig, its attribute `mx_config`. A product without recipes is that
    of torch.nn.Linear, and the bias is added as there. Under autocast, input and parameters are cast
    first."""

    mx_config: LinearConfig
    _mx_of: type = torch.nn.Linear

    def __init__(self, in_features: int, out_features: int, bias: bool = True,
                 config: LinearConfig = LinearConfig(), **more: Any) -> None:
        super().__init__(in_features, out_features, bias, **more)
        self.mx_config = config

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return _linear(input, self.weight, self.bias, self.mx_config)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.mx_config}"


def _bare(x: Any) -> Any:
    with _disabled():
        return x.as_subclass(torch.Tensor)


_disabled: Any = getattr(torch._C, "DisableTorchFunctionSubclass", torch._C.DisableTorchFunction)


class _Weight(torch.Tensor):
    """Weights (K, N) or (N, K), or several in (E, K, N), whose products take recipes, whoever computes
    them. A module has it in place of a parameter."""

    mx_config: LinearConfig
    mx_name: str
    mx_module: torch.nn.Module

    @staticmethod
    def of(x: torch.Tensor, config: LinearConfig, name: str, module: torch.nn.Module) -> "_Weight":
        with _disabled():
            w: Any = x.as_subclass(_Weight)
        w.mx_config, w.mx_name, w.mx_module = config, name, module
        return w  # type: ignore[no-any-return]

    def _counts(self) -> bool:
        """Whether products are computed or measured here."""
        return self.mx_config._changes() or bool(vars(self.mx_module).get("mx_products"))

    def _show(self, x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> None:
        """Shows a product to watch() and capture(): of x and the transpose of w."""
        for take in vars(self.mx_module).get("mx_products", ()):
            take(self.mx_name.rpartition(".")[2], x, w, y)

    @classmethod
    def __torch_function__(cls, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if _compiling():  # a tensor whose products are chosen here is none for a compiler
            torch._dynamo.graph_break()
        kwargs = kwargs or {}
        if f is F.multi_head_attention_forward:
            return _attention(*args, **kwargs)
        w: Any = next((a for a in (*args, *kwargs.values()) if isinstance(a, _Weight)), None)
        name = getattr(f, "__name__", "")
        if name == "__get__":
            name = f.__self__.__name__
        if w is not None and w._counts():
            at = _products.get(name)
            if at is not None:
                operands = list(args) + [kwargs.pop(k) for k in ("weight", "mat2", "other", "mat_b",
                                                                 "batch2") if k in kwargs]
                if len(operands) > at[0] and operands[at[0]] is w:
                    operands[at[0]] = bare = _bare(w)
                    y = at[1](w, *operands, **kwargs)
                    w._show(operands[at[0] - 1], bare if name == "linear" else bare.transpose(-2, -1), y)
                    return y
                if operands[0] is w and at[1] is _each and len(operands) == 2:  # W X = (X^T W^T)^T
                    a, b = (t.transpose(-2, -1) for t in (operands[1], _bare(w)))
                    y = _each(w, a, b)
                    w._show(a, b.transpose(-2, -1), y)
                    return y.transpose(-2, -1)
        with _disabled():
            y = f(*args, **kwargs)
        if w is None or not w._counts():
            return y
        if name in _views:
            if isinstance(y, torch.Tensor):
                return _Weight.of(y, w.mx_config, w.mx_name, w.mx_module)
            return type(y)(_Weight.of(part, w.mx_config, w.mx_name, w.mx_module) for part in y)
        in_place = name.endswith("_") and not name.startswith("__")
        if w.mx_config._changes() and isinstance(y, torch.Tensor) and y.is_floating_point() \
                and not in_place and name not in _inert:
            _not_emulated(w.mx_name, name)
        return y


@functools.lru_cache(maxsize=None)
def _not_emulated(weight: str, function: str) -> None:
    """Says it once."""
    _log.warning("%s: torch's %s of it is not emulated: products by linear, matmul, mm, bmm, addmm, "
                 "baddbmm and grouped_mm are", weight, function)


# What gives weights again, and what is no use of them.
_views = {"T", "__getitem__", "bfloat16", "chunk", "contiguous", "cpu", "cuda", "expand", "flatten",
          "float", "half", "index_select", "mT", "narrow", "permute", "reshape", "select", "split",
          "split_with_sizes", "squeeze", "swapaxes", "t", "tensor_split", "to", "transpose", "type",
          "type_as", "unbind", "unflatten", "unsqueeze", "view"}
_inert = {"_base", "clone", "data", "detach", "grad"}


def _each(w: _Weight, x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x @ b, of one matrix or of each of several."""
    if b.dim() == 2:
        return _linear(x, b.t(), None, w.mx_config)
    if b.dim() != 3 or x.dim() not in (2, 3):
        raise Error(f"{w.mx_name}: a product of tensors with {x.dim()} and {b.dim()} axes is not "
                    "emulated: up to 3 are")
    x = x.expand(b.shape[0], *x.shape[-2:])
    return torch.stack([_linear(rows, one.t(), None, w.mx_config) for rows, one in zip(x, b)])


def _grouped(w: _Weight, x: torch.Tensor, b: torch.Tensor, offs: Any = None, bias: Any = None,
             out_dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    """Rows of x up to each of the offsets times the matrix of their expert."""
    if bias is not None or b.dim() != 3:
        raise Error(f"{w.mx_name}: grouped_mm with a bias, or with weights of {b.dim()} axes, is not "
                    "emulated")
    if offs is None:
        y = _each(w, x, b)
    else:
        ends = [0] + offs.tolist()
        parts = [_linear(x[begin:end], one.t(), None, w.mx_config)
                 for begin, end, one in zip(ends, ends[1:], b)]
        y = torch.cat(parts + [x.new_zeros(x.shape[0] - ends[-1], b.shape[2], dtype=parts[0].dtype)])
    return y if out_dtype is None else y.to(out_dtype)


def _added(w: _Weight, c: torch.Tensor, x: torch.Tensor, b: torch.Tensor, *, beta: float = 1,
           alpha: float = 1) -> torch.Tensor:
    if (beta, alpha, b.dim(), c.dim()) == (1, 1, 2, 1):
        return _linear(x, b.t(), c, w.mx_config)
    return beta * c + alpha * _each(w, x, b)


def _weights_last(w: _Weight, x: torch.Tensor, b: torch.Tensor, bias: Any = None) -> torch.Tensor:
    return _linear(x, b, bias, w.mx_config)


# Functions by name: which argument has to be the weights, and the product.
_products: Dict[str, Tuple[int, Callable[..., torch.Tensor]]] = {
    "linear": (1, _weights_last), "addmm": (2, _added), "baddbmm": (2, _added),
    **{name: (1, _each) for name in ("matmul", "__matmul__", "mm", "bmm")},
    **{name: (1, _grouped) for name in ("grouped_mm", "_grouped_mm")}}


# multi_head_attention_forward that does not look for overriding tensors again: its projections do.
_attention = types.FunctionType(
    F.multi_head_attention_forward.__code__, {**vars(F), "has_torch_function": lambda _: False},
    "multi_head_attention_forward", F.multi_head_attention_forward.__defaults__)
_attention.__kwdefaults__ = F.multi_head_attention_forward.__kwdefaults__


def _property(name: str) -> property:
    """Reads a parameter, or what FSDP and weight_norm put in its place, as a _Weight."""
    def read(module: Any) -> Any:
        found = module._parameters if name in module._parameters else vars(module)
        if name not in found:
            raise AttributeError(name)
        return found[name] if found[name] is None else _Weight.of(
            found[name], module.mx_config, f"{type(module).__name__}.{name}", module)

    def write(module: Any, x: Any) -> None:
        vars(module)[name] = x

    return property(read, write, lambda module: vars(module).pop(name))


@functools.lru_cache(maxsize=None)
def _converted(cls: type, names: Tuple[str, ...]) -> type:
    """cls as a linear layer, or with the parameters `names` as weights whose products take recipes."""
    if cls is torch.nn.Linear and not names:
        return Linear
    members: Dict[str, Any] = {name: _property(name) for name in names}
    members.update(_mx_of=cls, _mx_names=names, __module__=cls.__module__, __reduce_ex__=lambda self, protocol: (
        _remade, (cls, names), self.__dict__))
    return type(cls.__name__, (cls,) if names else (Linear, cls), members)


def _remade(cls: type, names: Tuple[str, ...]) -> Any:
    made: Any = _converted(cls, names)
    return made.__new__(made)


def _change_class(module: torch.nn.Module, change: Callable[[type], type]) -> None:
    """Changes the class of a module, below that of its parametrizations."""
    cls = type(module)
    if not parametrize.is_parametrized(module):
        module.__class__ = change(cls)
        return
    members = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    module.__class__ = type(cls.__name__, (change(cls.__bases__[0]),), members)


def _restore(module: torch.nn.Module) -> bool:
    """Whether the module was converted, and is no longer."""
    if "mx_config" not in vars(module):
        return False
    base = parametrize.type_before_parametrizations(module)
    if "_mx_of" in vars(base):
        _change_class(module, lambda cls: cls._mx_of)  # type: ignore[attr-defined]
        del module.mx_config
    else:  # a class over ours: it computes what torch.nn.Linear does
        setattr(module, "mx_config", LinearConfig())
    return True


# What sends an encoder of torch.nn around the forward passes of its layers.
_fast_paths = ("activation_relu_or_gelu", "use_nested_tensor", "enable_nested_tensor")


def _set_fast_paths(model: torch.nn.Module) -> None:
    for module in model.modules():
        own = vars(module)
        if not isinstance(module, (torch.nn.TransformerEncoder, torch.nn.TransformerEncoderLayer)):
            continue
        if any("mx_config" in vars(part) for part in module.modules()):
            if "mx_fast_paths" not in own:
                own["mx_fast_paths"] = {k: own[k] for k in _fast_paths if k in own}
                own.update(dict.fromkeys(own["mx_fast_paths"], 0))
        else:
            own.update(own.pop("mx_fast_paths", {}))


class Conversion(List[str]):
    """The names of the layers that convert_ changed. left: the other modules with parameters of two or
    more axes, and why they are as they were."""

    def __init__(self) -> None:
        super().__init__()
        self.left: Dict[str, str] = {}

    def __str__(self) -> str:
        lines = [f"converted {len(self)}: {', '.join(n or 'the model' for n in self) or 'nothing'}"]
        for reason in dict.fromkeys(self.left.values()):
            names = [name or "the model" for name, why in self.left.items() if why == reason]
            lines.append(f"left {len(names)}: {', '.join(names)}: {reason}")
        return "\n".join(lines)


_skipped, _looked_up = "skip= names it", "it looks up rows"
_not_converted = ("lm_head", "*router*", "*gate")
_stacks = ("*experts*",)


def _names_of(name: str, module: torch.nn.Module, weights: Patterns) -> Union[str, Tuple[str, ...]]:
    """The parameters whose products take the recipes, none for a linear layer, or why it is left."""
    large = {n: p for n, p in module._parameters.items()
             if p is not None and (torch.nn.parameter.is_lazy(p) or p.dim() > 1)}
    cls = parametrize.type_before_parametrizations(module)
    names: Tuple[str, ...] = ()
    if isinstance(module, torch.nn.MultiheadAttention):
        names = tuple(large)
    elif isinstance(module, torch.nn.Linear):
        # The output projection of MultiheadAttention is read, not called.
        forward: Any = getattr(cls, "forward")
        if forward not in (torch.nn.Linear.forward, Linear.forward) or issubclass(
                cls, torch.nn.modules.linear.NonDynamicallyQuantizableLinear):
            names = ("weight",)
    else:
        names = tuple(n for n in large if _matches(f"{name}.{n}", weights))
        if not names:
            return _looked_up if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) \
                else f"{cls.__name__} is no linear layer; weights= takes patterns of parameters"
    for n, p in large.items():
        if torch.nn.parameter.is_lazy(p):
            return "it is not initialized: run a batch first"
        if type(p) not in (torch.nn.Parameter, torch.Tensor) and not hasattr(p, "to_local"):
            return f"its {n} is a {type(p).__name__}"
    if names and parametrize.is_parametrized(module):
        return f"it is parametrized, and {cls.__name__} computes its products itself"
    return names


def convert_(model: torch.nn.Module, config: Optional[LinearConfig],
             skip: Patterns = _not_converted, weights: Patterns = _stacks) -> Conversion:
    """Gives every linear layer the products of `config`, in place; parameters, hooks and optimizers
    stay. A later call replaces the config of an earlier one; None restores the layers.

    Linear layers are torch.nn.Linear, its subclasses (of a forward of their own, the products with the
    weight), the projections of MultiheadAttention, and parameters of two or more axes that `weights`
    matches, such as stacks of experts: their products by linear, matmul, mm, bmm, addmm, baddbmm and
    grouped_mm, whichever axis is summed over. skip: the modules to leave. Both are patterns of names or
    of their last parts: "lm_head" is also model.lm_head. Encoders of torch.nn no longer compute several
    layers at once in eval, which would pass by the recipes.

    Returns the names of the changed modules, with those that were left and why (.left, str()), and logs
    both (libmx.torch): as a warning if nothing was changed, if a module is left that skip does not
    name, embeddings apart, and if a pattern matches nothing."""
    done = Conversion()
    for name, module in list(model.named_modules()):
        inside = name.split(".")[:-1]
        linear = isinstance(module, (torch.nn.Linear, torch.nn.MultiheadAttention))
        if "parametrizations" in inside or not linear and all(
                p is None or not torch.nn.parameter.is_lazy(p) and p.dim() < 2
                for p in module._parameters.values()):
            continue
        if _matches(name, skip) or done.left.get(".".join(inside)) == _skipped and isinstance(
                model.get_submodule(".".join(inside)), torch.nn.MultiheadAttention):
            done.left[name] = _skipped
            continue
        restored = _restore(module)
        if config is None:
            if restored:
                done.append(name)
            continue
        found = _names_of(name, module, weights)
        if isinstance(found, str):
            done.left[name] = found
            continue
        if not isinstance(module, Linear):
            _change_class(module, functools.partial(_converted, names=found))
        setattr(module, "mx_config", config)
        done.append(name)
    _set_fast_paths(model)
    names = [*dict(model.named_modules()), *dict(model.named_parameters())]
    for p in (*_patterns_of(skip), *_patterns_of(weights)):
        if p not in (*_not_converted, *_stacks) and not any(_matches(name, p) for name in names):
            _log.warning("convert_: nothing matches %r", p)
    remarkable = not done or set(done.left.values()) - {_skipped, _looked_up}
    _log.log(logging.WARNING if remarkable else logging.INFO, "%s", done)
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
            return str(_recipe_of(f"{preset}{',' if ':' in preset else ':'}dialect=microxcaling,"
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
