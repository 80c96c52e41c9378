# SPDX-License-Identifier: Apache-2.0
"""Fake quantization in operations of PyTorch, for tensors on other devices than the CPU: the values of
libmx.fake_quantize, bit for bit. A compiler makes one kernel of them.

Elements are rounded in integers, as in libmx/format/encode.hpp. Where a dialect computes in float32, a
product or quotient is formed in float64 and rounded once: then neither contraction nor the division of
a GPU changes it."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple, Optional, Tuple, Union

import torch

from . import _libmx

_INF, _NAN = 0x7f800000, 0x7fc00000
Key = Union[int, torch.Tensor]  # of the stream of random numbers: an integer, or one of int64


class Steps(NamedTuple):
    """The numbers of a recipe, as `steps_of` of _libmx.cpp gives them."""
    dialect: str
    exponent: str
    exact_log2: bool
    emax: int
    nan_from: int
    added: int
    factor: float
    divisor: float
    saturates: bool
    inf: str
    skips_nan: bool
    exponent_at_code_0: int
    mantissa_bits: int
    emin: int
    largest: float
    has_nan: bool
    of_nan: float
    random_bits: int
    as_microxcaling: bool
    round: str
    seed: int
    rows: int
    cols: int
    axis: int
    number: bool
    divides: bool
    has_tensor_scale: bool
    range: float
    # `from` is a word of Python.
    steps_from: int


@functools.lru_cache(maxsize=None)
def steps_of(recipe: str) -> Optional[Steps]:
    """What fake_quantize takes; None for recipes whose steps are not here."""
    d: Any = _libmx.Recipe(recipe).steps()
    if d is None:
        return None
    d["steps_from"] = d.pop("from")
    s = Steps(**d)
    return s if s.number or s.exponent != "nearest" else None


def _bits(x: torch.Tensor) -> torch.Tensor:
    return x.view(torch.int32)


def _float(bits: torch.Tensor) -> torch.Tensor:
    return bits.view(torch.float32)


def _binade(bits: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """floor(log2) and mantissa of positive float32 bits; subnormals are normalized."""
    normal = bits >= 0x00800000
    as_float = _bits(torch.where(normal, 0, bits).to(torch.float32))
    parts = torch.where(normal, bits, as_float)
    return (parts >> 23) - 127 - 149 * (~normal).to(torch.int32), parts & 0x007fffff


def _ends_of_log2(bits: torch.Tensor, exact: bool) -> Tuple[torch.Tensor, torch.Tensor]:
    """floor and ceil of log2 of positive float32 bits; unless exact, of a log2 rounded to float32, as
    libmx/scale/misrounded_log2.hpp derives them: near 2^k it is k if -ln(1 - s) is less than half a spacing
    at k times ln 2, with s the distance relative to 2^k; here s itself, which gives the same."""
    e, mantissa = _binade(bits)
    if exact:
        return e, e + (mantissa != 0)

    def is_caught(distance: torch.Tensor, k: torch.Tensor, below: bool) -> torch.Tensor:
        size = k.abs()
        spacing = (_bits(size.to(torch.float32)) >> 23) - 127 - 24
        spacing = torch.where(((k > 0) == below) & ((size & (size - 1)) == 0), spacing - 1, spacing)
        unit = (e - 23).clamp(min=-149) - k
        return (k != 0) & (_double(distance) * _power(unit - spacing) < math.log(2))

    up = is_caught(_power_bits(e + 1) - bits, e + 1, True)
    above = bits - _power_bits(e)
    return e + up, e + ((above != 0) & ~is_caught(above, e, False))


def _power_bits(e: torch.Tensor) -> torch.Tensor:
    """float32 bits of 2^e, subnormals included."""
    return torch.where(e < -126, 1 << (e + 149).clamp(0, 22), (e + 127).clamp(min=0) << 23)


def _scaled(bits: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    """Magnitude bits of a normal number or zero times 2^exponent: few bits, of which none is lost."""
    field = (bits >> 23) + exponent
    shift = (1 - field).clamp(0, 31)
    small = ((bits & 0x007fffff) | 0x00800000) >> shift
    large = torch.where(field >= 255, _INF, bits + (exponent << 23))
    return torch.where(bits == 0, 0, torch.where(field >= 1, large, small))


def _rounded(magnitude: torch.Tensor, exponent: Any, mantissa_bits: int, emin: int, largest: float,
             random: Optional[Tuple[torch.Tensor, int]] = None) -> torch.Tensor:
    """Magnitude bits of x / 2^exponent rounded to a format, to nearest even, or by random bits and their
    width. Inf gives the largest value."""
    leading, mantissa = _binade(magnitude)
    significand = torch.where(magnitude == 0, 0, mantissa | 0x00800000)
    relative = leading - exponent
    quantum = relative.clamp(emin, 120) - mantissa_bits
    shift = (quantum - relative + 23).clamp(1, 62)
    if random is None:
        shift = shift.clamp(1, 26)  # then nothing is left
        n = (significand + (1 << (shift - 1)) - 1 + ((significand >> shift) & 1)) >> shift
    else:
        draws, width = random
        wide, by = significand.to(torch.int64), shift.to(torch.int64)
        rest = wide & ((torch.ones_like(by) << by) - 1)
        fraction = (rest << width) >> by
        up = fraction + (draws >> (32 - width)) >= 1 << width
        n = ((wide >> by) + up).to(torch.int32)
    value = n.to(torch.float32) * _float((quantum + 127) << 23)
    return _bits(torch.where(magnitude >= _INF, largest, value.clamp(max=largest)))


def _times(a: Any, b: Any) -> torch.Tensor:
    """The product in float32."""
    return (_double(a) * _double(b)).to(torch.float32)


def _over(a: Any, b: Any) -> torch.Tensor:
    """The quotient in float32: rounding twice gives the same bits."""
    return (_double(a) / _double(b)).to(torch.float32)


def _double(x: Any) -> Any:
    return x.to(torch.float64) if isinstance(x, torch.Tensor) else x


def _scale_code(s: Steps, amax: torch.Tensor) -> torch.Tensor:
    """The E8M0 codes for maxima, which are float32 bits: libmx/codec/dialect_scale.hpp."""
    if s.exponent == "exact":
        e, mantissa = _binade(amax)
        code = (e + (mantissa >= s.steps_from) - s.emax + 127).clamp(0, 254)
        code = torch.where(amax >= s.nan_from, 255, code)
    else:
        u = (amax.clamp(max=_INF) + s.added).clamp(max=_INF)
        if s.factor != 1 or s.divisor != 1:
            u = _bits(_times(_float(u), s.factor) if s.divisor == 1 else _over(_float(u), s.divisor))
        if s.exponent == "rounded_up":
            field, mantissa = u >> 23, u & 0x007fffff
            e = field - 127 + torch.where(field == 0, mantissa > 0x00400000, mantissa != 0)
        else:
            e = _ends_of_log2(u, s.exact_log2)[s.exponent == "ceil"]
        e = torch.where(u >= _INF, 128 if s.inf == "power_128" else 1000, e) - s.emax
        code = torch.where(e > 127, 254 if s.saturates else 255, e.clamp(min=-127) + 127)
    at_inf = {"nan": 255, "saturate": 254}.get(s.inf)
    if at_inf is not None:
        code = torch.where(amax == _INF, at_inf, code)
    return torch.where(amax == 0, 0, torch.where(amax > _INF, 255, code))


def _by_power(s: Steps, x: torch.Tensor, amax: torch.Tensor,
              random: Optional[Tuple[torch.Tensor, int]]) -> torch.Tensor:
    """Values under E8M0 scales."""
    magnitude, signs = _bits(x) & 0x7fffffff, _bits(x) & -0x80000000
    code = _scale_code(s, amax.clamp(max=_INF - 1) if s.inf == "finite_max" and s.skips_nan else amax)
    exponent = code - 127
    by = torch.where(code == 0, s.exponent_at_code_0, exponent)
    if s.as_microxcaling:
        quotient = (_double(_float(magnitude)) * _power(-by)).to(torch.float32)
        q = _as_microxcaling(s, quotient)
        signs = torch.where(quotient == 0, 0, signs)
    else:
        q = _rounded(magnitude, by, s.mantissa_bits, s.emin, s.largest, random)
    y = _scaled(q, exponent)
    if not s.has_nan:
        at_nan = _scaled(_bits(torch.full_like(code, s.of_nan, dtype=torch.float32)), exponent)
        y = torch.where(magnitude > _INF, at_nan, y)
    is_nan = (magnitude > _INF) & s.has_nan | (code == 255)
    return _float(torch.where(is_nan, _NAN, y | signs))


def _as_microxcaling(s: Steps, y: torch.Tensor) -> torch.Tensor:
    """Magnitude bits of y >= 0 rounded by microxcaling's operations on float32:
    libmx/codec/convert_element.hpp."""
    e = torch.where(y == 0, 0, _ends_of_log2(_bits(y), False)[0]).clamp(min=s.emin)
    unit = _power(s.mantissa_bits - e)
    scaled = (_double(y) * unit).to(torch.float32)
    if s.round == "zero":
        n = torch.floor(scaled)
    else:
        n = torch.floor(scaled + 0.5)
        if s.round == "rtne":
            n = n - (torch.fmod(scaled - 0.5, 2.0) == 0).to(torch.float32)
    return _bits((_double(n) / unit).to(torch.float32).clamp(max=s.largest))


def _power(exponent: torch.Tensor) -> torch.Tensor:
    """2^exponent in float64."""
    return ((exponent.to(torch.int64) + 1023) << 52).view(torch.float64)


def _tensor_scale(s: Steps, amax: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """The tensor scale as files hold it, and as a factor: libmx/codec/tensor_scale.cpp."""
    one = torch.ones_like(amax)
    if not s.has_tensor_scale:
        return one, one
    if s.dialect == "ocp":
        g = torch.where(amax == 0, one, _over(amax, s.range).clamp(min=2.0 ** -149))
        return g, g
    if s.dialect == "torchao":
        g = _over(amax, s.range)
        return g, g
    stored = _over(torch.full_like(amax, s.range), amax)
    if s.dialect == "te":
        stored = torch.where(amax == 0, one, stored.clamp(max=torch.finfo(torch.float32).max))
    else:
        stored = torch.where(stored == math.inf, one, stored)
    return stored, _over(one, stored)


def _as_e4m3(s: torch.Tensor) -> torch.Tensor:
    """Positive numbers to E4M3, saturating; NaN stays."""
    return torch.where(s == s, _float(_rounded(_bits(s), 0, 3, -6, 448.0)), math.nan)


def _by_number(s: Steps, x: torch.Tensor, amax: torch.Tensor, whole: torch.Tensor,
               random: Optional[Tuple[torch.Tensor, int]]) -> torch.Tensor:
    """Values under UE4M3 scales: libmx/codec/float_scale.hpp."""
    stored, g = _tensor_scale(s, whole)
    largest = _float(amax)
    signs = _bits(x) & -0x80000000
    magnitude = _bits(x) & 0x7fffffff
    if s.dialect == "ocp":
        product = _double(g) * 6.0
        quotient = _double(largest) / product
        # To E4M3 from float64, where the exact quotient rounds the same way.
        scale = _nearest(quotient, 3, -6, 448.0)
        scale = torch.where(amax >= _INF, math.nan, torch.where((amax == 0) | (product == 0), 0.0, scale))
        by = scale * _double(g)
        v = _double(_float(magnitude))
        q = _nearest(v / by, s.mantissa_bits, s.emin, s.largest) if random is None else _drawn(s, v, by, *random)
        q = torch.where(by > 0, q, 0.0)
        y = (q * by).to(torch.float32)
        return _float(torch.where(scale == scale, _bits(y) | signs, _NAN))
    if s.dialect == "torchao":
        b = _over(largest, 6.0)
        b = _over(b, g) if s.has_tensor_scale else b
        scale = _as_e4m3(torch.where(b < 2.0 ** -6, 2.0 ** -6, torch.where(b > 448.0, 448.0, b)))
        factor = _times(g, scale) if s.divides else _over(_over(torch.ones_like(g), g), scale)
        value = _times(scale, g)
    elif s.dialect == "te":
        sixth = _over(torch.ones_like(g), 6.0)
        scale = _as_e4m3(_times(largest, _times(stored, sixth)))
        value = _times(scale, g)
        factor = _over(torch.ones_like(value), value).clamp(max=torch.finfo(torch.float32).max)
        factor = torch.where(scale == 0, 0.0, factor)
    else:
        scale = _as_e4m3(_times(stored, _over(largest, 6.0)))
        scale = torch.where(scale == 0, 0.125, scale)
        value = factor = _over(scale, stored)
    y = _over(x, factor) if s.divides else _times(x, factor)
    q = _rounded(_bits(y) & 0x7fffffff, 0, s.mantissa_bits, s.emin, s.largest, random)
    kept = _bits(y) & -0x80000000
    if s.dialect == "compressed-tensors":
        kept = torch.where(y == 0, 0, kept)
    element = torch.where((y == y) & (scale == scale), _float(q | kept), s.of_nan)
    result = _times(element, value)
    return torch.where(result == result, result, math.nan)


def _nearest(y: torch.Tensor, mantissa_bits: int, emin: int, largest: float) -> torch.Tensor:
    """Positive float64 to a format, to nearest even."""
    exponent = (((y.view(torch.int64) >> 52) - 1023).clamp(emin, 30) - mantissa_bits)
    quantum = ((exponent + 1023) << 52).view(torch.float64)
    return (torch.round(y / quantum) * quantum).clamp(max=largest)


def _drawn(s: Steps, x: torch.Tensor, by: torch.Tensor, draws: torch.Tensor, width: int) -> torch.Tensor:
    """Stochastic rounding of the exact quotient of numbers of float32 and products of two scales, which have
    24 and 28 bits: of y / quantum * 2^width, the part before the point decides."""
    def parts(t: torch.Tensor, bits: int) -> Tuple[torch.Tensor, torch.Tensor]:
        u = t.view(torch.int64)
        return (u >> 52) - 1023, ((u & ((1 << 52) - 1)) | 1 << 52) >> (53 - bits)

    (ex, sx), (eb, sb) = parts(x, 24), parts(by, 28)
    exponent = ex - eb - ((sx << 4) < sb).to(torch.int64)
    quantum = exponent.clamp(s.emin, 120) - s.mantissa_bits
    shift = ex - eb + 4 + width - quantum
    whole = (sx << shift.clamp(0, 38)) // (sb << (-shift).clamp(0, 34))
    up = (whole & ((1 << width) - 1)) + (draws >> (32 - width)) >= 1 << width
    n = (whole >> width) + up
    return torch.where(x > 0, _double(n) * _power(quantum), 0.0).clamp(max=s.largest)


_M32 = 0xffffffff


def _draws(index: torch.Tensor, seed: int, key: Key) -> torch.Tensor:
    """32 random bits for each index, as int64: libmx/base/random.hpp."""
    block = index >> 2
    low, high = (key & _M32), ((key >> 32) & _M32)
    c = [block & _M32, (block >> 32) & _M32, torch.zeros_like(block) + low, torch.zeros_like(block) + high]
    k0, k1 = seed & _M32, seed >> 32
    for _ in range(10):
        p0, p1 = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [((p1 >> 32) & _M32) ^ c[1] ^ k0, p1 & _M32, ((p0 >> 32) & _M32) ^ c[3] ^ k1, p0 & _M32]
        k0, k1 = (k0 + 0x9E3779B9) & _M32, (k1 + 0xBB67AE85) & _M32
    word = index & 3
    return torch.where(word < 2, torch.where(word == 0, c[0], c[1]), torch.where(word == 2, c[2], c[3]))


def takes(s: Optional[Steps], x: torch.Tensor) -> bool:
    """Whether fake_quantize computes this: tiles are of matrices."""
    return s is not None and x.dim() > 0 and (s.rows == 1 or x.dim() == 2) and x.numel() > 0 \
        and -x.dim() <= s.axis < x.dim() and x.dtype in (
            torch.float32, torch.bfloat16, torch.float16)


def fake_quantize(x: torch.Tensor, s: Steps, key: Key = 0) -> torch.Tensor:
    """x quantized and dequantized, in its type and on its device. key: of the draws of stochastic
    rounding; that of a name is _libmx.tensor_id(name)."""
    v = x.to(torch.float32).movedim(s.axis, -1)
    rows, cols = (s.rows, s.cols) if v.dim() > 1 else (1, s.cols)
    shape = v.shape

    def blocks(t: torch.Tensor) -> torch.Tensor:
        t = torch.nn.functional.pad(t, (0, -t.shape[-1] % cols))
        if rows == 1:
            return t.reshape(*t.shape[:-1], 1, t.shape[-1] // cols, cols)
        t = torch.nn.functional.pad(t, (0, 0, 0, -t.shape[-2] % rows))
        return t.reshape(t.shape[0] // rows, rows, t.shape[1] // cols, cols)

    random = None
    if s.random_bits:
        index = torch.arange(x.numel(), device=x.device).reshape(x.shape).movedim(s.axis, -1)
        random = _draws(blocks(index), s.seed, key), s.random_bits
    b = blocks(v)
    magnitude = _bits(b) & 0x7fffffff
    counted = torch.where(magnitude > _INF, 0, magnitude) if s.skips_nan else magnitude
    amax = counted.amax((-3, -1), keepdim=True)
    if s.number:
        whole = torch.where(magnitude >= _INF, 0, magnitude).amax()
        y = _by_number(s, b, amax, _float(whole), random)
    else:
        y = _by_power(s, b, amax, random)
    if rows == 1:
        y = y.reshape(*shape[:-1], -1)[..., :shape[-1]]
    else:
        y = y.reshape(y.shape[0] * rows, -1)[:shape[0], :shape[1]]
    return y.movedim(-1, s.axis).to(x.dtype)
