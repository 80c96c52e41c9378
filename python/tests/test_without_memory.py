# SPDX-License-Identifier: Apache-2.0
"""Tensors of PyTorch that are not numbers in memory: one line for each, from every function. Each kind
has a process of its own, so that a crash is a failure and not the end of the tests."""
import json
import os
import re
import sys
import traceback

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402

import libmx  # noqa: E402
import libmx.torch as mxt  # noqa: E402
from torch import library  # noqa: E402

# How to make a tensor of 8 x 64 as `x`, or `skip` with a reason; and what the error has to say.
KINDS = {
    "fake": ("""
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode():
            x = torch.randn(8, 64)
        """, "is a FakeTensor, a shape without values: call libmx outside of FakeTensorMode"),
    "meta": ('x = torch.empty(8, 64, device="meta")', "is on meta, a shape without values"),
    "lazy": ("x = torch.nn.LazyLinear(8).weight", "is not initialized: run a batch"),
    "wrapper": ("""
        class MXTensor(torch.Tensor):
            @staticmethod
            def __new__(cls, inner):
                return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            def __init__(self, inner):
                self.inner = inner
            @classmethod
            def __torch_dispatch__(cls, f, types, args=(), kwargs=None):
                plain = [a.inner if isinstance(a, MXTensor) else a for a in args]
                return MXTensor(f(*plain, **(kwargs or {})))
        x = MXTensor(torch.randn(8, 64))
        """, r"is a MXTensor, which keeps its values in other tensors: x.dequantize\(\)"),
    "sharded": ("""
        class Shards(torch.Tensor):
            @staticmethod
            def __new__(cls, inner):
                return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            def __init__(self, inner):
                self.inner = inner
            def to_local(self):
                return self.inner
            @classmethod
            def __torch_dispatch__(cls, f, types, args=(), kwargs=None):
                raise NotImplementedError(str(f))
        x = Shards(torch.randn(8, 64))
        """, r"is a Shards, without memory of its own: x.full_tensor\(\) gathers it, x.to_local\(\)"),
    "fsdp": ("""
        import torch.distributed as dist, tempfile
        if not hasattr(dist, "is_available") or not dist.is_available():
            skip("no torch.distributed")
        try:
            from torch.distributed.fsdp import fully_shard
            from torch.distributed.device_mesh import init_device_mesh
        except Exception as e:  # Debian's does not load under its own Python
            skip(str(e))
        rendezvous = tempfile.NamedTemporaryFile()
        dist.init_process_group("gloo", store=dist.FileStore(rendezvous.name, 1), rank=0,
                                world_size=1)
        layer = torch.nn.Linear(64, 8)
        fully_shard(layer, mesh=init_device_mesh("cpu", (1,)))
        x = layer.weight
        """, r"is a DTensor, without memory of its own: x.full_tensor\(\) gathers it, x.to_local\(\)"),
    "freed": ("x = torch.randn(8, 64)\nstorage_of(x).resize_(0)",
              "storage was freed, it has 0 of 2048 bytes"),
    "part of freed": ("x = torch.randn(9, 64)[1:]\nstorage_of(x).resize_(0)",
                      "storage was freed, it has 0 of 2304 bytes"),
    "cut": ("x = torch.randn(8, 64)\nstorage_of(x).resize_(100)",
            r"storage was freed, it has \d+ of 2048 bytes"),
    "vmap": ("vmap(lambda v: made.append(v) or v)(torch.randn(2, 8, 64))\nx = made[0]",
             r"has no memory, as inside of torch.func"),
    "grad": ("grad(lambda v: made.append(v) or v.sum())(torch.randn(8, 64))\nx = made[0]",
             r"has no memory, as inside of torch.func"),
    "coo": ("x = torch.ones(8, 64).to_sparse()", r"is torch.sparse_coo: x.to_dense\(\)"),
    "csr": ("x = torch.ones(8, 64).to_sparse_csr()", r"is torch.sparse_csr: x.to_dense\(\)"),
    "nested": ("x = nested([torch.ones(3, 64), torch.ones(5, 64)])", r"is nested: x.unbind\(\)"),
    "quantized": ("x = torch.quantize_per_tensor(torch.randn(8, 64), 0.1, 0, torch.qint8)",
                  r"torch.qint8 has scales of its own: x.dequantize\(\)"),
    "complex": ("x = torch.ones(8, 64, dtype=torch.complex64)",
                r"no type of real numbers: torch.view_as_real\(x.resolve_conj\(\)\)"),
    "conjugate": ("x = torch.ones(8, 64, dtype=torch.complex64).conj()",
                  r"no type of real numbers: torch.view_as_real\(x.resolve_conj\(\)\)"),
    "complex32": ("x = torch.empty(8, 64, dtype=torch.complex32)", "no type of real numbers"),
    "bool": ("x = torch.ones(8, 64) > 0", "torch.bool is no type of numbers that libmx reads"),
    "uint4": ("x = torch.empty(8, 64, dtype=type_of('uint4'))", "uint4 is no type of numbers"),
    "float4": ("x = torch.empty(8, 64, dtype=type_of('float4_e2m1fn_x2'))", "is no type of numbers"),
    "bits8": ("x = torch.empty(8, 64, dtype=type_of('bits8'))", "bits8 is no type of numbers"),
    "bsr": ("x = torch.ones(8, 64).to_sparse_bsr((2, 2))", r"is torch.sparse_bsr: x.to_dense\(\)"),
    "csc": ("x = torch.ones(8, 64).to_sparse_csc()", r"is torch.sparse_csc: x.to_dense\(\)"),
    "mkldnn": ("x = torch.ones(8, 64).to_mkldnn()", r"is torch._mkldnn: x.to_dense\(\)"),
    "jagged": ("""
        if not hasattr(torch, "jagged"):
            skip("no jagged tensors")
        x = nested([torch.ones(3, 64), torch.ones(5, 64)], layout=torch.jagged)
        """, r"is nested: x.unbind\(\)"),
    "quantized by channel": (
        "x = torch.quantize_per_channel(torch.randn(8, 64), torch.ones(8), torch.zeros(8), 0, torch.qint8)",
        r"torch.qint8 has scales of its own: x.dequantize\(\)"),
    "zeros": ("x = torch._efficientzerotensor((8, 64))", "is made of zeros without memory"),
    "functional": ("x = torch._to_functional_tensor(torch.randn(8, 64))",
                   r"has no memory, as inside of torch.func"),
    "FunctionalTensor": ("""
        FunctionalTensor = of("torch._subclasses.functional_tensor", "FunctionalTensor")
        mode = of("torch._subclasses.functional_tensor", "FunctionalTensorMode")
        x = FunctionalTensor(torch._to_functional_tensor(torch.randn(8, 64)), mode())
        """, "is a FunctionalTensor, which keeps"),
    "masked": ("""
        values = torch.randn(8, 64)
        x = of("torch.masked", "masked_tensor")(values, values > 0)
        """, r"is a MaskedTensor: x.get_data\(\) gives its values"),
    "logging": ('x = of("torch.testing._internal.logging_tensor", "LoggingTensor")(torch.randn(8, 64))',
                "is a LoggingTensor, which keeps"),
    "two": ("""
        x = of("torch.testing._internal.two_tensor", "TwoTensor")(torch.ones(8, 64), torch.ones(8, 64))
        """, "is a TwoTensor, which keeps"),
    "collective": ("""
        x = of("torch.distributed._functional_collectives", "AsyncCollectiveTensor")(torch.ones(8, 64))
        """, r"is a AsyncCollectiveTensor, on its way from other processes: x.wait\(\)"),
    "ranks": ("""
        x = of("torch.distributed._local_tensor", "LocalTensor")(
            {0: torch.ones(8, 64), 1: torch.ones(8, 64)})
        """, "is a LocalTensor, "),
    "lazy buffer": ("x = torch.nn.parameter.UninitializedBuffer()", "is not initialized: run a batch"),
}
# A subclass with memory is a tensor like any other.
FINE = {
    "parameter": "x = torch.nn.Parameter(torch.ones(8, 64))",
    "subclass": """
        class Own(torch.Tensor):
            pass
        x = torch.ones(8, 64).as_subclass(Own)
        """,
    "empty and freed": "x = torch.ones(0, 64)\nstorage_of(x).resize_(0)",
    "view": "x = torch.ones(64, 16).t()[::2]",
    "bfloat16": "x = torch.ones(8, 64, dtype=torch.bfloat16)",
    "negative": "x = torch.ones(8, 64, dtype=torch.complex64).conj().imag",
    "part of a conjugate": "x = torch.view_as_real(torch.ones(8, 32, dtype=torch.complex64).conj()"
                           ".resolve_conj()).reshape(8, 64)",
    "expanded": "x = torch.ones(1, 64).expand(8, 64)",
    "inference": "with torch.inference_mode():\n    x = torch.ones(8, 64) * 2",
    "buffer": "x = getattr(torch.nn, 'Buffer', torch.nn.Parameter)(torch.ones(8, 64))",
    "lazily cloned": "x = getattr(torch, '_lazy_clone', torch.clone)(torch.ones(8, 64))",
    "gradient": "x = torch.ones(8, 64, requires_grad=True) * 2",
    "subclass of PyTorch": """
        x = of("torch.testing._internal.common_subclass", "NonWrapperTensor")(torch.randn(8, 64))
        """,
}

