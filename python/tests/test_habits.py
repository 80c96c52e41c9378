# SPDX-License-Identifier: Apache-2.0
"""What Python programmers try first: calls, errors, notebooks, tab completion and doc strings."""
import doctest
import inspect
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import libmx

x = np.random.default_rng(1).standard_normal((8, 64), dtype=np.float32)


def tensors(analysis):
    return [r["tensor"] for r in analysis]


def test_arrays_are_named_by_their_place():
    expected = libmx.analyze({"0": x}, "mxfp8").records
    assert libmx.analyze(x, "mxfp8").records == expected
    assert libmx.analyze([x], "mxfp8").records == expected
    assert libmx.analyze(memoryview(x), "mxfp8").records == expected
    assert tensors(libmx.analyze([x, x], "mxfp8")) == ["0", "1"]
    assert tensors(libmx.analyze([("a", x), ("b", x)], "mxfp8")) == ["a", "b"]
    assert tensors(libmx.compare(x, "mxfp8", axes={"scale": "even"}))[0] == "0"
    assert libmx.cluster(x, "mxfp8").content["schema"]
    assert libmx.diff([x, 2 * x], "mxfp8").records == libmx.diff([{"0": x}, {"0": 2 * x}], "mxfp8").records
    with pytest.raises(libmx.Error, match="item 1 is a int: paths, or arrays, are expected"):
        libmx.analyze([x, 3], "mxfp8")
    with pytest.raises(libmx.Error, match="int: neither paths nor arrays"):
        libmx.analyze(3, "mxfp8")
    with pytest.raises(libmx.Error, match="parts are of files"):
        libmx.analyze(x, "mxfp8", shard="1/2")


def test_tensors_and_modules_have_the_names_of_parameters():
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.LayerNorm(8))
    expected = libmx.analyze(module.state_dict(), "mxfp8").records
    assert {r["tensor"] for r in expected} == {"0.weight", "0.bias", "1.weight", "1.bias"}
    for source in (module, module.named_parameters(), list(module.named_parameters())):
        assert libmx.analyze(source, "mxfp8").records == expected
    assert tensors(libmx.analyze(module.parameters(), "mxfp8")) == ["0", "1", "2", "3"]
    assert libmx.analyze(module[0].weight, "mxfp8").records[0]["elements"] == 512


def test_files_that_are_not_there(tmp_path):
    for call in (lambda: libmx.open(tmp_path / "x.safetensors"), lambda: libmx.analyze(str(tmp_path / "*.npy")),
                 lambda: libmx.report([tmp_path / "x.json"])):
        with pytest.raises(FileNotFoundError) as raised:
            call()
        assert isinstance(raised.value, libmx.Error) and isinstance(raised.value, libmx.MissingFileError)
        assert str(tmp_path) in str(raised.value) and "\n" not in str(raised.value)
        assert raised.value.kind == "input" and raised.value.file.startswith(str(tmp_path))
        assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    (tmp_path / "x.safetensors").write_bytes(b"no checkpoint")
    with pytest.raises(libmx.Error) as raised:
        libmx.open(tmp_path / "x.safetensors")
    assert not isinstance(raised.value, OSError)


def test_keys_of_recipes_as_keywords():
    assert libmx.recipe("mxfp4", scale="even", block=16) == libmx.recipe("mxfp4:scale=even,block=1x16")
    assert libmx.recipe("mxfp4:scale=even", scale="rceil") == libmx.recipe("mxfp4:scale=rceil")
    assert libmx.recipe("mxfp8", block=(16, 16)) == libmx.recipe("mxfp8:block=16x16")
    assert libmx.recipe("mxfp8", flush_subnormals=True) == libmx.recipe("mxfp8:flush_subnormals=true")
    q = libmx.quantize(x, recipe="mxfp4", axis=0, round="zero")
    assert q.recipe == libmx.recipe("mxfp4:axis=0,round=zero") and q.scales.shape == (1, 64)
    assert np.array_equal(libmx.fake_quantize(x, recipe="mxfp4", axis=0, round="zero"), q.dequantize())
    with pytest.raises(libmx.Error, match="colour"):
        libmx.quantize(x, "mxfp4", colour="red")


def test_documents_are_sequences_of_records():
    a = libmx.analyze(x, ["mxfp8", "mxfp4"])
    assert list(a) == a.records and a[1] == a.records[1] and len(a) == 2
    pandas = pytest.importorskip("pandas")
    assert list(a.to_pandas()["recipe"]) == ["mxfp8", "mxfp4"] and isinstance(a.to_pandas(), pandas.DataFrame)


