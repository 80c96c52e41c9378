# SPDX-License-Identifier: Apache-2.0
"""Quantized arrays: the bytes of the command, for every layout of an array in memory."""
import json
import pickle
import subprocess
import threading

import ml_dtypes
import numpy as np
import pytest

import libmx

RECIPES = [
    *(f"{preset}:scale={rule}" for preset in ("mxfp8", "mxfp8_e5m2", "mxfp6", "mxfp6_e2m3", "mxfp4")
      for rule in ("floor", "ceil", "even", "rceil")),
    "mxint8", "nvfp4", "nvfp4:scale=two-level", "nvfp4:dialect=te", "fp8_1x128",
    "nvfp4:outer=row", "nvfp4:outer=col,block=16x1", "nvfp4:outer=48x64",
    "mxfp4:block=16x16", "mxfp4:block=1x16", "mxfp4:block=32x1", "mxfp8:axis=0", "mxfp8:axis=flat",
    "mxfp4:round=stochastic,seed=7", "mxfp8:round=away",
    "mxfp4:dialect=torchao", "mxfp8:dialect=torchao", "mxfp4:dialect=microxcaling",
    "mxfp4:dialect=fbgemm", "mxfp4:offset=fp16", "mxfp8:offset=fp16,scale=rceil",
    "mxfp4:transform=hadamard", "mxfp4:transform=hadamard,transform_size=16",
    "mxfp8:scale=floor-bump",
]


def values(shape, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * np.exp(2 * rng.standard_normal(shape))
    return x.astype(np.float32)


@pytest.mark.parametrize("recipe", RECIPES)
def test_same_as_the_command(mx, tmp_path, recipe):
    x = values((64, 160))
    x[3, 40], x[17, 5], x[40] = np.nan, np.inf, 0
    np.save(tmp_path / "x.npy", x)
    packed, back = tmp_path / "p.safetensors", tmp_path / "v.safetensors"
    run = lambda *a: subprocess.run([mx, *map(str, a), "-q"], check=True)
    run("quantize", tmp_path / "x.npy", "--all-tensors", "-r", recipe, "--packed", "-o", packed)
    run("quantize", tmp_path / "x.npy", "--all-tensors", "-r", recipe, "-o", back)
    with libmx.open(tmp_path / "x.npy") as m:
        name = m.keys()[0]
    stored = parts(packed)
    q = libmx.quantize(x, recipe, name=name)
    by_part = {key.rpartition(".")[2]: bytes for key, bytes in stored.items()}
    assert q.codes.tobytes() == by_part["codes" if "codes" in by_part else name]
    assert q.scales.tobytes() == by_part["scales"]
    if q.offsets is not None:
        assert q.offsets.tobytes() == by_part["offsets"]
    if "outer" in recipe:
        assert q.tensor_scale.tobytes() == by_part["global_scale"]
        assert pickle.loads(pickle.dumps(q)).dequantize().tobytes() == q.dequantize().tobytes()
    y = libmx.fake_quantize(x, recipe, name=name)
    assert y.tobytes() == next(iter(parts(back).values()))
    assert q.dequantize().tobytes() == y.tobytes() or "dialect" in recipe


def parts(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    return {k: data[8 + size + v["data_offsets"][0]:8 + size + v["data_offsets"][1]]
            for k, v in header.items() if k != "__metadata__"}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "float8_e4m3fn"])
