# SPDX-License-Identifier: Apache-2.0
"""The golden vectors of the C++ tests through PyTorch: what others make of blocks."""
import pathlib

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import libmx  # noqa: E402
from vectors import folder, read  # noqa: E402

files = sorted(folder.glob("blocks/*.safetensors")) + sorted(folder.glob("nvfp4/*.safetensors"))
pytestmark = pytest.mark.skipif(not files, reason="not in a checkout")


def layouts(x):
    """The same values contiguous, as columns of another array, every second row, and one by one."""
    yield x
    yield x.t().contiguous().t()
    wide = torch.zeros(x.shape[0] * 2, x.shape[1])
    wide[::2] = x
    yield wide[::2]
    yield x.clone().requires_grad_()


@pytest.mark.parametrize("path", files, ids=lambda p: p.stem)
def test_blocks(path):
    meta, v = read(path)
    if meta.get("format") == "nvfp4":
        levels = "two-level" if meta["scale"] == "two-level" else "single-level"
        text = f"nvfp4:scale={levels},dialect={meta['dialect']}"
    else:
        text = f"mxfp8:element={meta['element']},scale={meta['scale']}"
    recipe = libmx.recipe(f"{text},round={meta['round']},block={meta['block']}")
    x = torch.from_numpy(v["input"].copy())
    finite = np.isfinite(v["dequant"]).all(1)
    for same in layouts(x):
        q = libmx.quantize(same, recipe)
        assert np.array_equal(np.asarray(q.scales).reshape(-1), v["scale_code"].reshape(-1))
        codes = np.asarray(q.elements).reshape(v["code"].shape)
        assert np.array_equal(codes[finite], v["code"][finite])
        y = libmx.fake_quantize(same, recipe)
        assert y.dtype == torch.float32
        np.testing.assert_array_equal(y.detach().numpy(), v["dequant"])
    narrow = v["is_bf16"].astype(bool)
    if meta["scale"] == "two-level":
        return  # the tensor scale is that of all blocks
    y = libmx.fake_quantize(x[torch.from_numpy(narrow)].bfloat16(), recipe)
    assert y.dtype == torch.bfloat16
    expected = torch.from_numpy(v["dequant"][narrow]).bfloat16()
    np.testing.assert_array_equal(y.float().numpy(), expected.float().numpy())


def test_there_are_vectors():
    assert len(files) > 30 and pathlib.Path(files[0]).stat().st_size > 0
