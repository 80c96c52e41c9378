# SPDX-License-Identifier: Apache-2.0
"""Writes files with other people's packages and compares what mx reads with what was written.

A script with_NAME.py calls need() for its packages, writes into scratch(), and calls check() with
the file and, for each tensor, dtype, shape, stored bytes and values. Exit codes: 0 fine, 1 a
difference, 77 a package is missing.
"""
import atexit
import importlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
problems = []
folder = None
compared = {"files": 0, "tensors": 0}


def skip(reason):
    print("skipped: " + reason)
    sys.exit(SKIPPED)


def need(*modules):
    """Imports each of them; one that is missing or does not load ends the script as skipped."""
    loaded = []
    for name in modules:
        try:
            loaded.append(importlib.import_module(name))
        except Exception as problem:  # a package for another NumPy fails in its own ways
            skip(f"{name} cannot be imported ({problem})".splitlines()[0])
    for module in loaded:
        if hasattr(module, "__version__"):
            print(module.__name__, module.__version__)
    return loaded[0] if len(loaded) == 1 else loaded


def scratch():
    """The script's folder, which is gone afterwards."""
    global folder
    if folder is None:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="mx-interop."))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def read(path, bare):
    """What mx sees: name -> (dtype, shape, note, bytes, values as bytes of float32)."""
    out = scratch() / "dump"
    command = [sys.argv[1], str(path), str(out)] + ([bare] if bare else [])
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        problems.append(f"{path.name}: not read: {done.stderr.strip()}")
        return None
    content = out.read_bytes()
    tensors, at = {}, 0
    for entry in json.loads(done.stdout):
        stored = content[at:at + entry["bytes"]]
        at += entry["bytes"]
        values = content[at:at + entry["values"]]
        at += entry["values"]
        tensors[entry["name"]] = (entry["dtype"], tuple(entry["shape"]), entry["note"], stored,
                                  values)
    return tensors


def trial(content, name):
    """What mx says to a file of these bytes: its error, or nothing."""
    path = scratch() / name
    path.write_bytes(content)
    done = subprocess.run([sys.argv[1], str(path), str(scratch() / "dump")], capture_output=True,
                          text=True)
    return done.stderr


class Expected:
    """A tensor as it should be read. `values` (a float32 array) is left out where mx does not take
    the dtype for numbers; `note` is a part of the reason why a tensor is listed only."""

    def __init__(self, dtype, shape, stored=None, values=None, note=None):
        self.dtype, self.shape, self.stored = dtype, tuple(shape), stored
        self.values, self.note = values, note


def same_values(found, expected):
    """Bit for bit; a NaN may carry any payload."""
    import numpy as np
    found = np.frombuffer(found, "<f4")
    expected = np.ascontiguousarray(expected, "<f4").reshape(-1)
    if found.shape != expected.shape:
        return False
    numbers = ~np.isnan(expected)
    return (np.array_equal(np.isnan(found), ~numbers) and
            np.array_equal(found[numbers].view("<u4"), expected[numbers].view("<u4")))


def difference(found, expected):
    dtype, shape, note, stored, values = found
    if dtype != expected.dtype:
        return f"dtype {dtype} instead of {expected.dtype}"
    if expected.note is not None:
        return None if expected.note in note else f"the note is '{note}'"
    if note:
        return f"not read: {note}"
    if shape != expected.shape:
        return f"shape {shape} instead of {expected.shape}"
    if expected.stored is not None and stored != expected.stored:
        return "other bytes"
    if expected.values is not None and not same_values(values, expected.values):
        return "other values"
    return None


def check(path, expected, bare=None):
    """Compares the file with `expected` (name -> Expected), which is all that may be in it. `bare`
    says what bare bytes are, as --as does."""
    found = read(path, bare)
    if found is None:
        return
    compared["files"] += 1
    for name, tensor in expected.items():
        compared["tensors"] += 1
        problem = difference(found[name], tensor) if name in found else "not listed"
        if problem:
            problems.append(f"{path.name}: {name}: {problem}")
    for name in found.keys() - expected.keys():
        problems.append(f"{path.name}: {name}: listed, but was not written")


def finish():
    for problem in problems:
        print(problem)
    print("{files} files, {tensors} tensors".format(**compared), len(problems), "differences")
    sys.exit(1 if problems or compared["tensors"] == 0 else 0)