SCRIPT = '''
import importlib, json, os, sys, types, warnings
warnings.simplefilter("ignore")
import numpy as np
import torch
import libmx
import libmx.torch as mxt
try:
    from torch.func import grad, vmap
except ImportError:
    try:
        from functorch import grad, vmap
    except ImportError:
        grad = vmap = lambda f: skip("no functorch")
made = []
nested = getattr(getattr(torch, "nested", None), "nested_tensor", None) or torch.nested_tensor

def of(module, name):
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as e:
        skip(str(e))

def type_of(name):
    return getattr(torch, name, None) or skip("no " + name)

def skip(why):
    print(json.dumps({"skipped": why}), flush=True)
    os._exit(0)

def storage_of(x):
    return x.untyped_storage() if hasattr(x, "untyped_storage") else x.storage()

MAKE

plain = torch.ones(8, 64)
layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.LayerNorm(64))
norms = mxt.watch_norms(layers, ["mxfp8"])
norms.norms = {"1.weight": types.SimpleNamespace(weight=x)}

def hooks(taker):
    taker._hooks._forward("w", types.SimpleNamespace(weight=x), (), None)
    return taker

def converted():
    layer = torch.nn.Linear(64, 8)
    layer._parameters["weight"] = x if isinstance(x, torch.nn.Parameter) else torch.nn.Parameter(
        x, requires_grad=False)
    mxt.convert_(layer, mxt.LinearConfig("mxfp8"))
    layer(plain)

linear = mxt.Linear(64, 8, config=mxt.LinearConfig("mxfp8", "mxfp8", "mxfp8", accumulate="exact"))
q = libmx.quantize(plain, "mxfp8")
calls = {
    "quantize": lambda: libmx.quantize(x, "mxfp8"),
    "fake_quantize": lambda: libmx.fake_quantize(x, "mxfp8"),
    "fake_quantize out": lambda: libmx.fake_quantize(plain, "mxfp8", out=x),
    "cast": lambda: libmx.cast(x, "e4m3"),
    "matmul a": lambda: libmx.matmul(x, plain.t(), "mxfp8"),
    "matmul b": lambda: libmx.matmul(plain, x, "mxfp8"),
    "update": lambda: libmx.statistics("mxfp8").update(x),
    "update_all": lambda: libmx.Statistics.update_all([libmx.statistics("mxfp8")], x),
    "from_sum_max": lambda: libmx.Statistics.from_sum_max("mxfp8", x, x),
    "analyze": lambda: libmx.analyze({"w": x}, "mxfp8"),
    "compare": lambda: libmx.compare({"w": x}, "mxfp8"),
    "cluster": lambda: libmx.cluster({"w": x}, "mxfp8"),
    "diff": lambda: libmx.diff([{"w": plain}, {"w": x}], "mxfp8"),
    "dequantize codes": lambda: libmx.Blocks("mxfp8", (8, 64), x, q.scales).dequantize(),
    "dequantize scales": lambda: libmx.Blocks("mxfp8", (8, 64), q.codes, x).dequantize(),
    "torch fake_quantize": lambda: mxt.fake_quantize(x, "mxfp8"),
    "torch clip": lambda: mxt.fake_quantize(x, "mxfp8", ste="clip"),
    "torch Linear": lambda: linear(x),
    "torch save": lambda: mxt.save("x.safetensors", {"w": x}),
    "torch watch": lambda: hooks(mxt.watch(layers, ["mxfp8"])),
    "torch capture": lambda: hooks(mxt.capture(layers, "dumps", [0])).step(),
    "torch watch_norms": lambda: norms.step(),
    "evaluate": lambda: libmx.evaluate("nowhere", x, "mxfp8"),
    "save_checkpoint": lambda: libmx.save_checkpoint(
        {"w": x}, "new", layout="compressed-tensors", recipe="mxfp8", config={"model_type": "llama"}),
    "torch convert_": converted,
}
given = {word for name in calls for word in name.split()}
without = {  # take no tensor, or no more than the functions that make them
    "Analysis", "Blocks", "Document", "Error", "Gate", "Model", "Recipe", "Statistics", "dialects",
    "ForbiddenFileError", "MissingFileError", "explain", "formats", "gate", "lint", "open", "recipe", "report",
    "set_num_threads", "statistics", "Conversion",
    "LinearConfig", "NormAlert", "NormWatch", "Watch", "from_mx_specs"}
assert not {*libmx.__all__, *mxt.__all__} - given - without
for name, call in calls.items():
    print(json.dumps({"begins": name}), flush=True)
    try:
        call()
        said = None
    except libmx.Error as e:
        said = str(e)
    except Exception as e:
        said = [type(e).__name__, str(e)]
    print(json.dumps({"name": name, "said": said}), flush=True)
os._exit(0)  # without the destructors of half-made tensors
'''


