# SPDX-License-Identifier: Apache-2.0
"""convert_ leaves nothing without a word: what it converts computes with the recipes, and what it cannot
convert is named."""
import copy
import logging
import pickle
import types

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.utils import parametrize  # noqa: E402

import libmx  # noqa: E402
import libmx.torch as mxt  # noqa: E402

CONFIG = mxt.LinearConfig("mxfp4", "mxfp8", "mxfp8")


def q(x, recipe="mxfp4"):
    return libmx.fake_quantize(x.detach(), recipe)


def quantized_linear(x, layer):
    return F.linear(q(x), q(layer.weight), layer.bias)


class Plain(nn.Linear):
    pass


class Own(nn.Linear):
    def forward(self, x):
        return F.linear(x, self.weight, self.bias) * 2


class Calling(nn.Linear):
    def forward(self, x):
        return super().forward(x) + 1


class Doubled(nn.Module):
    def forward(self, w):
        return 2 * w


@pytest.mark.parametrize("cls,after", [(nn.Linear, lambda y: y), (Plain, lambda y: y),
                                       (Own, lambda y: 2 * y), (Calling, lambda y: y + 1)])
def test_linear_layers_and_their_subclasses(cls, after):
    x = torch.randn(8, 64)
    layer = cls(64, 32)
    before, expected = layer(x), after(quantized_linear(x, layer))
    weight = layer.weight
    model = nn.ModuleDict({"a": layer})
    assert mxt.convert_(model, CONFIG) == ["a"] and isinstance(layer, cls)
    y = layer(x)
    assert torch.equal(y, expected) and not torch.equal(y, before)
    y.sum().backward()
    assert torch.equal(weight.grad, layer._parameters["weight"].grad) and list(layer.parameters())[0] is weight
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(x), y)
    assert mxt.convert_(model, None) == ["a"] and type(layer) is cls
    assert torch.equal(layer(x), before)


def test_parametrized_layers():
    x = torch.randn(8, 64)
    layer = nn.Linear(64, 32)
    parametrize.register_parametrization(layer, "weight", Doubled())
    model = nn.Sequential(layer)
    before = layer(x)
    done = mxt.convert_(model, CONFIG)
    assert done == ["0"] and not done.left
    expected = quantized_linear(x, layer)
    assert torch.equal(layer(x), expected)
    mxt.convert_(model, None)
    assert torch.equal(layer(x), before)
    mxt.convert_(model, CONFIG)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is mxt.Linear and torch.equal(layer(x), expected)
    own = Own(64, 32)
    parametrize.register_parametrization(own, "weight", Doubled())
    assert "parametrized" in mxt.convert_(nn.Sequential(own), CONFIG).left["0"]


@pytest.mark.parametrize("cls", [nn.Linear, Own])
def test_layers_whose_weight_is_computed_before_each_pass(cls, recwarn):
    layer, x = cls(64, 32), torch.randn(8, 64)
    nn.utils.weight_norm(layer)
    before = layer(x)
    assert mxt.convert_(nn.Sequential(layer), CONFIG) == ["0"]
    assert torch.equal(layer(x), quantized_linear(x, layer) * (2 if cls is Own else 1))
    mxt.convert_(nn.Sequential(layer), None)
    assert torch.equal(layer(x), before)


def test_weights_are_parameters_to_all_but_products(caplog):
    layer = Own(64, 32)
    mxt.convert_(nn.Sequential(layer), CONFIG)
    nn.init.xavier_uniform_(layer.weight)
    with torch.no_grad():
        layer.weight.mul_(2)
    layer.weight = nn.Parameter(torch.ones(32, 64))
    assert torch.equal(layer._parameters["weight"], torch.ones(32, 64))
    state = layer.state_dict()
    layer.load_state_dict({k: 2 * v for k, v in state.items()})
    assert list(state) == ["weight", "bias"] and float(layer.weight[0, 0]) == 2
    with pytest.raises(TypeError):
        layer.weight = torch.ones(32, 64)
    assert not [r for r in caplog.records if "not emulated" in r.getMessage()]


