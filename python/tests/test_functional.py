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