def told(make, folder):
    """What each function said: None, the text of an Error, or another exception."""
    lines = make.strip("\n").splitlines()
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    script = SCRIPT.replace("MAKE", "\n".join(line[indent:] for line in lines))
    if hasattr(torch, "compiler"):
        torch.compiler.disable(len)  # imports once what watch() imports
    child = os.fork()
    if child == 0:
        try:
            os.chdir(folder)
            output = os.open("said", os.O_CREAT | os.O_WRONLY)
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.stdout = sys.stderr = os.fdopen(output, "w", 1)
            torch.set_num_threads(1)
            exec(compile(script, "script", "exec"), {"__name__": "script"})
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    text = (folder / "said").read_text()
    printed = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    for line in printed:
        if "skipped" in line:
            pytest.skip(line["skipped"])
    last = printed[-1] if printed else "nothing"
    assert status == 0, f"ended with status {status} after {last}: {text[-2000:]}"
    return {line["name"]: line["said"] for line in printed if "name" in line}


# Functions of PyTorch are called before libmx here, and may refuse first, or need no memory.
BY_PYTORCH = {"torch fake_quantize", "torch clip", "torch Linear", "torch convert_"}
NO_NUMBERS = ("coo", "csr", "bsr", "csc", "mkldnn", "nested", "jagged", "quantized", "quantized by channel",
              "masked", "complex", "conjugate")  # which are refused before PyTorch does
