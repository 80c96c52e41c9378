# SPDX-License-Identifier: Apache-2.0
"""Results in every floating-point environment of the caller: the same bytes, and it is as before."""
import contextlib
import ctypes
import platform

import numpy as np
import pytest

import libmx

MODES = {  # bits of MXCSR to set and to clear
    "results that are subnormal are zero": (0x8000, 0), "operands that are subnormal are zero": (0x40, 0),
    "up": (0x4000, 0), "down": (0x2000, 0), "towards zero": (0x6000, 0),
    "exceptions are signals": (0, 0x1f80),
}

# Magnitudes from subnormals to 2^30; more elements than a call handles in the caller's thread.
BITS = np.arange(160 * 128, dtype=np.uint32) * np.uint32(2654435761)
X = ((BITS & np.uint32(0x807fffff)) | ((BITS % np.uint32(157)) << np.uint32(23))).view(
    np.float32).reshape(160, 128)
SMALL = X[:8]
# The tensor scale of this one is subnormal.
TINY = np.full((4, 32), 2.0 ** -130, np.float32)


def statistics():
    s = libmx.statistics("mxfp8")
    s.update(X)
    return s.record(), s.to_sum_max()


def blocks(x, recipe):
    q = libmx.quantize(x, recipe, threads=2)
    return q.codes, q.scales, q.tensor_scale


def analyzed(source):
    return libmx.analyze(source, ["mxfp4", "nvfp4"], decompose=True, histograms=True, threads=2)._text


def with_wide_scales():
    q = libmx.quantize(X, "fp8_1x128")
    q.scales = WIDE_SCALES
    with np.errstate(over="ignore"):
        return q.dequantize(), q.dequantize(np.float16), q.dequantize(np.float64)


WIDE = TINY.astype(np.float64)
WIDE_SCALES = libmx.quantize(X, "fp8_1x128").scales.astype(np.float64) * (1 + 2.0 ** -30)
HALF = np.float16([[1.1 ** i for i in range(64)]])
FILE = None
FUNCTIONS = {
    "recipe": lambda: str(libmx.recipe("nvfp4:outer=given:0.1")),
    "quantize": lambda: blocks(X, "nvfp4"),
    "quantize small": lambda: blocks(SMALL, "mxfp4:scale=rceil"),
    "round trip": lambda: libmx.quantize(TINY, "nvfp4").dequantize(),
    "fake_quantize": lambda: libmx.fake_quantize(X, "mxfp8", threads=2),
    "fake_quantize of half": lambda: libmx.fake_quantize(HALF, "mxint8"),
    "fake_quantize of double": lambda: libmx.fake_quantize(WIDE, "mxfp8", threads=2),
    "dequantize to other types": with_wide_scales,
    "cast": lambda: libmx.cast(X, "e5m2", threads=2),
    "matmul": lambda: libmx.matmul(SMALL, SMALL.T, "mxfp8", "fp32.fma"),
    "statistics": statistics,
    "analyze": lambda: analyzed({"x": X}),
    "compare": lambda: libmx.compare({"x": SMALL}, axes={"element": ["e4m3", "e2m1"]}, threads=2)._text,
    "cluster": lambda: libmx.cluster({"x": X}, "mxfp8", threads=2)._text,
    "values": lambda: libmx.open(FILE)["x"],
}


def exactly(result):
    """Results that can be compared. Not made in a mode: this computes."""
    if isinstance(result, tuple):
        return [exactly(r) for r in result]
    return result.tobytes() if isinstance(result, np.ndarray) else repr(result)


@contextlib.contextmanager
def mode(bits):
    if platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc":
        pytest.skip("only for x86-64 and the GNU C library")
    libm = ctypes.CDLL("libm.so.6")
    environment = (ctypes.c_uint32 * 8)()  # the last word is MXCSR
    libm.fegetenv(environment)
    old = environment[7]
    environment[7] = new = old & ~bits[1] | bits[0]
    libm.fesetenv(environment)
    try:
        yield
        libm.fegetenv(environment)
        after = environment[7]
    finally:
        environment[7] = old
        libm.fesetenv(environment)
    assert (after ^ new) & ~0x3f == 0  # but for flags: NumPy computes in these functions too


@pytest.fixture(scope="module", autouse=True)
def file(tmp_path_factory):
    global FILE
    FILE = str(tmp_path_factory.mktemp("modes") / "x.npz")
    np.savez(FILE, x=X.astype(np.float64) * (1 + 2.0 ** -30))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_callers_mode_changes_nothing(function):
    expected = exactly(FUNCTIONS[function]())
    different = []
    for name, bits in MODES.items():
        with mode(bits):
            found = FUNCTIONS[function]()
        if exactly(found) != expected:
            different.append(name)
    assert different == []


def test_flushed_subnormals_of_pytorch():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X.copy())
    wide = torch.from_numpy(WIDE.copy())
    one_op = torch.full((1,), 2.0 ** -130)

    def results():
        return [libmx.fake_quantize(of, "mxfp8", threads=2).numpy().tobytes() for of in (x, wide)] + [
            analyzed({"x": x})]

    expected = results()
    if not torch.set_flush_denormal(True):
        pytest.skip("not here")
    try:
        found = results()
        still = float((one_op * 1).item())
    finally:
        torch.set_flush_denormal(False)
    assert found == expected
    assert still == 0
