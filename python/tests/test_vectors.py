# SPDX-License-Identifier: Apache-2.0
"""The golden vectors of the C++ tests through NumPy: what other implementations make of blocks and
single values, so that a wrong stride, type or sign cannot hide."""
import subprocess

import ml_dtypes
import numpy as np
import pytest

import libmx
from vectors import folder, read

blocks = sorted(folder.glob("blocks/*.safetensors")) + sorted(folder.glob("nvfp4/*.safetensors"))
elements = sorted(folder.glob("elements/*.safetensors"))
pytestmark = pytest.mark.skipif(not blocks, reason="not in a checkout")

# The contents of a tensor of codes, by the last part of its name: rounding, saturation, and
# whether only elements with fp32.finite_mask 1 are compared.
MEANINGS = {
    "code": ("rtne", True, False), "code_nosat": ("rtne", False, False),
    "code_ties_away": ("away", True, True), "code_toward_zero": ("zero", True, True),
    "code_toward_pos": ("up", True, True), "code_toward_neg": ("down", True, True),
}


def layouts(x):
    """The same values in every order and distance, writable or not, and in a buffer."""
    yield x
    yield np.asfortranarray(x)
    wide = np.zeros((x.shape[0] * 2, x.shape[1] * 3), x.dtype)
    wide[::2, ::3] = x
    yield wide[::2, ::3]
    yield x[::-1].copy()[::-1]
    frozen = x.copy()
    frozen.flags.writeable = False
    yield frozen
    if x.dtype == np.float32:
        yield memoryview(x)


@pytest.mark.parametrize("path", blocks, ids=lambda p: p.stem)
def test_blocks(path):
    meta, v = read(path)
    scale = "single-level" if "single-level" in meta["scale"] else meta["scale"]
    text = (f"{meta.get('format', 'mxfp8')}:element={meta['element']},scale={scale},"
            f"round={meta['round']},block={meta['block']}")
    if "format" in meta:
        text += f",dialect={meta['dialect']}"
    x = v["input"].copy()
    finite = np.isfinite(v["dequant"]).all(1)
    for same in layouts(x):
        q = libmx.quantize(same, text)
        np.testing.assert_array_equal(q.scales.reshape(-1), v["scale_code"].reshape(-1))
        np.testing.assert_array_equal(q.elements[finite], v["code"][finite])
        y = libmx.fake_quantize(same, text)
        np.testing.assert_array_equal(y, v["dequant"])
        assert np.array_equal(np.signbit(y[finite]), np.signbit(v["dequant"][finite]))
    for stored in ("per_tensor_scale", "global_encode_scale"):
        if stored in v:
            assert q.tensor_scale == v[stored].reshape(-1)[0]
    if meta["scale"] == "two-level":
        return  # the tensor scale is that of all blocks
    narrow = v["is_bf16"].astype(bool)
    for same in layouts(x[narrow].astype(ml_dtypes.bfloat16)):
        y = libmx.fake_quantize(same, text)
        assert y.dtype == ml_dtypes.bfloat16
        expected = v["dequant"][narrow].astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(y.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("path", elements, ids=lambda p: p.stem)
def test_elements(path):
    meta, v = read(path)
    name, table = meta["element"], v["decode_table"]
    bits = np.arange(1 << 16, dtype=np.uint16)
    inputs = {"fp32": v["fp32.input"], "bf16": bits.view(ml_dtypes.bfloat16),
              "fp16": bits.view(np.float16)}
    compared = 0
    for tensor, codes in v.items():
        set_name, _, last = tensor.rpartition(".")
        if last not in MEANINGS:
            continue
        how, saturate, masked = MEANINGS[last]
        set_name, _, cuda = set_name.partition(".")
        if cuda:
            continue  # E8M0 toward zero has no name of its own
        x = inputs[set_name]
        counts = np.ones(x.shape, bool)
        if "finite inputs only" in meta["contract"]:
            counts &= np.isfinite(x.astype(np.float32))
        if masked:
            counts &= v["fp32.finite_mask"].astype(bool)
        if name == "int8":
            counts &= codes != 0x80  # the full range, of which libmx.cast has the symmetric part
        expected = table[codes]
        got = libmx.cast(x, name, round=how, saturate=saturate)
        np.testing.assert_array_equal(got[counts], expected[counts], tensor)
        compared += 1
        if masked and name == "e3m0":
            counts &= x != 0  # microxcaling turns -0 into +0
        if name.startswith("int"):
            continue  # integers have one zero
        counts &= ~np.isnan(expected)
        assert np.array_equal(np.signbit(got[counts]), np.signbit(expected[counts])), tensor
    assert compared >= 3


@pytest.mark.parametrize("element, theirs", [
    ("e4m3", "float8_e4m3fn"), ("e5m2", "float8_e5m2"), ("e2m1", "float4_e2m1fn"),
    ("e2m3", "float6_e2m3fn"), ("e3m2", "float6_e3m2fn"),
])
def test_casts_of_ml_dtypes(element, theirs):
    if not hasattr(ml_dtypes, theirs):
        pytest.skip(f"this ml_dtypes has no {theirs}")
    kind = getattr(ml_dtypes, theirs)
    bits = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(all="ignore"):
        for x in (bits.view(ml_dtypes.bfloat16), bits.view(np.float16)):
            wide = x.astype(np.float32)
            # Theirs do not saturate; e2m1, e2m3 and e3m2 have nothing but the largest value there.
            saturates = element in ("e2m1", "e2m3", "e3m2")
            expected = wide.astype(kind).astype(np.float32)
            counts = np.isfinite(wide) if saturates else ~np.isnan(wide)
            got = libmx.cast(x, element, saturate=saturates)
            np.testing.assert_array_equal(got[counts], expected[counts])


@pytest.mark.parametrize("element, theirs", [
    ("e4m3", "float8_e4m3fn"), ("e5m2", "float8_e5m2"), ("e2m1", "float4_e2m1fn"),
    ("e2m3", "float6_e2m3fn"), ("e3m2", "float6_e3m2fn"), ("e8m0", "float8_e8m0fnu"),
])
def test_dialect_ml_dtypes_casts_as_ml_dtypes(mx, tmp_path, element, theirs):
    """Every bfloat16, every float16 and random float32, with NaN, Inf and what overflows."""
    if not hasattr(ml_dtypes, theirs):
        pytest.skip(f"this ml_dtypes has no {theirs}")
    kind = getattr(ml_dtypes, theirs)
    bits = np.arange(1 << 16, dtype=np.uint16)
    wide = np.random.default_rng(5).integers(0, 1 << 32, 200_000, np.uint32).view(np.float32)
    near = np.array([1000, 464, 465, -1000, 61440, 1e9], np.float32)
    with np.errstate(all="ignore"):
        for name, x in (("BF16", bits.view(ml_dtypes.bfloat16)), ("F16", bits.view(np.float16)),
                        ("F32", wide), ("F32", near)):
            x.tofile(tmp_path / "x.bin")
            subprocess.run([mx, "quantize", tmp_path / "x.bin", "--shape", str(x.size), "--dtype",
                            name, "--all-tensors", "-r", f"{element}:dialect=ml_dtypes", "-q",
                            "-o", tmp_path / "y.npy"], check=True)
            got, expected = np.load(tmp_path / "y.npy"), x.astype(kind).astype(np.float32)
            np.testing.assert_array_equal(got, expected)
            number = ~np.isnan(expected)
            assert np.array_equal(np.signbit(got[number]), np.signbit(expected[number]))


def test_there_are_vectors():
    assert len(blocks) > 30 and len(elements) == 10
