# SPDX-License-Identifier: Apache-2.0
"""Figures of sharded tensors for torchtitan: local statistics, one SUM and one MAX over ranks. Hand
the result to MetricsProcessor.log(..., extra_metrics=...)."""
from typing import Dict, Iterable, Tuple

import torch
import torch.distributed as dist

import libmx

FIGURES = ("sqnr_db", "underflow_rate", "saturated_block_rate")


def mx_metrics(parameters: Iterable[Tuple[str, torch.Tensor]], recipe: str,
               device: str = "cpu") -> Dict[str, float]:
    """Of model.named_parameters(): {mx/RECIPE/NAME/FIGURE: value}, the same on every rank, which
    has to hold the same names; its shard may be empty."""
    by, names, sums, maxima = libmx.recipe(recipe), [], [], []
    for name, x in parameters:
        local = getattr(x, "to_local", lambda: x)()  # of a DTensor
        found = libmx.statistics(by, name)
        if local.numel() > 0:
            found.update(local.detach().cpu())
        a, b = found.to_sum_max()
        names.append(name)
        sums.append(torch.as_tensor(a))
        maxima.append(torch.as_tensor(b))
    total, largest = torch.stack(sums).to(device), torch.stack(maxima).to(device)
    if dist.is_initialized():
        dist.all_reduce(total, dist.ReduceOp.SUM)
        dist.all_reduce(largest, dist.ReduceOp.MAX)
    metrics = {}
    for name, a, b in zip(names, total.cpu().numpy(), largest.cpu().numpy()):
        record = libmx.Statistics.from_sum_max(by, a, b, name).record()
        metrics.update({f"mx/{by}/{name}/{f}": record[f] for f in FIGURES if record[f] is not None})
    return metrics
