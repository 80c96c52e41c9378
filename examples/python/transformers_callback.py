# SPDX-License-Identifier: Apache-2.0
"""A callback for the Trainer of Hugging Face transformers:

    Trainer(..., callbacks=[MxCallback(["mxfp8", "mxfp4"], writer.add_scalar, "figures.json")])
"""
from typing import Any, Callable, Optional, Sequence

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

import libmx.torch as mxt


class MxCallback(TrainerCallback):
    """Hands (tag, value, step) to `write`, and saves mx.analysis/1 when training ends."""

    def __init__(self, recipes: Sequence[str], write: Callable[[str, float, int], Any],
                 path: Optional[str] = None, every: int = 50) -> None:
        self.recipes, self.write, self.path, self.every = recipes, write, path, every

    def on_train_begin(self, args: TrainingArguments, state: TrainerState,
                       control: TrainerControl, **kwargs: Any) -> None:
        self.watch = mxt.watch(kwargs["model"], self.recipes, every=self.every,
                               step=state.global_step + 1)

    def on_step_end(self, args: TrainingArguments, state: TrainerState,
                    control: TrainerControl, **kwargs: Any) -> None:
        for tag, value in self.watch.scalars(state.global_step):
            self.write(tag, value, state.global_step)

    def on_train_end(self, args: TrainingArguments, state: TrainerState,
                     control: TrainerControl, **kwargs: Any) -> None:
        if self.path is not None:
            self.watch.save(self.path)
        self.watch.close()