def test_layouts(dtype):
    x = values((48, 96)).astype(dtype)
    expected = libmx.fake_quantize(np.ascontiguousarray(x).astype(np.float32), "mxfp4")
    got = libmx.fake_quantize(x, "mxfp4")
    assert got.dtype == x.dtype
    assert got.tobytes() == expected.astype(x.dtype).tobytes()
    wide = np.zeros((96, 192), x.dtype)
    wide[::2, ::2] = x
    strided = wide[::2, ::2]
    assert libmx.quantize(strided, "mxfp4").codes.tobytes() == \
        libmx.quantize(x, "mxfp4").codes.tobytes()
    assert libmx.quantize(np.asfortranarray(x), "mxfp4").codes.tobytes() == \
        libmx.quantize(x, "mxfp4").codes.tobytes()
    x.flags.writeable = False
    libmx.quantize(x, "mxfp4")


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_any_strides(width):
    """Arrays whose axes were swapped, cut, reversed and repeated, whole and by rows."""
    rng = np.random.default_rng(width)
    all = rng.integers(0, 100, (3, 40, 70)).astype(f"i{width}")
    for order in ((0, 1, 2), (0, 2, 1), (2, 1, 0), (1, 0, 2), (2, 0, 1)):
        for cut in (np.s_[:], np.s_[..., ::3], np.s_[:, ::-1, 1:18], np.s_[1:2, 1:36, ::-2]):
            x = all.transpose(order)[cut]
            for y in (x, x[0], x[:, 0], np.broadcast_to(x[:, :1], x.shape)):
                v = libmx._arrays.as_view(y, "")
                np.testing.assert_array_equal(v.values(), y.astype(np.float32))
                np.testing.assert_array_equal(v.values(1, 3), y[1:3].astype(np.float32))
    wide = rng.standard_normal((500, 600)).astype(np.float32)  # several panels
    assert np.array_equal(libmx.fake_quantize(wide.T, "mxfp8"),
                          libmx.fake_quantize(np.ascontiguousarray(wide.T), "mxfp8"))


