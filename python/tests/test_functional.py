# SPDX-License-Identifier: Apache-2.0
"""fake_quantize and Linear under torch.compile, torch.func, torch.export and fx."""
import pytest

torch = pytest.importorskip("torch")
from torch import library  # noqa: E402
if not hasattr(torch, "func") or not hasattr(library, "custom_op"):
    pytest.skip("PyTorch before 2.4", allow_module_level=True)

import libmx.torch as mxt  # noqa: E402

x = torch.randn(8, 64, generator=torch.Generator().manual_seed(0)) * 3
CONFIG = mxt.LinearConfig("mxfp8", "mxfp8", "mxfp8")


@pytest.mark.parametrize("recipe", ["mxfp8", "nvfp4", "mxfp4:scale=even"])
@pytest.mark.parametrize("ste", ["identity", "clip"])
def test_functions_of_torch_func(recipe, ste):
    def f(v):
        return mxt.fake_quantize(v, recipe, ste=ste)
    batch = torch.stack([x, 100 * x, -x])
    assert torch.equal(torch.vmap(f)(batch), torch.stack([f(v) for v in batch]))
    assert torch.equal(torch.vmap(f, in_dims=1)(batch), torch.stack([f(v) for v in batch.unbind(1)]))
    given = x.clone().requires_grad_()
    (f(given) ** 2).sum().backward()
    assert torch.equal(torch.func.grad(lambda v: (f(v) ** 2).sum())(x), given.grad)
    each = torch.vmap(torch.func.grad(lambda v: (f(v) ** 2).sum()))(batch)
    assert torch.equal(each[0], given.grad)
    y, dy = torch.func.jvp(f, (x,), (torch.ones_like(x),))
    given.grad = None
    f(given).sum().backward()
    assert torch.equal(y, f(x)) and torch.equal(dy, given.grad)


def test_compiled_whole():
    f = torch.compile(lambda v: mxt.fake_quantize(v, "mxfp8"), fullgraph=True, backend="aot_eager")
    assert torch.equal(f(x), mxt.fake_quantize(x, "mxfp8"))
    layer = mxt.Linear(64, 32, config=CONFIG)
    whole = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.equal(whole(x), layer(x))


def test_exported_and_traced():
    layer = mxt.Linear(64, 32, config=CONFIG)
    exported = torch.export.export(layer, (x,))
    assert "libmx.fake_quantize" in str(exported.graph) and torch.equal(exported.module()(x), layer(x))
    traced = torch.fx.symbolic_trace(torch.nn.Sequential(layer))
    assert torch.equal(traced(x), layer(x))


@pytest.mark.parametrize("config", [CONFIG, mxt.LinearConfig("mxfp8", None, "mxfp4"), mxt.LinearConfig(
    (None, "nvfp4"), "nvfp4", "nvfp4", source="requantized")])
def test_linear_under_torch_func(config):
    layer = mxt.Linear(64, 32, config=config)
    batch = torch.stack([x, -2 * x, x / 3])
    assert torch.equal(torch.vmap(layer)(batch), torch.stack([layer(v) for v in batch]))
    weights = {k: v.detach() for k, v in layer.named_parameters()}

    def loss(p, v):
        return torch.func.functional_call(layer, p, (v,)).square().sum()

    each = torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, batch)
    for at, v in enumerate(batch):
        layer.zero_grad()
        layer(v).square().sum().backward()
        for name, p in layer.named_parameters():
            assert torch.equal(each[name][at], p.grad)
    stacked = {k: torch.stack([v, 2 * v]) for k, v in weights.items()}
    many = torch.vmap(lambda p: torch.func.functional_call(layer, p, (x,)))(stacked)
    assert torch.equal(many[0], layer(x))
    y, dy = torch.func.jvp(layer, (x,), (torch.ones_like(x),))
    wq = layer.weight if config.fprop[1] is None else mxt.fake_quantize(layer.weight, config.fprop[1])
    assert torch.equal(y, layer(x)) and torch.allclose(dy, torch.ones_like(x) @ wq.t(), atol=1e-5)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_random_rounding_compiles_as_one_graph(backend):
    torch._dynamo.reset()
    layer = mxt.Linear(64, 32, config=mxt.LinearConfig(*["mxfp8:round=stochastic,scale=ceil"] * 3))
    f = torch.compile(layer, fullgraph=True, backend=backend)
    seen = []
    for _ in range(3):
        given = x.clone().requires_grad_()
        y = f(given)
        y.sum().backward()
        seen.append((y.detach(), given.grad))
    assert not torch.equal(seen[0][0], seen[1][0]) and not torch.equal(seen[0][1], seen[1][1])
    mean = torch.stack([f(x).detach() for _ in range(40)]).mean(0)
    exact = torch.nn.functional.linear(x, layer.weight, layer.bias).detach()
    assert (mean - exact).abs().max() < 0.1
    exported = torch.export.export(layer, (x,))
    assert "libmx.fake_quantize_drawn" in str(exported.graph) and exported.module()(x).shape == (8, 32)


