# SPDX-License-Identifier: Apache-2.0
"""The committed stub names what the compiled module has."""
import ast
import pathlib

import libmx
from libmx import _libmx


def test_stub_is_current():
    stub = pathlib.Path(libmx.__file__).with_name("_libmx.pyi")
    names = {n.name for n in ast.parse(stub.read_text()).body
             if isinstance(n, (ast.FunctionDef, ast.ClassDef))} | {"threads"}
    assert names == {n for n in vars(_libmx) if not n.startswith("__")}
    assert stub.with_name("py.typed").exists()
