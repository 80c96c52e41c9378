# SPDX-License-Identifier: Apache-2.0
"""Quantized arrays in the types of PyTorch, in the order of scaled products, and as tensors of torchao."""
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import libmx  # noqa: E402


def values(*shape):
    x = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    x.reshape(-1)[:3] = 1e-40, 3e38, -0.0
    return x


def number_of(t):
    """What a tensor of PyTorch's 8-bit types says in float32."""
    return t.to(torch.float32).numpy()


has_types = pytest.mark.skipif(not hasattr(torch, "float8_e8m0fnu"), reason="PyTorch before 2.7")


@has_types
@pytest.mark.parametrize("recipe", ["mxfp8", "mxfp8_e5m2:scale=rceil", "mxfp8:dialect=torchao@0.18"])
def test_the_types_have_the_values_of_the_formats(recipe):
    q = libmx.quantize(values(6, 128), recipe)
    elements, scales, outer = q.to_torch()
    assert elements.shape == (6, 128) and scales.shape == (6, 4) and outer is None
    assert scales.dtype == torch.float8_e8m0fnu
    y = number_of(elements).reshape(6, 4, 32) * number_of(scales)[:, :, None]
    assert np.array_equal(y.reshape(6, 128).view(np.uint32), q.dequantize().view(np.uint32))


@has_types
def test_nvfp4_has_pairs_and_a_tensor_scale():
    q = libmx.quantize(values(6, 64) * np.float32(1e-30), "nvfp4")
    elements, scales, outer = q.to_torch()
    assert scales.dtype == torch.float8_e4m3fn and scales.shape == (6, 4)
    assert outer.dtype == torch.float32 and outer.item() == q.tensor_scale
    packed = elements.view(torch.uint8).numpy() if hasattr(torch, "float4_e2m1fn_x2") else None
    if packed is not None:
        assert elements.dtype == torch.float4_e2m1fn_x2 and elements.shape == (6, 32)
        assert np.array_equal(packed & 15, q.elements[:, ::2]) and np.array_equal(packed >> 4, q.elements[:, 1::2])


def test_codes_where_there_is_no_type():
    q = libmx.quantize(values(6, 64), "mxfp6")
    assert q.to_torch().elements.dtype == torch.uint8
    assert np.array_equal(q.to_torch().elements.numpy(), q.elements)
    q = libmx.quantize(values(6, 64), "mxint8")
    assert q.to_torch().elements.dtype == torch.int8
    q.to_torch().elements.zero_()  # a copy
    assert q.elements.any()


def test_elements_that_were_changed_count():
    q = libmx.quantize(values(4, 64), "mxfp4")
    q.elements[0, 0] ^= 8
    t = q.to_torch().elements
    first = t.view(torch.uint8)[0, 0].item() & 15
    assert first == q.elements[0, 0]


