# SPDX-License-Identifier: Apache-2.0
"""libmx.torch: gradients against written-out references, bit for bit; figures against the
command's."""
import copy
import json
import math
import pickle
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import library  # noqa: E402

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


def test_identity_passes_gradients_of_a_block_that_clamps_whole():
    # Under floor, all of a block within [0.9375, 1) take the largest code of e4m3: 448 * 2^-9.
    x = (0.94 + 0.05 * torch.rand(4, 32)).requires_grad_()
    y = mxt.fake_quantize(x, "mxfp8")
    assert torch.equal(y, torch.full_like(y, 0.875))
    dy = matrix(4, 32)
    y.backward(dy)
    assert torch.equal(x.grad, dy)
    x.grad = None
    mxt.fake_quantize(x, "mxfp8", ste="clip").backward(dy)
    assert torch.equal(x.grad, torch.zeros_like(dy))
    with pytest.raises(libmx.Error):
        mxt.fake_quantize(x, "mxfp8", ste="sideways")


# Block maximum's exponent to the scale's, and the largest magnitude, of floor's scale 2^(e - emax).
@pytest.mark.parametrize("recipe,emax,largest", [
    ("mxfp8", 8, 448), ("mxfp8_e5m2", 15, 57344), ("mxfp6_e2m3", 2, 7.5), ("mxfp4", 2, 6)])
def test_clip_is_zero_beyond_the_largest_value(recipe, emax, largest):
    x = matrix(64, 128, 5).requires_grad_()
    mxt.fake_quantize(x, recipe, ste="clip").sum().backward()
    blocks = x.detach().reshape(-1, 32)
    scale = torch.exp2(torch.floor(torch.log2(blocks.abs().amax(1, keepdim=True))) - emax)
    beyond = (blocks.abs() > largest * scale).reshape(x.shape)
    assert 0 < int(beyond.sum()) < x.numel() // 10
    assert torch.equal(x.grad, (~beyond).float())


def test_clip_leaves_blocks_that_hold_all_their_values():
    x = (matrix(8, 64).clamp(-1, 1)).requires_grad_()  # the maximum is a power of two
    mxt.fake_quantize(x, "mxfp4:scale=rceil", ste="clip").sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))
    with pytest.raises(libmx.Error, match="rotated"):
        mxt.fake_quantize(x, "mxfp4:transform=hadamard", ste="clip")


@pytest.mark.parametrize("recipe", ["mxfp4", "mxfp8:block=1x16", "nvfp4"])
@pytest.mark.parametrize("operand", range(6))
def test_each_operand_of_linear(operand, recipe):
    recipes = [None] * 6
    recipes[operand] = recipe
    fx, fw, dy_, dw_, wy, wx = recipes
    config = mxt.LinearConfig(fprop=(fx, fw), dgrad=(dy_, dw_), wgrad=(wy, wx))
    layer = mxt.Linear(64, 32, config=config)
    x = matrix(96, 64, 1).requires_grad_()
    dy = matrix(96, 32, 2)
    y = layer(x.reshape(3, 32, 64)).reshape(96, 32)
    y.backward(dy)
    w = layer.weight.detach()
    use = lambda t, r: t if r is None else q(t, r)
    xd = x.detach()
    assert torch.equal(y.detach(), use(xd, fx) @ use(w, fw).t() + layer.bias.detach())
    assert torch.equal(x.grad, use(dy, dy_) @ use(w.t(), dw_).t())
    assert torch.equal(layer.weight.grad, use(dy.t(), wy) @ use(xd.t(), wx).t())
    assert torch.equal(layer.bias.grad, dy.reshape(3, 32, 32).sum((0, 1)))


def hadamard(n):
    h = torch.ones(1, 1)
    while h.shape[0] < n:
        h = torch.cat((torch.cat((h, h), 1), torch.cat((h, -h), 1)))
    return h


