# SPDX-License-Identifier: Apache-2.0
"""A checkpoint on a shared file system, analysed by the workers of a Ray cluster:

    python ray_analyze.py model.safetensors results.json mxfp8 mxfp4:scale=even
"""
import sys
from typing import Sequence

import ray

import libmx
from parts import analyze_part, together


def analyze(path: str, recipes: Sequence[str], n: int) -> libmx.Analysis:
    """`n` parts: several times as many as there are workers, so that none waits long."""
    task = ray.remote(analyze_part)
    return together(path, ray.get([task.remote(path, recipes, i, n) for i in range(n)]))


if __name__ == "__main__":
    analyze(sys.argv[1], sys.argv[3:], 64).save(sys.argv[2])