def place(row, col, across):
    """By the words of NVIDIA's documentation."""
    return (row // 128 * across + col // 4) * 512 + row % 32 * 16 + row % 128 // 32 * 4 + col % 4


@pytest.mark.parametrize("shape", [(128, 128), (1, 32), (300, 160), (3, 130, 96)])
def test_swizzled_scales(shape):
    q = libmx.quantize(values(*shape), "mxfp8")
    s = q.swizzled_scales()
    rows, cols = int(np.prod(shape[:-1])), shape[-1] // 32
    across = -(-cols // 4)
    assert s.shape == (-(-rows // 128) * across * 512,)
    matrix, seen = q.scales.reshape(rows, cols), np.zeros(s.shape, bool)
    for row in range(rows):
        for col in range(cols):
            assert s[place(row, col, across)] == matrix[row, col]
            seen[place(row, col, across)] = True
    assert not s[~seen].any()
    if hasattr(torch, "float8_e8m0fnu"):
        t = q.to_torch(swizzle=True).scales
        assert t.dtype == torch.float8_e8m0fnu and np.array_equal(t.view(torch.uint8).numpy(), s)


@pytest.mark.parametrize("recipe, shape, part", [
    ("mxfp8:axis=0", (64, 64), "1xN blocks along the last axis"), ("mxfp8", (64, 40), "which they divide"),
    ("mxfp8:block=4x4", (64, 64), "1xN blocks"), ("mxfp8", (64,), "matrices"),
    ("fp8_1x128", (64, 128), "scales that are codes")])
def test_other_scales_are_not_swizzled(recipe, shape, part):
    with pytest.raises(libmx.Error, match=part):
        libmx.quantize(values(*shape), recipe).swizzled_scales()


def test_offsets_and_odd_rows_are_refused():
    with pytest.raises(libmx.Error, match="offsets"):
        libmx.quantize(values(4, 64), "mxfp8:offset=fp16").to_torch()
    if hasattr(torch, "float4_e2m1fn_x2"):
        with pytest.raises(libmx.Error, match="even last axis"):
            libmx.quantize(values(4, 33), "mxfp4").to_torch()


def parts_of_torchao():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torchao = pytest.importorskip("torchao")
        mx = pytest.importorskip("torchao.prototype.mx_formats.mx_tensor")
        nvfp4 = pytest.importorskip("torchao.prototype.mx_formats.nvfp4_tensor")
        config = pytest.importorskip("torchao.prototype.mx_formats.config")
    if torchao.__version__.split("+")[0] != "0.18.0":
        pytest.skip("dialect=torchao@0.18 is of torchao 0.18.0")
    return mx, nvfp4, config


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.view(torch.uint8), b.view(torch.uint8))


@pytest.mark.parametrize("swizzle", [False, True])
@pytest.mark.parametrize("rule", ["floor", "even", "ceil", "rceil"])
@pytest.mark.parametrize("preset", ["mxfp8", "mxfp8_e5m2", "mxfp6", "mxfp6_e2m3", "mxfp4"])
def test_what_torchao_makes_itself(preset, rule, swizzle):
    mx, _, config = parts_of_torchao()
    for x in (values(130, 160), values(2, 128, 64)):
        ours = libmx.quantize(x, f"{preset}:scale={rule},dialect=torchao@0.18").to_torchao(swizzle=swizzle)
        theirs = mx.MXTensor.to_mx(torch.from_numpy(x), ours.elem_dtype, 32, config.ScaleCalculationMode[rule.upper()],
                                   is_swizzled_scales=swizzle)
        assert type(ours) is type(theirs) and ours.shape == theirs.shape and ours.dtype == theirs.dtype
        assert same_bits(ours.qdata, theirs.qdata) and same_bits(ours.scale, theirs.scale)
        for name in theirs.tensor_attribute_names:
            assert getattr(ours, name) == getattr(theirs, name), name
        assert same_bits(ours.dequantize(), theirs.dequantize())


@pytest.mark.parametrize("swizzle", [False, True])
@pytest.mark.parametrize("rule", ["two-level", "single-level"])
def test_nvfp4_that_torchao_makes_itself(rule, swizzle):
    _, nvfp4, _ = parts_of_torchao()
    x = torch.from_numpy(np.random.default_rng(6).standard_normal((200, 128)).astype(np.float32))
    outer = nvfp4.per_tensor_amax_to_scale(x.abs().max()) if rule == "two-level" else None
    theirs = nvfp4.NVFP4Tensor.to_nvfp4(x, per_tensor_scale=outer, is_swizzled_scales=swizzle)
    q = libmx.quantize(x, f"nvfp4:scale={rule},dialect=torchao@0.18")
    ours = q.to_torchao(torch.float32, swizzle)
    assert same_bits(ours.qdata, theirs.qdata) and same_bits(ours.scale, theirs.scale)
    if outer is not None:
        assert same_bits(ours.per_tensor_scale.reshape(1), outer.reshape(1)) and ours.per_tensor_scale.dim() == 0
    assert same_bits(ours.dequantize(), theirs.dequantize())
    assert same_bits(ours.dequantize(), torch.from_numpy(q.dequantize()))
    assert q.to_torchao(torch.bfloat16).dtype == torch.bfloat16


@pytest.mark.parametrize("recipe, part", [
    ("nvfp4:dialect=te", "keeps a reciprocal"), ("nvfp4:outer=row", "has several"), ("mxint8", "torchao has MXFP8"),
    ("mxfp4:transform=hadamard", "rotations"), ("mxfp8:axis=0", "along the last axis"),
    ("nvfp4:block=1x32", "torchao has MXFP8")])
def test_what_torchao_lacks(recipe, part):
    parts_of_torchao()
    with pytest.raises(libmx.Error, match=part):
        libmx.quantize(values(64, 64), recipe).to_torchao()