def test_rotations_are_those_of_recipes():
    for cols, size in ((64, 32), (64, 64), (80, 16), (36, 32), (7, 16)):
        x = matrix(16, cols, cols)
        r = mxt._rotated(x, size)
        theirs = libmx.quantize(x, f"mxfp8:transform=hadamard,transform_size={size}")
        ours = libmx.quantize(r, "mxfp8")
        assert np.array_equal(ours.codes, theirs.codes)
        assert np.array_equal(ours.scales, theirs.scales)
    x = torch.randint(-8, 8, (4, 64)).float()  # exact
    assert torch.equal(mxt._rotated(x, 64), x @ hadamard(64) / 8)


def test_rotated_operands():
    config = mxt.LinearConfig(fprop="mxfp4", wgrad=("mxfp4", None), wgrad_transform="hadamard",
                              transform_size=16)
    layer = mxt.Linear(64, 32, bias=False, config=config)
    x, dy = matrix(96, 64, 1), matrix(96, 32, 2)
    layer(x).backward(dy)
    h = hadamard(16)
    turned = lambda t: (t.reshape(-1, 16) @ h / 4).reshape(t.shape)
    expected = q(mxt._rotated(dy.t(), 16), "mxfp4") @ mxt._rotated(x.t(), 16).t()
    assert torch.equal(layer.weight.grad, expected)
    assert torch.allclose(mxt._rotated(dy.t(), 16), turned(dy.t().contiguous()), atol=1e-5)
    assert torch.allclose(expected, dy.t() @ x, atol=4, rtol=0.5)  # rotations cancel
    for wrong in (dict(fprop_transform="hadamar"), dict(transform_size=24), dict(source="copy"),
                  dict(source="requantized", dgrad_transform="hadamard")):
        with pytest.raises(libmx.Error):
            mxt.LinearConfig(fprop="mxfp4", **wrong)


def test_requantized_operands():
    config = mxt.LinearConfig("mxfp4", "mxfp4", "mxfp4", source="requantized")
    layer = mxt.Linear(64, 32, bias=False, config=config)
    x, dy = matrix(96, 64, 1).requires_grad_(), matrix(96, 32, 2)
    layer(x).backward(dy)
    w, xd = layer.weight.detach(), x.detach()
    r = "mxfp4"
    assert torch.equal(x.grad, q(dy, r) @ q(q(w, r).t(), r).t())
    assert torch.equal(layer.weight.grad, q(q(dy, r).t(), r) @ q(q(xd, r).t(), r).t())


def test_random_rounding_draws_anew_and_repeatably():
    layer = mxt.Linear(64, 32, config=mxt.LinearConfig(fprop="mxfp4:round=stochastic,seed=3"))
    x = matrix(32, 64)
    torch.manual_seed(1)
    first, second = layer(x), layer(x)
    torch.manual_seed(1)
    assert torch.equal(layer(x), first) and not torch.equal(first, second)


def test_autocast_computes_in_its_type():
    layer = mxt.Linear(64, 32, config=mxt.LinearConfig("mxfp8", "mxfp8", "mxfp8"))
    x = matrix(32, 64).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(x)
    assert y.dtype == torch.bfloat16
    with torch.no_grad():
        half = copy.deepcopy(layer).bfloat16()
        assert torch.equal(half(x.bfloat16()), y)
    y.float().sum().backward()
    assert x.grad.dtype == torch.float32 and layer.weight.grad.dtype == torch.float32


def model(norm=False):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 32)]
    return torch.nn.Sequential(*(layers[:1] + [torch.nn.LayerNorm(64)] + layers[1:]
                                 if norm else layers))


