# SPDX-License-Identifier: Apache-2.0
"""A compiled model trained with emulated MXFP8 under FSDP2 (PyTorch 2.6), measured in every process:

torchrun --standalone --nproc-per-node 2 examples/python/fsdp_training.py FOLDER"""
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import libmx.torch as mxt

folder = sys.argv[1]
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
model = nn.Sequential(nn.Linear(64, 128), nn.LayerNorm(128), nn.Linear(128, 64))
print(mxt.convert_(model, mxt.LinearConfig("mxfp8", "mxfp8", "mxfp8:scale=rceil")))
for part in [*model, model]:
    fully_shard(part, mesh=init_device_mesh("cpu", (world,)))
compiled: Any = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
with mxt.watch(model, ["mxfp8", "mxfp4"], every=2, log=f"{folder}/watch.jsonl") as w, \
        mxt.capture(model, f"{folder}/dumps", steps=[2]) as dumps:
    for step in range(4):
        x = torch.randn(32, 64) * (1 + rank)
        (compiled(x) - x.flip(-1)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        everyone: list[Any] = [None] * world
        dist.all_gather_object(everyone, w.statistics)
        for other in everyone[:rank] + everyone[rank + 1:]:
            w.merge(other)  # then figures are of the whole batch and of whole weights
        print(*w.scalars(step), sep="\n")
        dumps.step(step)
w.save(f"{folder}/figures.json")
dist.destroy_process_group()
