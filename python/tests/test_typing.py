# SPDX-License-Identifier: Apache-2.0
"""The examples pass mypy --strict; the stub says what the module has."""
import ast
import os
import pathlib
import site
import subprocess
import sys

import pytest

import libmx

examples = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


def mypy(*arguments, tmp_path):
    pytest.importorskip("mypy")
    home = str(pathlib.Path(libmx.__file__).parents[1])
    # mypy finds an installed package by its py.typed, and refuses MYPYPATH for it.
    where = {} if home in site.getsitepackages() else {"MYPYPATH": home}
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True,
                          env={**os.environ, **where}, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not examples.exists(), reason="not in a checkout")
def test_examples_are_typed(tmp_path):
    mypy("mypy", "--config-file", examples / "mypy.ini", examples, tmp_path=tmp_path)


def test_the_package_is_typed(tmp_path):
    folder = pathlib.Path(libmx.__file__).parent
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n")
    mypy("mypy", "--config-file", "mypy.ini", *(folder / name for name in (
        "__init__.py", "_arrays.py", "_documents.py", "_libmx.pyi")), tmp_path=tmp_path)


CALLS = """
import numpy as np
import libmx
x = np.ones((2, 64), np.float32)
y: np.ndarray = libmx.fake_quantize(x, "mxfp8", axis=0)
codes, scales = libmx.quantize(memoryview(b""), libmx.recipe("mxfp4", block=(16, 16)))
libmx.analyze(x, ["mxfp8"]); libmx.analyze({"x": x}); libmx.analyze(["a.npy"]); libmx.analyze([x, x])
for r in libmx.analyze(x): r["tensor"]
libmx.quantize("not an array", "mxfp8")  # wrong
libmx.quantize(x, 8)  # wrong
libmx.quantize(x, "mxfp8", threads="2")  # wrong
libmx.quantize(x, "mxfp8", block=[16])  # wrong
libmx.analyze(3, "mxfp8")  # wrong
libmx.dequantize(x)  # wrong
"""


def test_calls_are_checked(tmp_path):
    (tmp_path / "calls.py").write_text(CALLS)
    (tmp_path / "mypy.ini").write_text("[mypy]\n[mypy-libmx.*]\nfollow_imports = silent\n")
    with pytest.raises(AssertionError) as raised:
        mypy("mypy", "--config-file", "mypy.ini", "calls.py", tmp_path=tmp_path)
    found = [int(line.split(":")[1]) for line in str(raised.value).splitlines() if ": error:" in line]
    wrong = [at for at, line in enumerate(CALLS.splitlines(), 1) if "# wrong" in line]
    assert found == wrong


def test_stub(tmp_path):
    """stubtest takes nanobind's functions and classes for objects of other kinds: of what is on
    both sides it can only say that. What a function takes is compared by making the stub anew."""
    from libmx import _libmx
    stub = pathlib.Path(libmx.__file__).with_name("_libmx.pyi")
    stated = {n.name for n in ast.parse(stub.read_text()).body if hasattr(n, "name")}
    kinds = [n for n in sorted(stated) if type(getattr(_libmx, n, None)).__name__[:3] == "nb_"]
    (tmp_path / "allowed").write_text("".join(rf"libmx\._libmx\.{n}(\..*)?" + "\n" for n in kinds))
    mypy("mypy.stubtest", "libmx._libmx", "--allowlist", "allowed", tmp_path=tmp_path)