def test_conversion_keeps_all_but_the_arithmetic():
    m = model()
    calls = []
    m[0].register_forward_hook(lambda *_: calls.append(0))
    m[2].weight = m[0].weight  # tied
    weight = m[0].weight
    m[2].out_features = 64
    m[2].bias = torch.nn.Parameter(torch.zeros(64))
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
    before = m(matrix(4, 64))
    state = copy.deepcopy(m.state_dict())
    assert mxt.convert_(m, mxt.LinearConfig(), skip=["2"]) == ["0"]
    assert torch.equal(m(matrix(4, 64)), before) and len(calls) == 2
    assert m[0].weight is weight and m[2].weight is weight
    mxt.convert_(m, mxt.LinearConfig(fprop="mxfp4", dgrad="mxfp8", wgrad="mxfp8"), skip=[])
    after = m(matrix(4, 64))
    assert not torch.equal(after, before)
    after.sum().backward()
    optimizer.step()
    assert not torch.equal(weight, state["0.weight"])
    m.load_state_dict(state)
    again = m(matrix(4, 64))
    assert torch.equal(again, after)
    replica = m[2]._replicate_for_data_parallel()  # what DataParallel does with a module
    replica.weight, replica.bias = m[2].weight, m[2].bias
    assert torch.equal(replica(matrix(4, 64)), m[2](matrix(4, 64)))
    plain = model()
    mxt.convert_(plain, mxt.LinearConfig(fprop="mxfp4"))
    y = plain(matrix(4, 64))
    assert torch.equal(copy.deepcopy(plain)(matrix(4, 64)), y)
    assert torch.equal(pickle.loads(pickle.dumps(plain))(matrix(4, 64)), y)


def test_configurations_are_values():
    a = mxt.LinearConfig(fprop="mxfp4", dgrad=(None, libmx.recipe("mxfp8")))
    b = mxt.LinearConfig(fprop=("mxfp4:scale=floor", "mxfp4"), dgrad=(None, "mxfp8"))
    assert a == b and hash(a) == hash(b) and "mxfp8" in repr(a)
    assert mxt.LinearConfig(fprop=["mxfp8", None]).fprop == ("mxfp8", None)
    for wrong in ("mxfp9", ("mxfp8",), 4, ("mxfp8", "mxfp8", "mxfp8")):
        with pytest.raises(libmx.Error):
            mxt.LinearConfig(fprop=wrong)
    with pytest.raises(libmx.Error, match="a NoneType is no recipe"):
        libmx.quantize(matrix(4, 32), None)


def test_gradients_of_gradients():
    x = matrix(4, 64).requires_grad_()
    y = mxt.fake_quantize(x, "mxfp8")
    (dx,) = torch.autograd.grad((y ** 3).sum(), x, create_graph=True)
    (ddx,) = torch.autograd.grad(dx.sum(), x)
    assert torch.allclose(ddx, 6 * y)
    layer = mxt.Linear(64, 8, config=mxt.LinearConfig("mxfp8", "mxfp8", "mxfp8"))
    (dx,) = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        dx.sum().backward()


def test_accumulator_models():
    config = mxt.LinearConfig(fprop="mxfp8", dgrad="mxfp8", wgrad="mxfp8",
                              accumulate="sm100.mxf8f6f4")
    layer = mxt.Linear(64, 32, bias=False, config=config)
    x = matrix(32, 64, 3).requires_grad_()
    dy = matrix(32, 32, 4)
    y = layer(x)
    y.backward(dy)
    mm = lambda a, b: libmx.matmul(a, b, "mxfp8", accumulate="sm100.mxf8f6f4")
    w, xd = layer.weight.detach().numpy(), x.detach().numpy()
    assert np.array_equal(y.detach().numpy(), mm(xd, w.T))
    assert np.array_equal(x.grad.numpy(), mm(dy.numpy(), w))
    assert np.array_equal(layer.weight.grad.numpy(), mm(dy.numpy().T, xd))
    with pytest.raises(libmx.Error):
        mxt.LinearConfig(fprop="mxfp8", accumulate="exact")


