# SPDX-License-Identifier: Apache-2.0
"""The committed stub is what nanobind makes of the compiled module. `python3 test_stub.py` writes
it."""
import pathlib
import re
import subprocess
import sys
import tempfile

import pytest

import libmx

STUB = pathlib.Path(libmx.__file__).with_name("_libmx.pyi")
ERROR = """
class Error(ValueError):
    kind: str
    file: str | None
    tensor: str | None
    offset: int | None

class MissingFileError(Error, FileNotFoundError): ...

class ForbiddenFileError(Error, PermissionError): ...

"""


def generated():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "stub.pyi"
        subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "libmx._libmx", "-o",
                        path], check=True)
        text = path.read_text()
    # What nanobind cannot derive: the class of errors, which is Python's, and the contents of
    # containers.
    text = text.replace("from typing import Annotated\n", "from typing import Annotated, Any\n")
    text = re.sub(r"\nfrom libmx import \([^)]*\)\n\n\nthreads: str = .*\n",
                  "\nthreads: str\n" + ERROR, text)
    for bare, full in (("dict", "dict[str, Any]"), ("tuple", "tuple[Any, ...]"),
                       ("list", "list[Any]")):
        text = re.sub(rf"(: |-> ){bare}\b(?!\[)", rf"\g<1>{full}", text)
    text = re.sub(r"\bNDArray(?=[,\])])", "NDArray[Any]", text)
    return text.replace("-> object:", "-> NDArray[Any]:")


def test_stub_is_current():
    pytest.importorskip("nanobind")
    assert STUB.read_text() == generated()
    assert STUB.with_name("py.typed").exists()


if __name__ == "__main__":
    STUB.resolve().write_text(generated())
