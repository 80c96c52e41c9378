# SPDX-License-Identifier: Apache-2.0
"""A checkpoint on a shared file system, analysed by the workers of a Dask cluster, or by processes
of this machine where none is connected:

    python dask_analyze.py model.safetensors results.json mxfp8 mxfp4:scale=even
"""
import sys
from typing import Sequence

from dask.delayed import delayed

import libmx
from parts import analyze_part, together


def analyze(path: str, recipes: Sequence[str], n: int) -> libmx.Analysis:
    """`n` parts: several times as many as there are workers, so that none waits long."""
    parts = delayed(list)([delayed(analyze_part)(path, recipes, i, n) for i in range(n)])
    return together(path, parts.compute(scheduler="processes"))


if __name__ == "__main__":
    analyze(sys.argv[1], sys.argv[3:], 16).save(sys.argv[2])
