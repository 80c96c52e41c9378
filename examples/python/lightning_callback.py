# SPDX-License-Identifier: Apache-2.0
"""A callback for Lightning: Trainer(callbacks=[MxCallback(["mxfp8", "mxfp4"])])."""
from typing import Any, Sequence

import lightning.pytorch as pl

import libmx.torch as mxt


class MxCallback(pl.Callback):
    """Logs what every `every`-th optimizer step did to weights, activations and gradients."""

    def __init__(self, recipes: Sequence[str], every: int = 50) -> None:
        self.recipes, self.every, self.steps = recipes, every, 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.watch = mxt.watch(pl_module, self.recipes, every=self.every,
                               step=trainer.global_step + 1)
        self.norms = mxt.watch_norms(pl_module, self.recipes)  # warns of norms that will clamp

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any,
                           batch: Any, batch_idx: int) -> None:
        if trainer.global_step == self.steps:
            return  # a part of a batch: gradients accumulate
        self.steps = trainer.global_step
        pl_module.log_dict(dict(self.watch.scalars(self.steps)))
        self.norms.step(self.steps)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.watch.close()
