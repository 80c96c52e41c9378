# SPDX-License-Identifier: Apache-2.0
"""watch, watch_norms and capture follow a model through what training does to it."""
import copy
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import libmx  # noqa: E402
import libmx.torch as mxt  # noqa: E402


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 32))


def train(m, seed=0):
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(seed))
    m(x).square().mean().backward()


def measured(every, told, **more):
    m = model()
    w = mxt.watch(m, "mxfp8", every=every, tensors="weight", layers="0", **more)
    found = []
    for at in told:
        train(m)
        if list(w.scalars(at)):
            found.append(w.records[0]["step"])
    return found


def test_steps_are_those_that_the_caller_counts():
    assert measured(50, range(49, 102), step=49) == [50, 100]
    assert measured(50, range(49, 102)) == [50, 100]
    assert measured(2, range(1, 6)) == [2, 4]
    assert measured(2, [None] * 4) == [0, 2]
    assert measured(2, [None] * 4, step=3) == [4, 6]
    assert measured(50, range(8, 120, 8)) == [56, 104]  # the first ones after a multiple
    assert measured(2, [3, 4, 1, 2]) == [4, 2]  # a run that went back to a checkpoint
    with pytest.raises(libmx.Error, match="every=0"):
        mxt.watch(model(), "mxfp8", every=0)


def test_norms_and_dumps_are_of_the_step_that_they_are_told(tmp_path):
    m = model()
    norms = mxt.watch_norms(m, "mxfp8", every=10)
    found = []
    for at in range(9, 31):
        norms.records = []
        norms.step(at)
        found += [at] if norms.records else []
    assert found == [10, 20, 30]
    with mxt.capture(m, tmp_path, steps=[7], step=6) as c:
        for at in (6, 7, 8):
            train(m, at)
            c.step(at)
    assert [p.name for p in tmp_path.iterdir()] == ["step-7.safetensors"]
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(7))
    with libmx.open(tmp_path / "step-7.safetensors") as dump:
        assert np.array_equal(dump["0.input"], x.numpy())
    train(m)
    assert not c._found


def test_memory_is_bounded_and_a_log_has_the_rest(tmp_path):
    m = model()
    with mxt.watch(m, ["mxfp8", "mxfp4"], every=1, log=tmp_path / "w.jsonl") as w:
        for step in range(3):
            train(m, step)
            assert list(w.scalars(step))
        assert len(w.records) == 2 * 7 and {r["step"] for r in w.records} == {2}
    lines = [json.loads(line) for line in (tmp_path / "w.jsonl").read_text().splitlines()]
    assert len(lines) == 3 * 2 * 7 and {r["step"] for r in lines} == {0, 1, 2}
    assert lines[-14:] == json.loads(json.dumps(w.records))
    train(m)
    assert not w.statistics  # the hooks are gone


def test_copies_of_a_watched_model_are_not_watched():
    m = model()
    w = mxt.watch(m, "mxfp8", every=1, tensors=["activation"])
    train(m)
    before = w.statistics["0.input", str(w.recipes[0])].record()
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        train(other)
        assert w.statistics["0.input", str(w.recipes[0])].record() == before
    for other in (copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        train(m)
        assert other.statistics["0.input", str(w.recipes[0])].record() == before
        assert [tag for tag, _ in other.scalars()]
        other.close()
    norms = mxt.watch_norms(m, "mxfp8")
    norms.step()
    assert pickle.loads(pickle.dumps(norms)).records == norms.records


def test_parameters_that_replace_others_are_measured():
    m = model()
    with mxt.watch(m, "mxfp8", every=1, tensors="weight") as w:
        norms = mxt.watch_norms(m, "mxfp8")
        for name in ("0", "1", "2"):  # what load_state_dict(assign=True) and FSDP do
            layer = m.get_submodule(name)
            layer.weight = nn.Parameter(torch.full_like(layer.weight, 16.5))
        train(m)
        list(w.scalars())
        norms.step()
    expected = libmx.analyze({"1.weight": m[1].weight}, "mxfp8").records[0]
    assert expected["sqnr_db"] != libmx.analyze({"w": torch.ones(64)}, "mxfp8").records[0]["sqnr_db"]
    assert norms.records[0] == expected
    (watched,) = [r for r in w.records if r["tensor"] == "1.weight"]
    assert watched["sqnr_db"] == expected["sqnr_db"]


def test_replicas_count_once_in_a_merge():
    ranks = []
    for seed in range(3):
        m = model()
        ranks.append(mxt.watch(m, "mxfp8", every=1))
        train(m, seed)
    part = mxt.watch(model(), "mxfp8", every=1)  # as if of a weight cut by tensor parallelism
    part._take("weight", "0.weight", torch.randn(16, 64))
    for other in (ranks[1], ranks[2], part):
        ranks[0].merge(other.statistics)
    list(ranks[0].scalars())
    elements = {r["tensor"]: r["elements"] for r in ranks[0].records}
    assert elements == {"0.weight": 64 * 64 + 16 * 64, "1.weight": 64, "2.weight": 64 * 32,
                        "0.input": 3 * 8 * 64, "2.input": 3 * 8 * 64, "0.output.grad": 3 * 8 * 64,
                        "2.output.grad": 3 * 8 * 32}
    list(ranks[1].scalars())
    assert ranks[1].records[0]["elements"] == 64 * 64  # a merge changes nothing of the other


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="PyTorch before 2.0")
@pytest.mark.parametrize("before", [True, False])
def test_compiled_models(before):
    m = model()
    compiled = torch.compile(m, backend="aot_eager")
    if not before:
        train(compiled)
    plain = model()
    with mxt.watch(m, "mxfp8", every=1) as w, mxt.watch(plain, "mxfp8", every=1) as expected:
        for _ in range(2):
            train(compiled)
            train(plain)
            assert list(w.scalars()) == list(expected.scalars()) and w.records
    train(compiled)
    assert not list(w.scalars())


