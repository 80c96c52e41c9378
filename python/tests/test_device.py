# SPDX-License-Identifier: Apache-2.0
"""Arrays on a GPU, with memory of the host in its place and the library's functions for the host in place of the
kernels, which tests/parity compares with them: that memory, types, streams and results go where they should."""
import ctypes
import pickle
from typing import NamedTuple

import numpy as np
import pytest

import libmx
from libmx import _device, _libmx

RECIPES = ["mxfp8", "mxfp4:scale=even", "nvfp4", "mxfp6_e2m3:axis=0", "mxfp8:offset=fp16",
           "mxfp4:round=stochastic,seed=3", "mxfp4:transform=hadamard"]


class Array(NamedTuple):
    """As _libmx.DeviceArray."""
    address: int
    shape: tuple
    dtype: str
    device: int
    stream: int
    name: str

    def memory(self):
        kind = np.float32 if self.dtype == "F32" else np.float16 if self.dtype == "F16" else np.int16
        return memory_at(self.address, kind, self.shape)

    def view(self):
        return _libmx.View.of(self.memory(), self.dtype, self.name)


def memory_at(address, kind, shape):
    count = int(np.prod(shape))
    raw = (ctypes.c_uint8 * (count * np.dtype(kind).itemsize)).from_address(address)
    return np.frombuffer(raw, kind).reshape(shape)


class Kernels:
    """The functions of _libmx with memory of the host; every call is noted."""
    Recipe, packed_layout, copies = _libmx.Recipe, staticmethod(_libmx.packed_layout), staticmethod(_libmx.copies)

    class DeviceArray:
        of = Array

    def __init__(self):
        self.calls = []
        self.Statistics = self

    def missing_device(self):
        return ""

    def fake_quantize_there(self, x, core, to):
        self.calls.append(("fake_quantize", x, to))
        values = _libmx.fake_quantize(x.view(), core, to.dtype, 1)
        to.memory()[...] = values.view(to.memory().dtype)

    def quantize_there(self, x, core, codes, scales, offsets):
        self.calls.append(("quantize", x))
        parts = _libmx.quantize(x.view(), core, 1)
        for address, part in zip((codes, scales, offsets), parts):
            if part is not None:
                memory_at(address, part.dtype, part.shape)[...] = part
        return parts[3]

    def dequantize_there(self, codes, scales, offsets, tensor_scale, core, to):
        self.calls.append(("dequantize", to))
        count, grid, has_offsets = _libmx.packed_layout(core, to.shape)
        blocks = int(np.prod(grid))
        none = np.zeros(0, np.float32)
        values = _libmx.dequantize(
            core, list(to.shape), memory_at(codes, np.uint8, (count,)), memory_at(scales, np.uint8, (blocks,)), none,
            memory_at(offsets, np.uint16, (blocks,)) if has_offsets else none.astype(np.uint16), tensor_scale, none, 1)
        to.memory()[...] = values

    def cast_there(self, x, element, round, saturate, seed, to):
        self.calls.append(("cast", x))
        to.memory()[...] = _libmx.cast(x.view(), element, round, saturate, seed, 1)

    def update_there(self, cores, x):
        self.calls.append(("update", x))
        _libmx.Statistics.update_all(cores, x.view(), 1)


@pytest.fixture
def kernels(monkeypatch):
    made = Kernels()
    monkeypatch.setattr(_device, "_libmx", made)
    for cached in (_device.missing, _device._copies):
        cached.cache_clear()
    yield made
    for cached in (_device.missing, _device._copies):
        cached.cache_clear()


class OnGpu:
    """An array with the CUDA array interface."""

    def __init__(self, values, strides=None, stream=None):
        self.values, self.shape, self.dtype, self.device = values, values.shape, values.dtype, "gpu 0"
        self.strides, self.stream = strides, stream

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.values.ctypes.data, False),
                "strides": self.strides, "version": 3, "stream": self.stream}

    def __array_namespace__(self):
        return Namespace

    def get(self):
        return self.values