OWN_PARTS = {"torch watch", "torch capture", "torch watch_norms"}  # what a DTensor has of this process


@pytest.mark.parametrize("kind", KINDS)
def test_one_line_each(kind, tmp_path):
    make, expected = KINDS[kind]
    said = told(make, tmp_path)
    assert len(said) == 25
    for name, text in said.items():
        if name in BY_PYTORCH and (text is None or isinstance(text, list)):
            assert kind not in NO_NUMBERS or name == "torch convert_", (name, text)
            continue
        if name in OWN_PARTS and kind in ("sharded", "fsdp", "collective"):
            assert text is None, (name, text)
            continue
        if "no type of numbers" in expected:  # or a target, or bits
            assert text is None or isinstance(text, (str, list)), (name, text)
            continue
        assert isinstance(text, str), (name, text)
        assert "\n" not in text and len(text) < 200, (name, text)
        if name == "torch save" and "only floating types" in text:
            continue
        assert re.search(expected, text), (name, text)
        if name in ("analyze", "compare", "cluster", "diff", "save_checkpoint"):
            assert text.startswith("w: "), text
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("kind", FINE)
def test_tensors_with_memory(kind, tmp_path):
    said = told(FINE[kind], tmp_path)
    for name in ("quantize", "fake_quantize", "cast", "update", "update_all", "torch fake_quantize",
                 "torch save", "torch watch", "torch capture", "analyze"):
        if kind == "empty and freed" and name == "analyze":
            continue  # there is nothing to measure
        assert said[name] is None, (name, said[name])


def test_negative_views_have_their_values():
    x = torch.arange(64.0).reshape(2, 32)
    negative = torch.complex(x, x).conj().imag
    assert negative.is_neg()
    for f in (lambda v: libmx.fake_quantize(v, "mxfp8"), lambda v: libmx.cast(v, "e4m3"),
              lambda v: libmx.quantize(v, "mxfp8").codes,
              lambda v: libmx.matmul(v, v.t(), "mxfp8"), lambda v: mxt.fake_quantize(v, "mxfp8")):
        assert np.array_equal(np.asarray(f(negative)), np.asarray(f(-x)))


@pytest.mark.skipif(not hasattr(library, "custom_op"), reason="PyTorch before 2.4")
@pytest.mark.parametrize("where", ["meta", "fake"])
def test_shapes_without_values_pass_through_a_model(where):
    config = mxt.LinearConfig("mxfp8", "mxfp8", "mxfp8", accumulate="exact")
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode() if where == "fake" else torch.device("meta"):
        layer = mxt.Linear(64, 32, config=config)
        x = torch.randn(8, 64, requires_grad=True)
        for y in (layer(x), mxt.fake_quantize(x, "nvfp4", ste="clip")):
            y.sum().backward()
        assert layer(x).shape == (8, 32) and layer.weight.grad.shape == (32, 64)
        assert x.grad.shape == x.shape
