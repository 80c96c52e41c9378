# SPDX-License-Identifier: Apache-2.0
"""libmx.torch: gradients against written-out references, bit for bit."""
import copy
import json
import pickle
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import libmx  # noqa: E402
import libmx.torch as mxt  # noqa: E402


def matrix(rows, cols, seed=0):
    return torch.randn(rows, cols, generator=torch.Generator().manual_seed(seed))


def q(x, recipe):
    return torch.from_numpy(libmx.fake_quantize(np.ascontiguousarray(x.detach().numpy()), recipe))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_tensors_are_read_as_they_are(dtype):
    x = matrix(32, 64).to(dtype)
    y = libmx.fake_quantize(x, "mxfp4")
    assert y.dtype == dtype
    assert torch.equal(y, q(x.float(), "mxfp4").to(dtype))
    assert torch.equal(libmx.fake_quantize(x.t(), "mxfp4"),
                       libmx.fake_quantize(x.t().contiguous(), "mxfp4"))
    assert torch.equal(libmx.fake_quantize(x.clone().requires_grad_(), "mxfp4"), y)


def test_straight_through():
    x = torch.tensor([[0.9375] * 31 + [1.0 - 2 ** -12]], requires_grad=True)
    y = mxt.fake_quantize(x, "mxfp8")
    y.sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))
    x.grad = None
    mxt.fake_quantize(x, "mxfp8", ste="clip").sum().backward()
    codes = libmx.quantize(x.detach().numpy(), "mxfp8").elements
    beyond = torch.from_numpy(codes == codes.max()) & (x.detach().abs() > y.detach().abs())
    assert torch.equal(x.grad, (~beyond).float()) and bool(beyond.any())
    with pytest.raises(libmx.Error):
        mxt.fake_quantize(x, "mxfp8", ste="sideways")


@pytest.mark.parametrize("operand", range(6))
def test_each_operand_of_linear(operand):
    recipes = [None] * 6
    recipes[operand] = "mxfp4"
    fx, fw, dy_, dw_, wy, wx = recipes
    config = mxt.LinearConfig(fprop=(fx, fw), dgrad=(dy_, dw_), wgrad=(wy, wx))
    layer = mxt.Linear(64, 32, config=config)
    x = matrix(96, 64, 1).requires_grad_()
    dy = matrix(96, 32, 2)
    y = layer(x)
    y.backward(dy)
    w = layer.weight.detach()
    use = lambda t, r: t if r is None else q(t, r)
    xd = x.detach()
    assert torch.equal(y.detach(), use(xd, fx) @ use(w, fw).t() + layer.bias.detach())
    assert torch.equal(x.grad, use(dy, dy_) @ use(w.t(), dw_).t())
    assert torch.equal(layer.weight.grad, use(dy.t(), wy) @ use(xd.t(), wx).t())
    assert torch.equal(layer.bias.grad, dy.sum(0))


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 32))


def test_conversion():
    m = model()
    before = m(matrix(4, 64))
    state = copy.deepcopy(m.state_dict())
    assert mxt.convert_(m, mxt.LinearConfig(), skip=["2"]) == ["0"]
    assert torch.equal(m(matrix(4, 64)), before)
    m.load_state_dict(state)
    mxt.convert_(m, mxt.LinearConfig(fprop="mxfp4", dgrad="mxfp8", wgrad="mxfp8"))
    after = m(matrix(4, 64))
    assert torch.equal(copy.deepcopy(m)(matrix(4, 64)), after)
    assert torch.equal(pickle.loads(pickle.dumps(m))(matrix(4, 64)), after)


def test_accumulator_models():
    config = mxt.LinearConfig(fprop="mxfp8", dgrad="mxfp8", wgrad="mxfp8", accumulate="exact")
    layer = mxt.Linear(64, 32, bias=False, config=config)
    x = matrix(32, 64, 3)
    y = layer(x).detach().numpy()
    assert np.array_equal(y, libmx.matmul(x.numpy(), layer.weight.detach().numpy().T, "mxfp8"))
    with pytest.raises(libmx.Error):
        mxt.LinearConfig(fprop="mxfp8", accumulate="exact")


def test_mx_specs():
    c = mxt.from_mx_specs({"w_elem_format": "fp8_e4m3", "a_elem_format": "fp4_e2m1",
                           "block_size": 32, "bfloat": 16, "custom_cuda": True})
    assert c.fprop[0].startswith("mxfp4") and c.fprop[1].startswith("mxfp8")
    assert "microxcaling" in c.dgrad[1]
    with pytest.raises(libmx.Error, match="shared_exp_method"):
        mxt.from_mx_specs({"w_elem_format": "fp8_e4m3", "shared_exp_method": "mean"})


def train(m, hooks, steps=4):
    tags = []
    optimizer = torch.optim.SGD(m.parameters(), lr=1e-2)
    for step in range(steps):
        optimizer.zero_grad()
        m(matrix(32, 64, step)).square().mean().backward()
        optimizer.step()
        tags.append(list(hooks(step)))
    return tags


def test_watch_measures_what_is_there(mx, tmp_path):
    m = model()
    w = mxt.watch(m, ["mxfp8", "mxfp4:scale=even"], every=2)
    tags = train(m, w.scalars)
    assert tags[0] and tags[2] and not tags[1] and not tags[3]
    names = {r["tensor"] for r in w.records}
    assert names == {f"{i}.{k}" for i in (0, 2) for k in ("input", "weight", "output.grad")}
    x = next(r for r in w.records if r["tensor"] == "0.input" and r["step"] == 2)
    alone = libmx.analyze({"0.input": matrix(32, 64, 2)}, x["recipe"]).records[0]
    assert {**alone, "step": 2} == x
    w.save(tmp_path / "w.json")
    subprocess.run([mx, "report", str(tmp_path / "w.json"), "-q", "--markdown",
                    str(tmp_path / "r.md")], check=True)
    w.close()


def test_captured_steps_are_checkpoints(tmp_path):
    m = model()
    with mxt.capture(m, str(tmp_path / "dumps"), steps=[1]) as c:
        train(m, lambda step: c.step() or [])
    with libmx.open(tmp_path / "dumps" / "step-1.safetensors") as dump:
        assert np.array_equal(dump["0.input"], matrix(32, 64, 1).numpy())
        assert len(dump) == 6


def test_checkpointing_counts_once():
    from torch.utils.checkpoint import checkpoint
    m = model()
    w = mxt.watch(m, ["mxfp8"], every=1)
    x = matrix(32, 64).requires_grad_()
    checkpoint(m, x).sum().backward()
    list(w.scalars())
    assert len(w.records) == 6