def test_mx_specs():
    """Which operand has which key is that of LinearFunction in microxcaling's mx/linear.py."""
    specs = {"scale_bits": 8, "w_elem_format": "fp8_e4m3", "a_elem_format": "fp4_e2m1",
             "w_elem_format_bp": "fp6_e3m2", "a_elem_format_bp_ex": "fp6_e2m3",
             "a_elem_format_bp_os": "fp8_e5m2", "block_size": 16, "round": "even",
             "round_mx_input_grad_weight": "floor", "custom_cuda": True}
    c = mxt.from_mx_specs(specs)
    how = "dialect=microxcaling,block=1x16,round="
    as_recipes = lambda *r: tuple(str(libmx.recipe(one)) for one in r)
    assert c.fprop == as_recipes("mxfp4:" + how + "rtne", "mxfp8:" + how + "rtne")
    assert c.dgrad == as_recipes("mxfp8_e5m2:" + how + "rtne", "mxfp6_e3m2:" + how + "rtne")
    assert c.wgrad == as_recipes("mxfp6_e2m3:" + how + "rtne", "mxfp6_e2m3:" + how + "zero")
    few = {"w_elem_format": "int8", "a_elem_format": "int4", "block_size": 32}
    assert mxt.from_mx_specs(few).wgrad[0] == mxt.from_mx_specs(few).fprop[0]
    assert mxt.from_mx_specs({**few, "quantize_backprop": False}).dgrad == (None, None)
    with pytest.warns(UserWarning, match="bfloat=16"):
        mxt.from_mx_specs({**few, "bfloat": 16})
    for wrong in ({"shared_exp_method": "none"}, {"block_size": 0}, {"w_elem_format": "bf16"},
                  {"scale_bits": 5}, {"round": "dither"}, {"w_elem_fromat": "int8"}):
        with pytest.raises(libmx.Error, match=next(iter(wrong))):
            mxt.from_mx_specs({**few, **wrong})


def train(m, hooks, steps=4):
    tags = []
    optimizer = torch.optim.SGD(m.parameters(), lr=1e-2)
    for step in range(steps):
        optimizer.zero_grad()
        m(matrix(32, 64, step)).square().mean().backward()
        optimizer.step()
        tags.append(list(hooks(step)))
    return tags


def figures(record):
    """Without what only one side knows: parts of a batch have no shape, a file does not state its axes."""
    unlike = ("file", "shape", "contraction", "step", "passes")
    return {k: v for k, v in record.items() if k not in unlike}


def test_watch_takes_recipes_once():
    twice = mxt.watch(model(), ["mxfp8", "mxfp4", "MXFP8"])
    assert [str(r) for r in twice.recipes] == [str(libmx.recipe(r)) for r in ("mxfp8", "mxfp4")]
    with pytest.raises(libmx.Error, match="at least one"):
        mxt.watch(model(), [])


def test_watch_equals_the_command_on_captured_tensors(mx, tmp_path):
    m = model(norm=True)
    recipes = ["mxfp8", "mxfp4:scale=even"]
    w = mxt.watch(m, recipes, every=2)
    dump = mxt.capture(m, tmp_path / "dumps", steps=[2])
    tags = train(m, lambda step: (dump.step(), w.scalars(step))[1])
    assert tags[0] and tags[2] and not tags[1] and not tags[3]
    assert tags[2][0][0].startswith("mx/mxfp8")
    names = {r["tensor"] for r in w.records}
    assert names == {"1.weight"} | {f"{i}.{k}" for i in (0, 3)
                                    for k in ("input", "weight", "output.grad")}
    out = tmp_path / "a.json"
    subprocess.run([mx, "analyze", tmp_path / "dumps" / "step-2.safetensors", "-q", "--json", out]
                   + [a for r in recipes for a in ("-r", r)], check=True)
    theirs = {(r["tensor"], r["recipe"]): r for r in json.loads(out.read_text())["results"]}
    ours = {(r["tensor"], r["recipe"]): r for r in w.records if r["step"] == 2}
    assert set(theirs) == set(ours)
    for key, record in ours.items():
        assert figures(record) == {k: v for k, v in figures(theirs[key]).items() if k in record}
        assert {"sqnr_db", "saturated_block_rate", "gain"} <= set(record)
    w.save(tmp_path / "w.json")
    subprocess.run([mx, "report", tmp_path / "w.json", "-q", "--markdown", tmp_path / "r.md"],
                   check=True)
    assert "0.weight" in (tmp_path / "r.md").read_text()
    subprocess.run([mx, "gate", tmp_path / "w.json", "-q", "--rule", "sqnr_db>1"], check=True)
    train(m, w.scalars, 2)
    w.save(tmp_path / "later.json")
    changes = tmp_path / "c.json"
    subprocess.run([mx, "diff", tmp_path / "w.json", tmp_path / "later.json", "-q", "--json",
                    changes], check=True)
    moved = json.loads(changes.read_text())
    assert moved["schema"] == "mx.changes/1" and not moved["left_out"]
    assert len(moved["results"]) == len({(r["tensor"], r["recipe"]) for r in w.records})
    w.close()
    assert not list(train(m, w.scalars, 1)[0])