def test_what_is_not_measured_is_logged(caplog):
    m = nn.ModuleDict({"layer": nn.TransformerEncoderLayer(64, 4, 64), "words": nn.Embedding(3, 64),
                       "conv": nn.Conv1d(2, 2, 3)})
    mxt.watch(m, "mxfp8", layers="linear*")
    assert not caplog.records
    mxt.watch(m, "mxfp8")
    (said,) = [r.getMessage() for r in caplog.records]
    assert said.startswith("not measured: layer.self_attn, layer.self_attn.out_proj, conv: of attention")


class Experts(nn.Module):
    """Four stacked matrices as (E, K, N), and their transposes as (E, N, K)."""

    def __init__(self, loop):
        super().__init__()
        self.loop = loop
        self.up = nn.Parameter(torch.randn(4, 64, 32) / 8)
        self.down = nn.Parameter(torch.randn(4, 64, 32) / 8)

    def forward(self, x):
        if self.loop:
            x = torch.stack([x[e] @ self.up[e] for e in range(4)])
            return torch.stack([nn.functional.linear(x[e], self.down[e]) for e in range(4)])
        return torch.bmm(torch.bmm(x, self.up), self.down.transpose(-2, -1))


@pytest.mark.parametrize("config", [mxt.LinearConfig(), mxt.LinearConfig("mxfp8")])
@pytest.mark.parametrize("loop", [True, False])
def test_products_of_experts(loop, config, tmp_path):
    torch.manual_seed(0)
    m = nn.ModuleDict({"experts": Experts(loop)})
    x = torch.randn(4, 8, 64)
    before = m["experts"](x)
    mxt.convert_(m, config)
    with mxt.watch(m, "mxfp4", every=1) as w, mxt.capture(m, tmp_path, [0]) as c:
        y = m["experts"](x)
        assert torch.equal(y, before) or config.fprop[0]
        y.square().sum().backward()
        list(w.scalars())
        c.step()
        expected = {
            "experts.up": m["experts"]._parameters["up"].transpose(-2, -1),
            "experts.up.input": x, "experts.down": m["experts"]._parameters["down"]}
        found = {r["tensor"]: r for r in w.records}
        assert set(found) == set(expected) | {"experts.up.output.grad", "experts.down.input",
                                              "experts.down.output.grad"}
        for name, tensor in expected.items():
            s = libmx.statistics("mxfp4", name)
            s.update(tensor)
            figures = ("elements", "sqnr_db", "underflow_rate")
            assert [found[name][f] for f in figures] == [s.record()[f] for f in figures]
        assert found["experts.down.output.grad"]["elements"] == y.numel()
        for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
            assert torch.equal(other["experts"](x), y) and not w.statistics
    with libmx.open(tmp_path / "step-0.safetensors") as dump:
        assert set(dump) == set(found)
        assert np.array_equal(dump["experts.up"], expected["experts.up"].detach().numpy())
    m["experts"](x)
    assert not w.statistics


