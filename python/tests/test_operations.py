# SPDX-License-Identifier: Apache-2.0
"""Fake quantization in PyTorch's operations against the compiled part: all values of bfloat16, and
float32 that are difficult, as one operation after another and as Inductor compiles them."""
import logging

import pytest

torch = pytest.importorskip("torch")
from torch import library  # noqa: E402

if not hasattr(library, "custom_op"):
    pytest.skip("PyTorch before 2.4", allow_module_level=True)

import numpy as np  # noqa: E402

import libmx  # noqa: E402
import libmx.torch as mxt  # noqa: E402
from libmx import _libmx, _operations  # noqa: E402

ELEMENTS = ["mxfp8", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4"]
RECIPES = [f"{e}:scale={s}" for e in ELEMENTS for s in ("floor", "even", "ceil", "rceil")]
RECIPES += [f"{e}:scale={s},dialect=torchao" for e in ELEMENTS for s in ("floor", "even", "ceil", "rceil")]
RECIPES += [f"{e}:scale={s},dialect=torchao@0.18" for e in ELEMENTS for s in ("floor", "even", "ceil", "rceil")]
RECIPES += [f"{e}:dialect=microxcaling,round={r}" for e in ELEMENTS for r in ("away", "rtne", "zero")]
RECIPES += [f"{e}:dialect={d}" for e in ("mxfp8", "mxfp8_e5m2") for d in ("te", "nvidia")]
RECIPES += ["mxfp4:dialect=nvidia", "mxfp6_e3m2:dialect=nvidia", "mxfp8:dialect=compressed-tensors",
            "mxfp4:dialect=compressed-tensors"]
RECIPES += ["nvfp4"] + [f"nvfp4:dialect={d}" for d in ("torchao", "torchao@0.18", "torchao@0.15", "te", "compressed-tensors")]
RECIPES += ["nvfp4:scale=single-level", "nvfp4:scale=single-level,dialect=torchao"]
RECIPES += ["mxfp8:round=stochastic", "mxfp4:round=stochastic,random_bits=7,seed=81985529216486895",
            "nvfp4:dialect=te,round=stochastic", "nvfp4:round=stochastic,seed=7",
            "nvfp4:scale=single-level,round=stochastic,random_bits=3", "mxfp8:dialect=torchao@0.15"]
COMPILED = ["mxfp4:dialect=microxcaling,round=rtne", "mxfp8:dialect=microxcaling,round=away",
            "mxfp6_e3m2:dialect=microxcaling,round=zero", "mxfp8:scale=rceil,dialect=torchao@0.18",
            "mxfp4:scale=even,dialect=torchao@0.18", "nvfp4:dialect=torchao@0.18", "nvfp4:round=stochastic",
            "nvfp4:dialect=te,round=stochastic", "nvfp4:scale=single-level,round=stochastic,random_bits=3",
            "mxfp4:scale=even", "mxfp8:scale=rceil,dialect=torchao", "nvfp4", "mxfp4:round=stochastic"]


def all_bfloat16():
    """Every bfloat16 twice: beside others of its size, and in any order, with NaN and Inf among them."""
    bits = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
    mixed = np.random.default_rng(1).permutation(bits)
    return torch.from_numpy(np.concatenate([bits, mixed]).reshape(-1, 256)).view(torch.bfloat16)


def difficult():
    """float32: any bits, neighbours of the points at which scales and codes change, subnormals."""
    rng = np.random.default_rng(2)
    any_bits = rng.integers(0, 1 << 32, (96, 256), dtype=np.uint64).astype(np.uint32)
    points = np.array([1, 1.25, 1.5, 1.75, 1.875, 1.9375, 448, 57344, 28, 7.5, 6, 480, 3, 2.5, 464, 5],
                      np.float32)
    with np.errstate(over="ignore", under="ignore"):
        near = points[rng.integers(0, len(points), (192, 256))] * np.exp2(
            rng.integers(-140, 128, (192, 1)) + rng.integers(-12, 1, (192, 256))).astype(np.float32)
    near = near.view(np.uint32) + rng.integers(-3, 4, near.shape).astype(np.uint32)
    near ^= rng.integers(0, 2, near.shape).astype(np.uint32) << 31
    small = rng.integers(0, 1 << 24, (32, 256)).astype(np.uint32) >> rng.integers(0, 24, (32, 256))
    x = np.concatenate([any_bits, near, small.astype(np.uint32), np.zeros((1, 256), np.uint32)])
    return torch.from_numpy(x.view(np.float32))


def finite(x):
    return torch.where(x.abs() < 3e38, x, torch.zeros((), dtype=x.dtype))


def inputs():
    for x in (all_bfloat16(), difficult()):
        yield x
        # Under a tensor scale, infinity decides too much.
        yield finite(x)
        for scale in (1e-3, 1.0, 1e4):
            yield (torch.randn(64, 300, generator=torch.Generator().manual_seed(3)) * scale).to(x.dtype)


def differ(a, b):
    """How many have other bits; NaN is NaN."""
    width = torch.int16 if a.dtype == torch.bfloat16 else torch.int32
    return int(((a.view(width) != b.view(width)) & ~(a.isnan() & b.isnan())).sum())


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_bits_of_the_library(recipe):
    recipe = str(libmx.recipe(recipe))
    steps = _operations.steps_of(recipe)
    for x in inputs():
        assert _operations.takes(steps, x)
        y = _operations.fake_quantize(x, steps, _libmx.tensor_id("w"))
        assert y.dtype == x.dtype
        assert differ(y, libmx.fake_quantize(x, recipe, "w")) == 0, x.dtype


@pytest.mark.parametrize("recipe", COMPILED)
def test_the_same_under_a_compiler(recipe):
    torch._dynamo.reset()
    recipe = str(libmx.recipe(recipe))
    steps = _operations.steps_of(recipe)
    key = _libmx.tensor_id("w")
    f = torch.compile(lambda x: _operations.fake_quantize(x, steps, key), fullgraph=True, dynamic=False)
    for x in (all_bfloat16(), difficult()):
        assert differ(f(x), libmx.fake_quantize(x, recipe, "w")) == 0, x.dtype


@pytest.mark.parametrize("keys", ["axis=0", "block=1x16", "axis=-2,block=1x48", "block=16x16", "block=32x1"])
def test_blocks_along_any_axis(keys):
    for recipe in (f"mxfp8:{keys}", f"mxfp4:round=stochastic,{keys}", f"nvfp4:dialect=te,{keys}"):
        try:
            recipe = str(libmx.recipe(recipe))
        except libmx.Error:
            continue
        steps = _operations.steps_of(recipe)
        shapes = [(50, 70), (96, 64)] if "block=16x16" in keys or "32x1" in keys else [(50, 70), (3, 40, 72)]
        for shape in shapes:
            x = torch.randn(shape, generator=torch.Generator().manual_seed(4))
            for v in (x, x.mT):
                assert differ(_operations.fake_quantize(v, steps, _libmx.tensor_id("")),
                              libmx.fake_quantize(v, recipe)) == 0


@pytest.mark.parametrize("recipe", ["mxfp4:scale=search", "mxint8", "mxfp8:round=away", "mxfp4:dialect=microxcaling-bf16",
                                    "nvfp4:element=e3m2,round=stochastic", "mxfp8:dialect=microxcaling,flush_subnormals=true",
                                    "mxfp8:dialect=quark", "e4m3:scale=tensor", "nvfp4:outer=row",
                                    "mxfp8:offset=fp16", "mxfp4:transform=hadamard", "mxfp4_e3m0"])
def test_other_recipes_are_left_to_the_host(recipe):
    assert _operations.steps_of(str(libmx.recipe(recipe))) is None