def test_a_second_conversion_replaces_the_first():
    x = torch.randn(8, 64)
    model = nn.Sequential(nn.Linear(64, 32))
    mxt.convert_(model, CONFIG)
    assert mxt.convert_(model, mxt.LinearConfig("mxfp8")) == ["0"]
    assert torch.equal(model(x), F.linear(q(x, "mxfp8"), q(model[0].weight, "mxfp8"), model[0].bias))
    mxt.convert_(model, None)
    assert type(model[0]) is nn.Linear and not hasattr(model[0], "mx_config")
    assert mxt.convert_(model, None) == []


def test_patterns():
    def model():
        return nn.ModuleDict({"head": nn.Linear(32, 32), "language_model": nn.ModuleDict({
            "lm_head": nn.Linear(32, 32), "up": nn.Linear(32, 32)})})
    assert mxt.convert_(model(), CONFIG) == ["head", "language_model.up"]
    done = mxt.convert_(model(), CONFIG, skip="head")
    assert done == ["language_model.lm_head", "language_model.up"]
    assert list(done.left) == ["head"]
    assert mxt.convert_(model(), CONFIG, skip="language_model.*") == ["head"]


def attention_by_hand(x, attention, heads, p):
    """Self-attention of x (batch, length, width) with quantized projections."""
    b, n, width = x.shape
    w = attention._parameters["in_proj_weight"]
    split = lambda t: t.reshape(b, n, heads, width // heads).transpose(1, 2)
    query, key, value = map(split, F.linear(p(x), p(w), attention.in_proj_bias).chunk(3, -1))
    weights = (query / (width // heads) ** 0.5 @ key.transpose(-2, -1)).softmax(-1)
    y = (weights @ value).transpose(1, 2).reshape(b, n, width)
    return F.linear(p(y), p(attention.out_proj._parameters["weight"]), attention.out_proj.bias)


@pytest.mark.parametrize("kdim", [None, 32])
def test_projections_of_attention(kdim):
    torch.manual_seed(1)
    attention = nn.MultiheadAttention(64, 4, batch_first=True, kdim=kdim, vdim=kdim).eval()
    model = nn.ModuleDict({"attn": attention})
    x = torch.randn(2, 8, 64)
    kv = x if kdim is None else torch.randn(2, 8, kdim)
    with torch.no_grad():
        before = attention(x, kv, kv)[0]
        done = mxt.convert_(model, CONFIG)
        assert done == ["attn", "attn.out_proj"] and not done.left
        y = attention(x, kv, kv)[0]
        assert not torch.allclose(y, before, atol=1e-3)
        if kdim is None:
            by_hand = attention_by_hand(x, attention, 4, q)
            assert torch.allclose(y, by_hand, atol=1e-3)
            assert not torch.allclose(before, by_hand, atol=1e-3)
    y = attention(x, kv, kv)[0]
    y.square().sum().backward()
    assert all(p.grad is not None for p in attention.parameters())
    mxt.convert_(model, None)
    with torch.no_grad():
        assert torch.equal(attention(x, kv, kv)[0], before)
    assert not mxt.convert_(model, CONFIG, skip="attn")


@pytest.mark.parametrize("skip", [(), "self_attn", "linear*"])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_encoders_do_not_skip_forward_passes(skip, mode):
    """In eval, PyTorch computes whole layers at once, from the parameters."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.)
    model = nn.TransformerEncoder(layer, 2).eval()
    z = torch.randn(2, 8, 64)
    mask = torch.zeros(2, 8, dtype=torch.bool)
    mask[:, 6:] = True
    with mode():
        before = model(z), model(z, src_key_padding_mask=mask)
    mxt.convert_(model, CONFIG, skip=skip)
    y = model(z)
    assert y.requires_grad
    with mode():
        assert not torch.equal(model(z), before[0])
        if skip != "self_attn":  # it computes in another order without gradients
            assert torch.equal(model(z), y)
        padded = model(z, src_key_padding_mask=mask)
        assert not torch.equal(padded[:, :6], before[1][:, :6])
    mxt.convert_(model, None)
    with mode():
        assert torch.equal(model(z), before[0])
        assert torch.equal(model(z, src_key_padding_mask=mask), before[1])


class Experts(nn.Module):
    def __init__(self, product):
        super().__init__()
        self.product = product
        self.down = nn.Parameter(torch.randn(4, 64, 32) / 8)  # (E, K, N)
        self.up = nn.Parameter(torch.randn(4, 32, 64) / 8)  # (E, N, K)

    def forward(self, x):
        return self.product(self, x)


def grouped(x, w):
    multiply = getattr(F, "grouped_mm", getattr(torch, "_grouped_mm", None))
    if multiply is None:
        pytest.skip("no grouped_mm")
    ends = torch.arange(8, 33, 8, dtype=torch.int32)
    return multiply(x.reshape(-1, 64).bfloat16(), w.bfloat16(), offs=ends).reshape(4, 8, 32)


@pytest.mark.parametrize("name,product", [
    ("down", lambda s, x: torch.bmm(x, s.down)), ("down", lambda s, x: x @ s.down),
    ("down", lambda s, x: torch.stack([x[e] @ s.down[e] for e in range(4)])),
    ("down", lambda s, x: torch.stack([torch.mm(a, b) for a, b in zip(x, s.down.unbind())])),
    ("down", lambda s, x: torch.baddbmm(torch.zeros(()), x, s.down)),
    ("up", lambda s, x: torch.stack([F.linear(x[e], s.up[e]) for e in range(4)])),
    ("up", lambda s, x: torch.stack([torch.addmm(torch.zeros(32), x[e], s.up[e].t())
                                     for e in range(4)])),
    ("up", lambda s, x: torch.matmul(x, s.up.transpose(-2, -1))), ("up", lambda s, x: x @ s.up.mT),
    ("up", lambda s, x: torch.bmm(s.up, x.mT).mT),
    ("down", lambda s, x: grouped(x, s.down)),
    ("up", lambda s, x: grouped(x, s.up.transpose(-2, -1)))])
def test_stacks_of_experts(name, product):
    model = nn.ModuleDict({"experts": Experts(product)})
    experts, x = model["experts"], torch.randn(4, 8, 64)
    before = experts(x)
    kind = before.dtype
    w = (experts.up.transpose(-2, -1) if name == "up" else experts.down).to(kind)
    assert mxt.convert_(model, CONFIG) == ["experts"]
    y = experts(x)
    assert torch.equal(y, torch.stack([F.linear(q(a), q(b.t())) for a, b in zip(x.to(kind), w)]))
    y.float().square().sum().backward()
    assert experts._parameters[name].grad.abs().sum() > 0
    assert torch.equal(copy.deepcopy(experts)(x), y)
    mxt.convert_(model, None)
    assert type(experts) is Experts and torch.equal(experts(x), before)
    done = mxt.convert_(model, CONFIG, weights=())
    assert "Experts is no linear layer; weights= takes patterns" in done.left["experts"]


def test_products_that_are_not_emulated_are_named(caplog):
    model = nn.ModuleDict({"experts": Experts(
        lambda s, x: torch.einsum("emk,ekn->emn", x, s.down) * s.up.detach().sum())})
    mxt.convert_(model, CONFIG)
    for _ in range(2):
        model["experts"](torch.randn(4, 8, 64))
    said = [r.getMessage() for r in caplog.records if "not emulated" in r.getMessage()]
    assert len(said) == 1 and "Experts.down: torch's einsum" in said[0]


def test_what_is_left_is_returned_and_logged(caplog):
    model = nn.ModuleDict({"conv": nn.Conv1d(2, 2, 3), "rnn": nn.LSTM(4, 4), "words": nn.Embedding(3, 4),
                           "lazy": nn.LazyLinear(3), "lm_head": nn.Linear(4, 3),
                           "norm": nn.LayerNorm(4), "up": nn.Linear(4, 4)})
    model["other"] = nn.Linear(64, 8)
    model["other"]._parameters["weight"] = torch.randn(8, 64).as_subclass(
        type("MXTensor", (torch.Tensor,), {}))
    with caplog.at_level(logging.INFO, "libmx.torch"):
        done = mxt.convert_(model, CONFIG)
    assert done == ["up"]
    assert done.left == {
        "conv": "Conv1d is no linear layer; weights= takes patterns of parameters",
        "rnn": "LSTM is no linear layer; weights= takes patterns of parameters",
        "words": "it looks up rows", "lazy": "it is not initialized: run a batch first",
        "lm_head": "skip= names it", "other": "its weight is a MXTensor"}
    (record,) = caplog.records
    assert record.levelname == "WARNING" and record.getMessage() == str(done)
    assert "left 1: conv: Conv1d is no" in str(done)
    caplog.clear()
    with caplog.at_level(logging.INFO, "libmx.torch"):
        mxt.convert_(nn.ModuleDict({"words": nn.Embedding(3, 4), "up": nn.Linear(4, 4)}), CONFIG)
        mxt.convert_(nn.Sequential(nn.Linear(4, 4)), CONFIG, skip="0")
        mxt.convert_(nn.Sequential(nn.Linear(4, 4)), CONFIG, skip="lmhead")
    assert [r.levelname for r in caplog.records] == ["INFO", "WARNING", "WARNING", "INFO"]
    assert caplog.records[2].getMessage() == "convert_: nothing matches 'lmhead'"


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, "autocast"])
def test_no_recipes_are_those_of_pytorch_bit_for_bit(kind):
    a = nn.Linear(96, 64)
    x = torch.randn(5, 7, 96)
    if kind != "autocast":
        a, x = a.to(kind), x.to(kind)
    b = copy.deepcopy(a)
    mxt.convert_(b, mxt.LinearConfig())
    given = [x.clone().requires_grad_() for _ in range(2)]
    with torch.autocast("cpu", torch.bfloat16, enabled=kind == "autocast"):
        y, z = a(given[0]), b(given[1])
    assert type(b) is mxt.Linear and torch.equal(y, z) and y.dtype == z.dtype
    for result in (y, z):
        result.float().square().sum().backward()
    assert torch.equal(given[0].grad, given[1].grad)
    for p, r in zip(a.parameters(), b.parameters()):
        assert torch.equal(p.grad, r.grad)
    # The bias of a product without a recipe, too.
    mxt.convert_(b, mxt.LinearConfig(wgrad="mxfp8"))
    with torch.autocast("cpu", torch.bfloat16, enabled=kind == "autocast"):
        assert torch.equal(b(x), y)


def test_tensor_parallel_layers_are_refused_in_one_line():
    try:
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    except Exception as e:  # Debian's does not load under its own Python
        pytest.skip(str(e))
    model, x = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 32)), torch.randn(8, 64)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        parallelize_module(model, init_device_mesh("cpu", (1,)), {"0": ColwiseParallel(), "1": RowwiseParallel()})
        before = model(x)
        mxt.convert_(model, CONFIG)
        with pytest.raises(libmx.Error, match="is a DTensor, without memory of its own") as caught:
            model(x)
        assert "\n" not in str(caught.value)
        mxt.convert_(model, None)
        assert torch.equal(model(x), before)
    finally:
        dist.destroy_process_group()


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="PyTorch before 2.0")
@pytest.mark.parametrize("made", [
    lambda: (Own(64, 32), torch.randn(8, 64)), lambda: (Plain(64, 32), torch.randn(8, 64)),
    lambda: (nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.), torch.randn(2, 8, 64)),
    lambda: (nn.ModuleDict({"experts": Experts(lambda s, x: torch.bmm(x, s.down))})["experts"],
             torch.randn(4, 8, 64))])
def test_compiled(made):
    module, x = made()
    mxt.convert_(nn.ModuleDict({"experts": module}), CONFIG)
    y = module(x)
    assert torch.equal(torch.compile(module, backend="aot_eager")(x), y)


def test_what_is_served_is_what_was_trained(tmp_path):
    model = nn.ModuleDict({"up_proj": nn.Linear(64, 32, bias=False), "norm": nn.LayerNorm(64)})
    model.config = types.SimpleNamespace(to_dict=lambda: {"model_type": "llama"})
    mxt.convert_(model, CONFIG)
    kept = libmx.save_checkpoint(model, tmp_path / "q", layout="compressed-tensors", recipe="mxfp4")
    assert sorted(kept) == ["norm.bias", "norm.weight"]
    x = torch.randn(8, 64)
    with libmx.open(tmp_path / "q") as m:
        served = torch.from_numpy(m["up_proj.weight"])
    assert torch.equal(model["up_proj"](x), F.linear(q(x), served))