def test_projections_of_attention():
    torch.manual_seed(0)
    m = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.)
    mxt.convert_(m, mxt.LinearConfig())
    x = torch.randn(2, 8, 64)
    with mxt.watch(m, "mxfp8", every=1) as w:
        m(x).square().sum().backward()
        list(w.scalars())
    elements = {r["tensor"]: r["elements"] for r in w.records if "attn" in r["tensor"]}
    assert elements == {
        "self_attn.in_proj_weight": 3 * 64 * 64, "self_attn.in_proj_weight.input": x.numel(),
        "self_attn.in_proj_weight.output.grad": 3 * x.numel(), "self_attn.out_proj.weight": 64 * 64,
        "self_attn.out_proj.input": x.numel(), "self_attn.out_proj.output.grad": x.numel()}
    gradients = [p.grad.clone() for p in m.parameters()]
    m.zero_grad()
    if hasattr(torch, "compile"):
        with mxt.watch(m, "mxfp8", every=1) as w:
            torch.compile(m, backend="aot_eager")(x).square().sum().backward()
            list(w.scalars())
        assert {r["tensor"]: r["elements"] for r in w.records if "attn" in r["tensor"]} == elements
        assert all(torch.equal(p.grad, g) for p, g in zip(m.parameters(), gradients))


def test_a_failed_save_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError):
        mxt.save(tmp_path / "x.safetensors", {"x": torch.ones(3)})
    assert not list(tmp_path.iterdir())


JOB = '''
import sys, torch, torch.distributed as dist
import libmx.torch as mxt
from torch import nn
rank, leaf, compiled = int(sys.argv[1]), sys.argv[2] == "True", sys.argv[3] == "True"
try:
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.device_mesh import init_device_mesh
except Exception:
    sys.exit(77)
dist.init_process_group("gloo", store=dist.FileStore("store", 2), rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
torch.manual_seed(0)
m = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 32))
mxt.convert_(m, mxt.LinearConfig("mxfp8", "mxfp8", "mxfp8"))
norms = mxt.watch_norms(m, "mxfp8")
for part in [*m, m] if leaf else [m]:
    fully_shard(part, mesh=mesh)
f = torch.compile(m, backend="aot_eager") if compiled else m
with mxt.watch(m, "mxfp8", every=1, log="w.jsonl") as w, mxt.capture(m, "dumps", [1]) as c:
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
    for step in range(2):
        f(torch.randn(8, 64)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        everyone = [None, None]
        dist.all_gather_object(everyone, w.statistics)
        w.merge(everyone[1 - rank])
        assert list(w.scalars(step))
        c.step(step)
        norms.step(step)
w.save("w.json")
elements = {r["tensor"]: r["elements"] for r in w.records}
assert elements == {"0.weight": 4096, "0.input": 1024, "1.weight": 64, "2.weight": 2048, "2.input": 1024,
                    "2.output.grad": 512, "0.output.grad": 1024}, elements
assert norms.records[0]["elements"] == 32
dist.barrier()
dist.destroy_process_group()
'''


@pytest.mark.parametrize("leaf,compiled", [(False, False), (True, False), (True, True)])
def test_two_ranks_of_fsdp(leaf, compiled, tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    ranks = [subprocess.Popen([sys.executable, "job.py", str(rank), str(leaf), str(compiled)],
                              cwd=tmp_path, stderr=subprocess.PIPE, text=True) for rank in (0, 1)]
    said = [rank.communicate(timeout=500)[1] for rank in ranks]
    if ranks[0].returncode == 77:
        pytest.skip("no fully_shard")
    assert [rank.returncode for rank in ranks] == [0, 0], said
    written = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.*")} - {"job.py"}
    assert written == {"w.json", "w.jsonl", "rank-1/w.json", "rank-1/w.jsonl",
                       "dumps/step-1.safetensors", "dumps/rank-1/step-1.safetensors"}
    parts = []
    for folder in ("dumps", "dumps/rank-1"):
        with libmx.open(tmp_path / folder / "step-1.safetensors") as dump:
            parts.append(dump["0.weight"])
    if leaf:
        assert [p.shape for p in parts] == [(32, 64)] * 2
    else:
        assert np.array_equal(*parts) and parts[0].shape == (64, 64)