class Namespace:
    float32, float16, uint8, uint16 = np.float32, np.float16, np.uint8, np.uint16

    @staticmethod
    def empty(shape, dtype, device):
        assert device == "gpu 0"
        return OnGpu(np.full(shape, 77, dtype))


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_results_stay_there(kernels, recipe, kind):
    x = np.random.default_rng(1).standard_normal((64, 96)).astype(kind)
    there = OnGpu(x, stream=5)
    y = libmx.fake_quantize(there, recipe, "w")
    assert isinstance(y, OnGpu) and y.dtype == kind
    assert y.values.tobytes() == libmx.fake_quantize(x, recipe, "w").tobytes()
    assert kernels.calls[-1][1] == (x.ctypes.data, (64, 96), "F32" if kind == np.float32 else "F16", 0, 5, "w")

    expected, q = libmx.quantize(x, recipe, "w"), libmx.quantize(there, recipe, "w")
    assert all(isinstance(part, OnGpu) for part in (q.codes, q.scales))
    assert q.codes.values.tobytes() == expected.codes.tobytes()
    assert q.scales.shape == expected.scales.shape and q.scales.values.tobytes() == expected.scales.tobytes()
    assert q.tensor_scale == expected.tensor_scale and q.nbytes == expected.nbytes
    assert (q.offsets is None) == (expected.offsets is None)
    z = libmx.dequantize(q)
    assert isinstance(z, OnGpu) and z.values.tobytes() == expected.dequantize().tobytes()
    assert np.array_equal(q.elements, expected.elements)
    assert [call[0] for call in kernels.calls] == ["fake_quantize", "quantize", "dequantize"]


def test_out_is_written(kernels):
    x = np.linspace(-3, 3, 128, dtype=np.float32).reshape(2, 64)
    out = OnGpu(np.zeros((2, 64), np.float16))
    assert libmx.fake_quantize(OnGpu(x), "mxfp4", out=out) is out
    assert np.array_equal(out.values, libmx.fake_quantize(x, "mxfp4").astype(np.float16))
    same = OnGpu(x.copy())
    libmx.fake_quantize(same, "mxfp4", out=same)
    assert np.array_equal(same.values, libmx.fake_quantize(x, "mxfp4"))
    with pytest.raises(libmx.Error, match=r"out has the shape \(64,\)"):
        libmx.fake_quantize(OnGpu(x), "mxfp4", out=OnGpu(np.zeros(64, np.float32)))


def test_casts_and_figures(kernels):
    x = np.random.default_rng(2).standard_normal((32, 64)).astype(np.float32)
    assert np.array_equal(libmx.cast(OnGpu(x), "e4m3").values, libmx.cast(x, "e4m3"))
    here, there = libmx.statistics("nvfp4", "w"), libmx.statistics("nvfp4", "w")
    here.update(x)
    there.update(OnGpu(x))
    assert there.record() == here.record() and pickle.loads(pickle.dumps(there)).record() == here.record()
    assert [call[0] for call in kernels.calls] == ["cast", "update"]


def test_what_is_refused(kernels):
    x = np.zeros((4, 64), np.float32)
    with pytest.raises(libmx.Error, match="not contiguous"):
        libmx.quantize(OnGpu(x, strides=(4, 16)), "mxfp8")
    libmx.quantize(OnGpu(x, strides=(256, 4)), "mxfp8")
    with pytest.raises(libmx.Error, match="float64 on a GPU is none of float32, bfloat16 and float16"):
        libmx.fake_quantize(OnGpu(x.astype(np.float64)), "mxfp8")
    with pytest.raises(libmx.Error, match="the recipe needs axis 3"):
        libmx.quantize(OnGpu(x), "mxfp8:axis=3")
    q = libmx.quantize(OnGpu(x), "mxfp8")
    q.codes = OnGpu(np.zeros(7, np.uint8))
    with pytest.raises(libmx.Error, match="have parts of the shapes"):
        q.dequantize()


def test_without_a_device_a_line_says_what_to_do():
    missing = _libmx.missing_device()
    if not missing:
        pytest.skip("there is a GPU")
    _device.missing.cache_clear()
    with pytest.raises(libmx.Error, match="on a GPU, which this libmx does not use.*a copy on the host"):
        libmx.quantize(OnGpu(np.zeros((4, 64), np.float32)), "mxfp8")
    core = libmx.recipe("mxfp8")._core
    x = np.zeros(64, np.float32)
    array = _libmx.DeviceArray.of(x.ctypes.data, (64,), "F32", 0, 0, "")
    with pytest.raises(libmx.Error) as failure:
        _libmx.fake_quantize_there(array, core, array)
    assert failure.value.kind == "unavailable"


def test_what_has_no_kernels_is_named():
    assert _libmx.copies(libmx.recipe("mxfp8")._core, (4, 64), True) == ""
    for recipe, packed, what in [("nvfp4:outer=row", False, "outer scales of rows, columns and tiles"),
                                 ("fp8_1x128:scale=amax", True, "scales without codes"),
                                 ("bf16", False, "formats without blocks")]:
        assert _libmx.copies(libmx.recipe(recipe)._core, (4, 256), packed) == what