def test_dumps_are_what_diff_reads(mx, tmp_path):
    m = model(norm=True)
    with mxt.capture(m, tmp_path, steps=[0, 1], tensors=["weight"], layers=["0", "1"]) as c:
        train(m, lambda step: c.step() or [])
    with libmx.open(tmp_path / "step-1.safetensors") as dump:
        assert sorted(dump.keys()) == ["0.weight", "1.weight"]
    with libmx.open(tmp_path / "step-0.safetensors") as dump:
        assert np.array_equal(dump["0.weight"], model(norm=True)[0].weight.detach().numpy())
    out = tmp_path / "d.json"
    subprocess.run([mx, "diff", tmp_path / "step-0.safetensors", tmp_path / "step-1.safetensors",
                    "-q", "--json", out], check=True)
    assert "1.weight" in out.read_text()
    with pytest.raises(libmx.Error, match="nowhere"):
        mxt.capture(m, tmp_path, steps=[0], layers=["nowhere"])


def test_saved_tensors_keep_their_bits(tmp_path):
    tensors = {"a": matrix(3, 5).bfloat16(), "b": matrix(4, 4).half().t(), "c": torch.tensor(1.5),
               "d": torch.zeros(0, 3), "e": matrix(2, 2).double()}
    mxt.save(tmp_path / "t.safetensors", tensors)
    with libmx.open(tmp_path / "t.safetensors") as f:
        for name, x in tensors.items():
            assert np.array_equal(f[name], x.float().numpy())
    assert [p.name for p in tmp_path.iterdir()] == ["t.safetensors"]
    with pytest.raises(libmx.Error, match="n is of torch.int64"):
        mxt.save(tmp_path / "t.safetensors", {"n": torch.arange(3)})


def checkpointed(m, x, reentrant):
    from torch.utils.checkpoint import checkpoint
    return checkpoint(m, x, use_reentrant=reentrant)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_counts_once(reentrant):
    if not reentrant and not hasattr(torch._C, "_current_graph_task_id"):
        pytest.skip("PyTorch before 2.0 does not say whether a backward pass is under way")
    m = model()
    w = mxt.watch(m, ["mxfp8"], every=1)
    checkpointed(m, matrix(32, 64).requires_grad_(), reentrant).sum().backward()
    with torch.no_grad():
        m(matrix(7, 64))
    list(w.scalars())
    assert sorted(r["elements"] for r in w.records) == sorted(
        [32 * 64, 64 * 64, 32 * 64, 32 * 64, 32 * 64, 32 * 32])


def test_parts_of_a_batch_and_processes_merge_to_the_same_bytes():
    parts = [matrix(32, 64, seed) for seed in range(4)]

    def watched(batch, order=None):
        m = model()
        w = mxt.watch(m, ["mxfp8", "mxfp4"], every=1, tensors=["activation"], layers=["0"])
        for x in batch:
            m(x).sum().backward()
        return w

    def one(w):
        list(w.scalars(0))
        return json.dumps([figures(r) for r in sorted(w.records, key=lambda r: r["recipe"])])

    whole, backwards = watched([torch.cat(parts)]), watched(parts[::-1])
    assert one(watched(parts)) == one(backwards) == one(whole)
    for order in ([0, 1], [1, 0]):
        ranks = [watched(parts[:2]), watched(parts[2:])]
        first, second = (ranks[i] for i in order)
        first.merge(pickle.loads(pickle.dumps(second.statistics)))
        assert one(first) == one(watched(parts))


