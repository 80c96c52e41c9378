# SPDX-License-Identifier: Apache-2.0
"""Histograms of codes and scales for TensorBoard and Weights & Biases: a bucket for each code. Elements
are counted by their signed magnitude code, which grows with the value: of E2M1, -7 to 7 for -6 to 6.
Of watched tensors, call one of these in the steps in which `watch` measures."""
from typing import Any, Dict

import numpy as np
from numpy.typing import NDArray

import libmx


def histograms(x: Any, recipe: str) -> Dict[str, NDArray[np.int64]]:
    """From "codes" and "scales" to the codes of the elements and of the scales of x."""
    q = libmx.quantize(x, recipe)
    sign = 1 << (8 * q.codes.size // q.elements.size - 1)
    magnitude = (q.elements & (sign - 1)).astype(np.int64)
    return {"codes": np.where(q.elements & sign, -magnitude, magnitude).reshape(-1),
            "scales": q.scales.astype(np.int64).reshape(-1)}


def _buckets(values: NDArray[np.int64]) -> Any:
    return np.arange(values.min(), values.max() + 2) - 0.5


def to_tensorboard(writer: Any, name: str, x: Any, recipe: str, step: int) -> None:
    """`writer`: torch.utils.tensorboard.SummaryWriter."""
    for part, values in histograms(x, recipe).items():
        writer.add_histogram(f"mx/{name}/{part}", values, step, bins=_buckets(values))


def to_wandb(run: Any, name: str, x: Any, recipe: str, step: int) -> None:
    """`run`: what wandb.init returns."""
    import wandb
    run.log({f"mx/{name}/{part}": wandb.Histogram(np_histogram=np.histogram(values, _buckets(values)))
             for part, values in histograms(x, recipe).items()}, step=step)
