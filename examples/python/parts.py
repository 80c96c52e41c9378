# SPDX-License-Identifier: Apache-2.0
"""A checkpoint analysed in parts, on one machine or many: what Ray's and Dask's adapters share."""
from typing import Any, Dict, List, Sequence, Tuple

import libmx

Part = Tuple[List[Dict[str, Any]], List[Dict[str, str]]]


def analyze_part(path: str, recipes: Sequence[str], i: int, n: int) -> Part:
    """The records of the i-th of n parts, and what was left out. Tensors are dealt out largest
    first; only headers are read to know them."""
    with libmx.open(path) as model:
        size = {name: 1 for name in model.keys()}
        for name in size:
            for extent in model.view(name).shape:
                size[name] *= extent
    dealt = sorted(size, key=lambda name: (-size[name], name))[i::n]
    if not dealt:
        return [], []
    found = libmx.analyze(path, recipes, tensors=dealt, threads=1)
    return found.records, found.content["skipped"]


def together(path: str, parts: Sequence[Part]) -> libmx.Analysis:
    """All records in the order of the checkpoint, as one process has them."""
    with libmx.open(path) as model:
        place = {name: i for i, name in enumerate(model.keys())}
    records = sorted((r for part in parts for r in part[0]), key=lambda r: place[r["tensor"]])
    skipped = sorted((s for part in parts for s in part[1]), key=lambda s: place[s["tensor"]])
    return libmx.Analysis(records, skipped)