def test_figures_are_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    a = libmx.analyze({"w0": x, "w1": 0 * x, "norm": x[0]}, ["mxfp8", "mxfp4"])
    axes = a.plot("sqnr_db", tensors="w*")
    assert [line.get_label() for line in axes.lines] == ["mxfp8", "mxfp4"]
    first, gap = axes.lines[0].get_ydata()
    assert first == a[0]["sqnr_db"] and np.isnan(gap) and a.column("sqnr_db")[2] is None
    assert a.plot("rmse", ax=axes) is axes
    with pytest.raises(KeyError, match="'v\\*' has the member 'sqnr_db'"):
        a.plot(tensors="v*")
    pyplot.close("all")


def test_unpacking_leaves_nothing_out():
    codes, scales = libmx.quantize(x, "mxfp4")
    assert codes.dtype == scales.dtype == np.uint8
    codes, scales, tensor_scale = q = libmx.quantize(x, "nvfp4")
    assert tensor_scale == q.tensor_scale > 0
    codes, scales, offsets = q = libmx.quantize(x, "mxint4:offset=fp16")
    assert offsets is q.offsets


def test_blocks_are_arrays():
    q = libmx.quantize(x, "mxfp8")
    assert np.array_equal(np.asarray(q), q.dequantize()) and q.nbytes == 8 * 64 + 8 * 2
    assert np.asarray(q, dtype=np.float64).dtype == np.float64


def test_notebooks():
    s = libmx.statistics("mxfp8", "a<b")
    s.update(x)
    assert repr(s) == "<libmx.Statistics of a<b under mxfp8>"
    for shown, part in ((libmx.recipe("mxfp8"), "scale rule"), (libmx.quantize(x, "nvfp4"), "<td>(8, 64)</td>"),
                        (s, "<td>a&lt;b</td>")):
        assert part in shown._repr_html_()


def test_names_are_those_of_the_package():
    done = subprocess.run([sys.executable, "-c", """
from libmx import *
assert open is __builtins__.open and analyze
import libmx
print(*dir(libmx))
"""], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {*libmx.__all__, "open", "torch", "__doc__", "__version__"}
    assert all(hasattr(libmx, name) for name in libmx.__all__)
    torch = pytest.importorskip("torch")
    import libmx.torch as mxt
    assert torch and dir(mxt) == sorted([*mxt.__all__, "__doc__"])


def public_functions():
    found = [(name, getattr(libmx, name)) for name in [*libmx.__all__, "open"]]
    return [(name, f) for name, f in found if inspect.isfunction(f)]


def run_examples(owner, name):
    (test,) = doctest.DocTestFinder(recurse=False).find(owner, name, globs={"np": np, "libmx": libmx})
    assert test.examples
    said = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize("name,f", public_functions())
def test_doc_strings_say_what_goes_in_and_out_with_an_example_that_runs(name, f, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = inspect.getdoc(f).splitlines()
    sections = [line for line, rule in zip(lines, lines[1:]) if set(rule) == {"-"}]
    parameters = list(inspect.signature(f).parameters)
    needed = ["Parameters", "Returns", "Raises", "Examples"]
    assert sections == (needed if parameters else ["Returns", "Examples"])
    told = " ".join(lines).partition("Parameters")[2].partition("Returns")[0].replace("*", "")
    missing = [p for p in parameters if p not in told.replace(",", " ").split()]
    assert not missing
    run_examples(f, name)


def test_the_module_has_an_example():
    run_examples(libmx, "libmx")


def test_advice_is_python():
    from libmx._documents import in_python
    assert in_python("1 has no role (--role-pattern\nROLE=GLOB), no task was evaluated (--eval); see mx "
                     "analyze.") == "1 has no role (role_patterns=\"ROLE=GLOB\"), no task was evaluated (eval=); " \
        "see mx analyze.".replace("mx analyze", "libmx.analyze")
    # Those of a terminal, of other programs, and of stylesheets stay.
    for text in ("$ mx analyze a.safetensors -r mxfp8 --group x", "run 'mx tensors' on it", "a--eval b", "--mx-ink",
                 "'mx quantize x --layout modelopt'"):
        assert in_python(text) == text
    x = np.random.default_rng(1).standard_normal((64, 128), dtype=np.float32)
    a = libmx.analyze({"x": x}, ["mxfp8", "mxfp4", "nvfp4"])
    said = [str(a), a._repr_html_(), a.report(), str(libmx.compare(x, ["mxfp4"], axes={"scale": ["floor", "even"]})),
            str(libmx.cluster({"norm.weight": np.full(256, 0.96, np.float32)}, "mxfp8"))]
    for call in (lambda: libmx.analyze({"x": x}, "mxfp8", tensors="y*"), lambda: libmx.analyze(x, "mxfp8", target="b300")):
        with pytest.raises(libmx.Error) as caught:
            call()
        said.append(str(caught.value))
    for text in said:
        assert not re.search(r"(?<![\w-])--(?!mx)[a-z]|\bmx (analyze|explain|eval|cluster|compare)", text), text
