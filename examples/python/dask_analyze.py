# SPDX-License-Identifier: Apache-2.0
"""A checkpoint on a shared file system, analysed by the workers of a Dask cluster, or by processes
of this machine where none is connected:

    python dask_analyze.py model.safetensors results.json mxfp8 mxfp4:scale=even
"""
import sys
from typing import Sequence

import dask

import libmx
from parts import analyze_part, together


def analyze(path: str, recipes: Sequence[str], n: int) -> libmx.Analysis:
    """`n` parts: several times as many as there are workers, so that none waits long."""
    task = dask.delayed(analyze_part)
    parts = dask.compute(*(task(path, recipes, i, n) for i in range(n)), scheduler="processes")
    return together(path, parts)


if __name__ == "__main__":
    analyze(sys.argv[1], sys.argv[3:], 16).save(sys.argv[2])