@pytest.mark.parametrize("backend, recipe, dgrad, wgrad", [
    ("aot_eager", "mxfp8:scale=even", "mxfp4:round=stochastic", "nvfp4"),
    ("inductor", "mxfp8:scale=even", "mxfp4:round=stochastic", "nvfp4"),
    ("aot_eager", "mxfp4:scale=even,dialect=torchao@0.18", "mxfp8:dialect=torchao@0.18", "nvfp4:dialect=torchao@0.18"),
    ("aot_eager", "mxfp4:dialect=microxcaling,round=away", "mxfp8:dialect=microxcaling,round=zero",
     "mxfp6_e2m3:dialect=microxcaling,round=rtne"),
    # Of wgrad only dy: a compiler draws for x, which is there, in the forward pass.
    ("aot_eager", "nvfp4:round=stochastic,seed=5", "nvfp4:dialect=te,round=stochastic",
     ("nvfp4:scale=single-level,round=stochastic", "nvfp4:dialect=torchao@0.18"))])
def test_compilers_see_the_steps_beyond_the_host(backend, recipe, dgrad, wgrad, monkeypatch):
    expected = mxt.fake_quantize(x, recipe, "w")  # of the library
    monkeypatch.setattr(mxt, "_is_on_host", lambda _: False)  # a CPU as another device
    torch._dynamo.reset()
    operations = []

    def counting(graph, inputs):
        operations.append(str(graph.graph))
        return torch._dynamo.lookup_backend(backend)(graph, inputs)

    f = torch.compile(lambda v: mxt.fake_quantize(v, recipe, "w"), fullgraph=True, backend=counting)
    assert torch.equal(f(x), expected) and torch.equal(mxt.fake_quantize(x, recipe, "w"), expected)
    layer = mxt.Linear(64, 32, config=mxt.LinearConfig(recipe, dgrad, wgrad))
    results = []
    for call in (layer, torch.compile(layer, fullgraph=True, backend=counting)):
        torch.manual_seed(1)
        given = x.clone().requires_grad_()
        y = call(given)
        y.square().sum().backward()
        results.append((y.detach(), given.grad, layer.weight.grad))
        layer.zero_grad()
    assert len(operations) == 2 and not any("libmx" in text for text in operations)
    if backend == "aot_eager":  # which draws and adds in the same order
        assert all(torch.equal(a, b) for a, b in zip(*results))


def test_what_is_computed_on_the_host_is_said_once(monkeypatch, caplog):
    expected = [mxt.fake_quantize(x, r) for r in ("mxfp8", "mxfp8:round=away")]
    monkeypatch.setattr(mxt, "_is_on_host", lambda _: False)
    mxt._say_copied.cache_clear()
    for _ in range(2):
        assert torch.equal(mxt.fake_quantize(x, "mxfp8"), expected[0])
    assert not caplog.records
    for _ in range(2):
        assert torch.equal(mxt.fake_quantize(x, "mxfp8:round=away"), expected[1])
    assert [r.getMessage() for r in caplog.records] == [
        "mxfp8:round=away: computed on the host: tensors on cpu are copied there and back"]