def test_norms_that_cluster_are_told_of_before_they_clamp():
    m = model(norm=True)
    g = m[1].weight
    told = []
    w = mxt.watch_norms(m, ["mxfp8", "mxfp8:scale=rceil"], told.append)
    assert not w.step()  # gains of 1
    with torch.no_grad():
        for top in (0.830, 0.840, 0.850, 0.960):
            g.copy_(top - 0.01 * torch.rand(64))
            g[::32] = top
            w.step()
    assert [(a.what, a.step, a.recipe) for a in told] == [
        ("approaches", 3, "mxfp8"), ("saturates", 4, "mxfp8")]
    # The zone of e4m3 begins at 0.875 = 448/512; maxima move from 0.830 to 0.850 in two steps.
    rate = math.log2(0.850 / 0.830) / 2
    assert told[0].crossing == 3 + math.ceil(math.log2(0.875 / 0.850) / rate)
    assert told[0].distance == pytest.approx(math.log2(0.850 / 0.875))
    assert told[1].saturated_block_rate == 1 and "largest code" in str(told[1])
    assert not w.step()  # told once
    with torch.no_grad():
        g.copy_(1 + 0.001 * torch.rand(64))
        g[0] = g[32] = 1.001
    all_of_it = mxt.watch_norms(m, "mxfp8", told.append, what=["collapses"])
    assert [a.what for a in all_of_it.step()] == ["collapses"]
    with torch.no_grad():
        for top in (1.03, 1.02, 1.01):  # from above: at 1 the zone is entered at its end
            g.fill_(top)
            last = w.step()
    assert [(a.what, a.crossing) for a in last] == [("approaches", 10)]
    for wrong in (dict(model=model()), dict(what=["explodes"]), dict(every=0)):
        with pytest.raises(libmx.Error):
            mxt.watch_norms(**{"model": m, "recipes": "mxfp8", **wrong})
    with torch.no_grad():
        g.fill_(0.96)
    with pytest.warns(UserWarning, match="1.weight under mxfp8: 100.0% of blocks"):
        mxt.watch_norms(m, "mxfp8").step()


@pytest.mark.skipif(not hasattr(library, "opcheck"), reason="PyTorch before 2.4")
def test_the_operation_is_one_that_torch_compiles():
    op = torch.ops.libmx.fake_quantize.default
    for x in (matrix(32, 64), matrix(64, 32).t().bfloat16(), matrix(4, 32).requires_grad_()):
        library.opcheck(op, (x, "mxfp4", "x"))
    library.opcheck(torch.ops.libmx.clamped.default, (matrix(32, 64), "mxfp4", "x"))
    library.opcheck(torch.ops.libmx.matmul.default,
                    (matrix(8, 64), matrix(64, 4), "mxfp8", "mxfp8", "exact"))
    x, dy = matrix(4, 32).requires_grad_(), matrix(4, 32)
    op(x, "mxfp4", "x").backward(dy)
    assert torch.equal(x.grad, dy)  # the operation's own gradient: straight through


@pytest.mark.skipif(not hasattr(library, "opcheck"), reason="PyTorch before 2.4")
@pytest.mark.parametrize("accumulate", [None, "exact"])
def test_linear_layers_compile_as_one_graph(accumulate):
    layer = mxt.Linear(64, 32, config=mxt.LinearConfig("mxfp4", "mxfp8", "mxfp8",
                                                       accumulate=accumulate))
    x = matrix(32, 64).requires_grad_()
    y = layer(x)
    y.sum().backward()
    grads = [x.grad.clone(), layer.weight.grad.clone()]
    x.grad = layer.weight.grad = None
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    z = compiled(x)
    z.sum().backward()
    assert torch.equal(y, z)
    assert torch.equal(grads[0], x.grad) and torch.equal(grads[1], layer.weight.grad)


@pytest.mark.skipif(not hasattr(library, "opcheck"), reason="PyTorch before 2.4")
def test_recipes_as_strings_and_symbolic_traces():
    x = matrix(8, 64)
    for ste in ("identity", "clip"):
        f = lambda t: mxt.fake_quantize(t, "mxfp8", ste=ste)
        given = [x.clone().requires_grad_() for _ in range(2)]
        results = f(given[0]), torch.compile(f, fullgraph=True, backend="aot_eager")(given[1])
        assert torch.equal(*results)
        for y in results:
            y.sum().backward()
        assert torch.equal(given[0].grad, given[1].grad)
    m = model()
    mxt.convert_(m, mxt.LinearConfig("mxfp8", "mxfp8", "mxfp8"))
    assert torch.equal(torch.fx.symbolic_trace(m)(x), m(x))