def test_sixteen_bit_results_are_rounded_once():
    bits = np.arange(1 << 16, dtype=np.uint16)
    for dtype in (np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)):
        x = bits.view(dtype).reshape(-1, 32)
        with np.errstate(all="ignore"):
            expected = libmx.fake_quantize(x.astype(np.float32), "mxfp8").astype(dtype)
            got = libmx.fake_quantize(x, "mxfp8")
        np.testing.assert_array_equal(got.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("recipe", ["mxfp8", "nvfp4", "mxfp4:transform=hadamard"])
def test_results_in_place(recipe):
    for dtype in ("float32", "bfloat16", "float16", "float64", "float8_e5m2"):
        x = values((32, 96)).astype(dtype)
        expected = libmx.fake_quantize(x, recipe).tobytes()
        for out in (np.empty_like(x), np.asfortranarray(x), x.copy()):
            assert libmx.fake_quantize(x, recipe, out=out) is out
            assert out.tobytes() == expected
        wide = np.zeros((64, 96), x.dtype)
        wide[1::2] = x
        assert libmx.fake_quantize(wide[1::2], recipe, out=wide[:32])[:].tobytes() == expected
        assert libmx.fake_quantize(x, recipe, out=x).tobytes() == expected
    mixed = np.empty((32, 96), np.float32)
    libmx.fake_quantize(values((32, 96)).astype(np.float16), "mxfp8", out=mixed)
    assert mixed.any()


class Foreign:
    """An array of another library: DLPack and a type."""

    def __init__(self, x, dtype=None):
        self.x, self.dtype = x, dtype or x.dtype

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def test_other_libraries():
    import array
    x = values((16, 64))
    expected = libmx.quantize(x, "mxfp4").codes.tobytes()
    frozen = x.copy()
    frozen.flags.writeable = False
    for same in (Foreign(x), Foreign(x, "float32"), memoryview(x), memoryview(frozen),
                 memoryview(x.tobytes()).cast("f", (16, 64))):
        assert libmx.quantize(same, "mxfp4").codes.tobytes() == expected
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        assert libmx.quantize(Foreign(frozen), "mxfp4").codes.tobytes() == expected
    else:  # has no DLPack 1, which alone can say that memory is read-only
        with pytest.raises(libmx.Error, match="read-only"):
            libmx.quantize(Foreign(frozen), "mxfp4")
    assert libmx.quantize(Foreign(np.asfortranarray(x)), "mxfp4").codes.tobytes() == expected
    flat = libmx.quantize(array.array("f", x.ravel()), "mxfp4")
    assert flat.codes.tobytes() == libmx.quantize(x.ravel(), "mxfp4").codes.tobytes()
    with pytest.raises(libmx.Error, match="complex64"):
        libmx.quantize(Foreign(np.ones(4, np.complex64)), "mxfp4")


def test_nothing_is_copied():
    # The address that C++ reads is that of the array: a change shows through a view.
    from libmx._arrays import as_view
    x = np.zeros((4, 32), np.float32)
    v = as_view(x[:, ::-1], "x")
    x[1, 31] = 5
    assert v.values()[1, 0] == 5
    q = libmx.quantize(x, "mxfp8")
    assert pickle.loads(pickle.dumps(q)).dequantize().tobytes() == q.dequantize().tobytes()
    q.elements[1, 31] = 0
    assert q.dequantize()[1, 31] == 0


def test_edges():
    assert libmx.quantize(np.zeros((0, 32), np.float32), "mxfp4").codes.size == 0
    assert libmx.fake_quantize(np.float32(1.5).reshape(()), "mxfp8").shape == ()
    x = values((4, 64))
    out = np.empty_like(x)
    assert libmx.fake_quantize(x, "mxfp4", out=out) is out
    np.testing.assert_array_equal(out, libmx.fake_quantize(x, "mxfp4"))
    libmx.fake_quantize(out, "mxfp4", out=out)
    codes, scales = libmx.quantize(x, "mxfp4")
    assert codes.size == x.size // 2 and scales.shape == (4, 2)
    r = libmx.recipe("mxfp4:scale=even")
    assert pickle.loads(pickle.dumps(r)) == r and {r: 1}[libmx.recipe(str(r))] == 1
    e = libmx.cast(np.array([1.06, 1e9, np.nan], np.float32), "e4m3")
    assert e[0] == 1.0 and e[1] == 448 and np.isnan(e[2])
    assert "e2m1" in libmx.formats() and "torchao" in libmx.dialects()


@pytest.mark.parametrize("call", [
    lambda: libmx.recipe("mxfp5"),
    lambda: libmx.quantize(np.array(["a"]), "mxfp4"),
    lambda: libmx.quantize(np.ones(4, np.complex64), "mxfp4"),
    lambda: libmx.quantize(np.ones(4, ">f4"), "mxfp4"),
    lambda: libmx.quantize(object(), "mxfp4"),
    lambda: libmx.quantize([1.0, 2.0], "mxfp4"),
    lambda: libmx.quantize(np.ones(32, np.longdouble), "mxfp4"),
    lambda: libmx.quantize(np.ones(32, bool), "mxfp4"),
    lambda: libmx.quantize(type("DataFrame", (), {"__array__": lambda s, *_, **__: np.ones(32)})(), "mxfp4"),
    lambda: libmx.quantize(np.ones(32, np.float32), None),
    lambda: libmx.fake_quantize(np.ones(32, np.float32), ["mxfp4"]),
    lambda: libmx.recipe(None),
    lambda: libmx.analyze({"x": np.ones(32, np.float32)}, [None]),
    lambda: libmx.statistics(3),
    lambda: libmx.cast(np.ones(4, np.float32), "e9m9"),
    lambda: libmx.cast(np.ones(4, np.float32), "e4m3", round="sideways"),
    lambda: libmx.fake_quantize(np.ones(4, np.float32), "mxfp4", out=np.ones(5, np.float32)),
    lambda: libmx.open("/nowhere.safetensors"),
    lambda: libmx.matmul(np.ones(4, np.float32), np.ones(4, np.float32), "mxfp8"),
])
def test_refusals(call):
    with pytest.raises(libmx.Error) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(b"\xff" * 64)
    with pytest.raises(libmx.Error) as caught:
        libmx.open(path)
    assert caught.value.kind == "input" and caught.value.file == str(path)


MODELS = {
    "mxfp8": ["exact", "fp32.fma", "fp32.pairwise", "sm100.mxf8f6f4", "sm120.mxf8f6f4"],
    "mxfp8_e5m2": ["sm100.mxf8f6f4"],
    "mxfp6": ["sm100.mxf8f6f4"],
    "mxfp4": ["sm100.mxf4", "sm120.mxf4", "sm100.mxf8f6f4", "bf16.fma"],
    "nvfp4": ["sm100.mxf4nvf4", "sm120.mxf4nvf4", "exact"],
    "nvfp4:outer=row": ["sm100.mxf4nvf4", "fp32.fma"],
}


@pytest.mark.parametrize("recipe, model", [(r, m) for r, ms in MODELS.items() for m in ms])
def test_products_of_the_command(mx, tmp_path, recipe, model):
    a, b = values((24, 256), 1), values((256, 40), 2)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    subprocess.run([mx, "gemm", tmp_path / "a.npy", tmp_path / "b.npy", "-r", recipe, "-m", model,
                    "-o", tmp_path / "d.npy", "-q"], check=True)
    expected = np.load(tmp_path / "d.npy")
    assert libmx.matmul(a, b, recipe, accumulate=model).tobytes() == expected.tobytes()
    half = a.astype(np.float16), np.asfortranarray(b.astype(np.float16))
    wide = [x.astype(np.float32) for x in half]
    assert libmx.matmul(*half, (recipe, recipe), accumulate=model).tobytes() == libmx.matmul(
        *wide, recipe, accumulate=model).tobytes()


def test_products():
    a, b = values((8, 64), 1), values((64, 16), 2)
    y = libmx.matmul(a, b, "mxfp8", accumulate="exact")
    qa = libmx.fake_quantize(a, "mxfp8").astype(np.float64)
    qb = np.ascontiguousarray(libmx.fake_quantize(np.ascontiguousarray(b.T), "mxfp8").T)
    np.testing.assert_allclose(y, qa @ qb.astype(np.float64), rtol=1e-6)
    other = libmx.matmul(a, b, ("mxfp8", "mxfp4"), accumulate="sm100.mxf8f6f4")
    assert other.shape == (8, 16)
    for wrong in ((a, a), (a[0], b)):
        with pytest.raises(libmx.Error):
            libmx.matmul(*wrong, "mxfp8")
    with pytest.raises(libmx.Error, match="sm100"):
        libmx.matmul(a, b, "mxfp8", accumulate="sm100.mxf8f6f")


@pytest.mark.parametrize("recipe", ["mxfp4:block=16x16", "mxfp4:block=32x1", "mxfp8:block=4x8"])
def test_products_of_tiles_and_columns(recipe):
    """Blocks over several rows of an operand; b is quantized as its transpose, N x K."""
    x, y = values((64, 64)), values((64, 48), 2)
    a = libmx.fake_quantize(x, recipe).astype(np.float64)
    b = libmx.fake_quantize(np.ascontiguousarray(y.T), recipe).astype(np.float64).T
    assert np.array_equal(libmx.matmul(x, y, recipe), (a @ b).astype(np.float32))
    with pytest.raises(libmx.Error, match="leave axis out"):
        libmx.matmul(x, y, "mxfp8:axis=0")


def test_threads_do_not_matter():
    x = values((512, 512))
    one = libmx.quantize(x, "mxfp4:round=stochastic", threads=1)
    for threads in (2, 7):
        many = libmx.quantize(x, "mxfp4:round=stochastic", threads=threads)
        assert one.codes.tobytes() == many.codes.tobytes()


def test_python_threads():
    x = values((512, 512))
    expected = libmx.quantize(x, "mxfp8", threads=2).codes.tobytes()
    got = []
    workers = [threading.Thread(target=lambda: got.append(
        libmx.quantize(x, "mxfp8", threads=2).codes.tobytes())) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert got == [expected] * 4


@pytest.mark.skipif(libmx._libmx.threads != "std", reason="built with OpenMP")
def test_forks():
    import os
    x = values((512, 512))
    expected = libmx.quantize(x, "mxfp8", threads=2).codes.tobytes()
    for _ in range(int(os.environ.get("MX_FORKS", "20"))):
        child = os.fork()
        if child == 0:
            same = libmx.quantize(x, "mxfp8", threads=2).codes.tobytes() == expected
            os._exit(0 if same else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_recipes_do_not_answer_for_each_other():
    """What a thread keeps of its last recipe is of that recipe only: all of them in turn, and each in a
    thread of its own."""
    x = values((16, 96))
    recipes = ["mxfp8", "mxfp8:scale=even", "mxfp8:block=1x16", "mxfp8:axis=0", "mxfp8:round=stochastic",
               "mxfp8:round=stochastic,seed=1", "mxfp8:dialect=torchao", "mxfp8_e5m2", "mxfp4", "nvfp4",
               "nvfp4:scale=single-level", "mxfp4:transform=hadamard", "mxfp4:scale=search", "mxint4:offset=fp16"]
    alone = {}
    for r in recipes:
        t = threading.Thread(target=lambda: alone.update({r: libmx.fake_quantize(x, r)}))
        t.start()
        t.join()
    for a in recipes:
        for b in recipes:
            for r in (a, b):
                np.testing.assert_array_equal(libmx.fake_quantize(x, r), alone[r], err_msg=f"{r} of {a}, {b}")
