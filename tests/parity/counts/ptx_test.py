#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic in the PTX of every CUDA source that would not give the bits of the CPU: subnormals that are flushed,
approximations, a product fused into an addition where the source does not say fma, and float operations without a
rounding, which a later compiler may fuse.

  ptx_test.py [--nvcc NVCC]     exit code 1 if there is any, 77 without nvcc"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# As cmake/mx_cuda.cmake compiles them; lines, to find what the source says.
FLAGS = ["-std=c++20", "-O3", "-DNDEBUG", "-fmad=false", "--expt-relaxed-constexpr", "-lineinfo", "-ptx"]
# Sources with instructions of some chips only.
ARCHITECTURES = {"narrow_instructions": "100f", "wgmma": "90a", "tcgen05": "100a", "convert_narrow": "100f",
                 "convert_stochastic": "100a", "mma_sync_scaled": "120f"}
FUSED = re.compile(r"(fma|mad)\.\S*f(16|32|64)|fma\.\S*bf16")


def faults(ptx, text_of):
    """(instruction, line of the source, reason) for each fault; text_of(file, line) is a line of the source."""
    files = {n: name for n, name in re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]+)"', ptx, re.M)}
    found, file, line = [], "", 0
    for row in ptx.splitlines():
        row = row.strip()
        where = re.match(r"\.loc\s+(\d+)\s+(\d+)", row)
        if where:
            file, line = files.get(where[1], ""), int(where[2])
            continue
        match = re.match(r"(?:@!?%p\d+\s+)?([a-z][\w.]*)\s", row)
        if not match:
            continue
        name, text = match[1], text_of(file, line)
        why = None
        if "fmod" in text:  # CUDA's library makes it of these; its result is exact
            continue
        if ".ftz" in name:
            why = "flushes subnormals"
        elif ".approx" in name or re.match(r"div\.full", name):
            why = "is an approximation"
        elif FUSED.match(name) and "fma" not in text:
            why = "is fused, and the source does not say fma"
        elif re.match(r"(add|sub|mul)\.f(32|64)$", name):
            why = "has no rounding, so it may be fused"
        if why:
            found.append((name, f"{file}:{line}", why))
    return found


def text_of(file, line, kept={}):
    if file not in kept:
        try:
            kept[file] = Path(file).read_text(errors="replace").splitlines()
        except OSError:
            kept[file] = []
    return kept[file][line - 1] if 0 < line <= len(kept[file]) else ""


def ptx_of(nvcc, source, flags, folder):
    """The PTX of a source, or an error."""
    to = Path(folder) / (re.sub(r"\W", "-", str(source)) + ".ptx")
    arch = ARCHITECTURES.get(Path(source).stem, "90")
    made = subprocess.run([nvcc, *flags, f"-arch=compute_{arch}", f"-I{ROOT}", source, "-o", to], capture_output=True,
                          text=True, check=False)
    if made.returncode != 0:
        raise SystemExit(f"{source}: {made.stderr.strip()}")
    return to.read_text()


# Has faults under some flags, and with none of them: FMA in float64 is named.
SAMPLE = """
__global__ void sample(float* x, double* y) {
    x[0] = x[1] * x[2] + x[3];
    x[4] = x[5] / x[6];
    y[0] = __fma_rn(y[1], y[2], y[3]);
}
"""


def check_itself(nvcc, folder):
    source = Path(folder) / "sample.cu"
    source.write_text(SAMPLE)
    for flag, expected in ("-fmad=false", []), ("-ftz=true", ["flushes subnormals"]), \
            ("-prec-div=false", ["is an approximation"]), ("-fmad=true", ["is fused, and the source does not say fma"]):
        found = faults(ptx_of(nvcc, source, [*FLAGS, flag], folder), text_of)
        if sorted({why for _, _, why in found}) != expected:
            raise SystemExit(f"the sample with {flag} has {found}, but {expected} were expected")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", default=shutil.which("nvcc", path=f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin"))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args(arguments)
    if not options.nvcc:
        print("skipped: no nvcc")
        return 77
    sources = sorted([*ROOT.glob("libmx/*/cuda/*.cu"), *ROOT.glob("apps/mx_capture/cuda/*.cu")])
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        check_itself(options.nvcc, folder)
        made = pool.map(lambda source: ptx_of(options.nvcc, source, FLAGS, folder), sources)
        for source, ptx in zip(sources, made):
            found = faults(ptx, text_of)
            wrong += len(found)
            print(f"{source.relative_to(ROOT)}: {len(ptx.splitlines())} lines, {len(found)} faults", flush=True)
            for name, where, why in found[:10]:
                print(f"  {name} of {where} {why}")
    return 1 if wrong or not sources else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
