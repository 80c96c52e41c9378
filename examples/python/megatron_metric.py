# SPDX-License-Identifier: Apache-2.0
"""A tensor metric for Megatron-LM (megatron/training/tensor_metrics): the share of blocks that the
recipe saturates, over all shards of a parameter, in the run. Register it beside those of
definitions.py; then `--tensor-metrics mx-saturated-blocks:50`.

Shards by rows of blocks count as the whole tensor does; a FlatShard that cuts a block counts each
part of it as a block."""
import torch
from megatron.training.tensor_metrics import LogicalReductionMetric

import libmx


class SaturatedBlocks(LogicalReductionMetric):
    name = "mx-saturated-blocks"
    source_kinds = frozenset({"parameter"})
    reduction_op = torch.distributed.ReduceOp.SUM

    def __init__(self, recipe: str = "mxfp8") -> None:
        self.recipe = libmx.recipe(recipe)

    def contribution(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sums of the local shard, which ranks add up: float64, one vector."""
        found = libmx.statistics(self.recipe)
        if tensor.numel() > 0:
            found.update(tensor.detach().cpu())
        return torch.as_tensor(found.to_sum_max()[0], device=tensor.device)

    def finalize(self, contribution: torch.Tensor) -> torch.Tensor:
        found = libmx.statistics(self.recipe)
        _, maxima = found.to_sum_max()  # of nothing: this figure needs the sums only
        found = libmx.Statistics.from_sum_max(self.recipe, contribution.cpu().numpy(), maxima)
        rate = found.record()["saturated_block_rate"]
        return torch.tensor(float("nan") if rate is None else rate, device=contribution.device)
