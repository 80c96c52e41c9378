# SPDX-License-Identifier: Apache-2.0
"""What becomes of arrays: equal bytes with the command, for every way an array can lie in memory."""
import json
import pickle
import subprocess
import threading

import ml_dtypes
import numpy as np
import pytest

import libmx

RECIPES = [
    "mxfp8", "mxfp8:scale=rceil", "mxfp6", "mxfp6_e2m3", "mxfp4:scale=even", "mxint8", "nvfp4",
    "mxfp4:block=16x16", "mxfp4:round=stochastic,seed=7", "mxfp4:dialect=torchao", "fp8_1x128",
    "mxfp4:offset=fp16", "mxfp4:transform=hadamard",
]


def values(shape, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * np.exp(2 * rng.standard_normal(shape))
    return x.astype(np.float32)


def known(recipe):
    try:
        return libmx.recipe(recipe)
    except libmx.Error:
        return None


@pytest.mark.parametrize("recipe", [r for r in RECIPES if known(r)])
def test_same_as_the_command(mx, tmp_path, recipe):
    x = values((64, 160))
    np.save(tmp_path / "x.npy", x)
    packed, back = tmp_path / "p.safetensors", tmp_path / "v.safetensors"
    run = lambda *a: subprocess.run([mx, *map(str, a), "-q"], check=True)
    run("quantize", tmp_path / "x.npy", "-r", recipe, "--packed", "-o", packed)
    run("quantize", tmp_path / "x.npy", "-r", recipe, "-o", back)
    with libmx.open(tmp_path / "x.npy") as m:
        name = m.keys()[0]
    stored = parts(packed)
    q = libmx.quantize(x, recipe, name=name)
    by_part = {key.rpartition(".")[2]: bytes for key, bytes in stored.items()}
    assert q.codes.tobytes() == by_part["codes" if "codes" in by_part else name]
    assert q.scales.tobytes() == by_part["scales"]
    if q.offsets is not None:
        assert q.offsets.tobytes() == by_part["offsets"]
    y = libmx.fake_quantize(x, recipe, name=name)
    assert y.tobytes() == next(iter(parts(back).values()))
    assert q.dequantize().tobytes() == y.tobytes() or "dialect" in recipe


def parts(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    return {k: data[8 + size + v["data_offsets"][0]:8 + size + v["data_offsets"][1]]
            for k, v in header.items() if k != "__metadata__"}


def test_analysis_is_that_of_the_command(mx, tmp_path):
    np.save(tmp_path / "x.npy", values((64, 160)))
    out = subprocess.run([mx, "analyze", str(tmp_path / "x.npy"), "-r", "mxfp4", "-r", "nvfp4",
                          "--json", "-", "-q"], check=True, capture_output=True).stdout
    expected = json.loads(out)["results"]
    got = libmx.analyze(tmp_path / "x.npy", ["mxfp4", "nvfp4"])
    assert got.records == expected
    (got.records[0]["tensor"] in str(got)) and got._repr_html_().startswith("<pre>")
    got.save(tmp_path / "a.json")
    subprocess.run([mx, "report", str(tmp_path / "a.json"), "-q", "--markdown",
                    str(tmp_path / "r.md")], check=True)


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


def test_sixteen_bit_results_are_rounded_once():
    bits = np.arange(1 << 16, dtype=np.uint16)
    for dtype in (np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)):
        x = bits.view(dtype).reshape(-1, 32)
        with np.errstate(all="ignore"):
            expected = libmx.fake_quantize(x.astype(np.float32), "mxfp8").astype(dtype)
            got = libmx.fake_quantize(x, "mxfp8")
        np.testing.assert_array_equal(got.view(np.uint16), expected.view(np.uint16))


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


def test_products():
    a, b = values((8, 64), 1), values((64, 16), 2)
    y = libmx.matmul(a, b, "mxfp8", accumulate="exact")
    qa = libmx.fake_quantize(a, "mxfp8").astype(np.float64)
    qb = np.ascontiguousarray(libmx.fake_quantize(np.ascontiguousarray(b.T), "mxfp8").T)
    np.testing.assert_allclose(y, qa @ qb.astype(np.float64), rtol=1e-6)
    other = libmx.matmul(a, b, ("mxfp8", "mxfp4"), accumulate="sm100.mxf8f6f4")
    assert other.shape == (8, 16)


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