class TestTorch:
    """Tensors of PyTorch, a CPU as the GPU."""

    @pytest.fixture
    def torch(self, kernels, monkeypatch):
        torch = pytest.importorskip("torch")
        mxt = pytest.importorskip("libmx.torch")
        monkeypatch.setattr(_device, "holds", lambda x: isinstance(x, torch.Tensor))
        monkeypatch.setattr(_device, "takes", lambda x, recipe: x.dtype in (
            torch.float32, torch.bfloat16, torch.float16) and not _device.copies(x, recipe))
        monkeypatch.setattr(torch.cuda, "current_stream", lambda _: type("Stream", (), {"cuda_stream": 9}))
        monkeypatch.setattr(mxt, "_is_on_host", lambda _: False)
        torch.manual_seed(4)
        torch.mxt = mxt
        return torch

    @staticmethod
    def expected(x, recipe, name=""):
        """Of the host, in numbers of float32."""
        return libmx.fake_quantize(x.detach().float().numpy(), recipe, name)

    def test_nothing_is_copied(self, torch, kernels, caplog):
        x = torch.randn(32, 64).to(torch.bfloat16)
        for recipe in RECIPES + ["mxfp8:round=away"]:
            y = torch.mxt.fake_quantize(x, recipe, "w")
            assert y.dtype == torch.bfloat16
            assert np.array_equal(y.float().numpy(), torch.tensor(self.expected(x, recipe, "w")).bfloat16().float())
            assert kernels.calls[-1][1][2:] == ("BF16", x.device.index, 9, "w")
        assert len(kernels.calls) == len(RECIPES) + 1 and not caplog.records

    def test_strides_and_gradients(self, torch):
        x = torch.randn(64, 32, requires_grad=True)
        y = torch.mxt.fake_quantize(x.t(), "mxfp4", ste="clip")
        assert np.array_equal(y.detach(), self.expected(x.t().contiguous(), "mxfp4"))
        y.sum().backward()
        q = libmx.quantize(x.detach().t().contiguous().numpy(), "mxfp4:scale=floor")
        beyond = np.abs(x.detach().t().numpy()).reshape(32, 2, 32) > 6 * 2.0 ** (q.scales.astype(int) - 127)[..., None]
        assert beyond.any() and np.array_equal(x.grad.t() == 0, beyond.reshape(32, 64))

    def test_out_of_another_layout(self, torch):
        x = torch.randn(32, 64)
        out = torch.zeros(64, 32, dtype=torch.float64).t()
        assert libmx.fake_quantize(x, "mxfp8", out=out) is out
        assert np.array_equal(out.float(), self.expected(x, "mxfp8"))

    def test_autograd_sees_what_is_written(self, torch):
        x = torch.randn(32, 64, requires_grad=True)
        y = x.exp()  # whose gradient needs it as it was
        before = y._version
        values = y.detach().clone()
        libmx.fake_quantize(y.detach(), "mxfp4", out=y.detach())
        assert y._version > before and np.array_equal(y.detach(), self.expected(values, "mxfp4"))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()

    def test_kernels_write_directly_where_they_can_tell(self, torch, kernels, monkeypatch):
        told = []
        monkeypatch.setattr(torch.autograd.graph, "increment_version", told.append, raising=False)
        x, out = torch.randn(32, 64), torch.zeros(32, 64)
        assert libmx.fake_quantize(x, "mxfp4", out=out) is out and told == [out]
        assert kernels.calls[-1][2].address == out.data_ptr()

    def test_blocks_are_tensors(self, torch):
        x = torch.randn(32, 64)
        q = libmx.quantize(x, "mxfp8")
        host = libmx.quantize(x.numpy(), "mxfp8")
        assert all(isinstance(part, torch.Tensor) for part in (q.codes, q.scales))
        assert np.array_equal(q.dequantize(), host.dequantize())
        parts, same = q.to_torch(), host.to_torch()
        assert torch.equal(parts.elements.view(torch.uint8), same.elements.view(torch.uint8))
        assert torch.equal(parts.scales.view(torch.uint8), same.scales.view(torch.uint8))

    def test_linear_and_watch(self, torch, kernels):
        layer = torch.nn.Sequential(torch.nn.Linear(64, 32))
        torch.mxt.convert_(layer, torch.mxt.LinearConfig("mxfp8", "mxfp8", "mxfp8"))
        x = torch.randn(16, 64)
        with torch.mxt.watch(layer, ["mxfp8", "nvfp4"], every=1) as w:
            layer(x).square().sum().backward()
            figures = dict(w.scalars())
        names = [call[0] for call in kernels.calls]
        assert names.count("fake_quantize") == 4  # x needs no gradient: dgrad is left out
        assert names.count("update") == 3
        assert figures["mx/nvfp4/0.input/sqnr_db"] > 15
