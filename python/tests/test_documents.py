# SPDX-License-Identifier: Apache-2.0
"""Documents: the bytes that the command writes, from files and from arrays."""
import json
import os
import pickle
import struct
import subprocess

import ml_dtypes
import numpy as np
import pytest

import libmx

RECIPES = [
    "mxfp8:scale=floor", "mxfp8:scale=rceil", "mxfp6:scale=even", "mxfp6_e2m3", "mxfp4:scale=even",
    "mxint8", "nvfp4", "nvfp4:scale=two-level", "mxfp4:block=16x16", "fp8_1x128",
    "mxfp4:round=stochastic,seed=7", "mxfp4:dialect=torchao", "mxfp4:dialect=microxcaling",
    "mxfp4:offset=fp16", "mxfp4:transform=hadamard", "mxfp4:axis=0",
]
_codes = {"float32": "F32", "bfloat16": "BF16", "float16": "F16", "int64": "I64"}


def write_safetensors(path, tensors):
    header, parts, at = {}, [], 0
    for name, x in tensors.items():
        data = np.ascontiguousarray(x).tobytes()
        header[name] = {"dtype": _codes[x.dtype.name], "shape": list(x.shape),
                        "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def tensors(step=0):
    rng = np.random.default_rng(5)
    wide = lambda *shape: rng.standard_normal(shape) * np.exp(rng.standard_normal(shape))
    drift = 1 + 0.02 * step
    return {
        "layers.0.mlp.up_proj.weight": (wide(64, 96) * drift).astype(np.float32),
        "layers.0.input_layernorm.weight": (1 + 0.01 * wide(256) * drift).astype(np.float32),
        "layers.1.mlp.up_proj.weight": wide(32, 160).astype(ml_dtypes.bfloat16),
        "layers.1.attn.q_proj.weight": (0.02 * wide(48, 64) * drift).astype(np.float16),
        "rotary.position_ids": np.arange(32, dtype=np.int64),
    }


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    write_safetensors(path, tensors())
    return path


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dumps")
    paths = [folder / f"step{n}.safetensors" for n in (100, 200, 1000)]
    for at, path in enumerate(paths):
        write_safetensors(path, tensors(at))
    return paths


def run(mx, *words, fine=(0,)):
    # As wide as a table of Python's: pytest may set COLUMNS, which the command follows.
    settings = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run([mx, *map(str, words)], capture_output=True, env=settings)
    assert done.returncode in fine, done.stderr.decode()
    return done.stdout


def saved(document, folder):
    document.save(folder / "python.json")
    return (folder / "python.json").read_bytes()


@pytest.mark.parametrize("recipe", RECIPES)
def test_analyses_of_every_family(mx, model, tmp_path, recipe):
    expected = run(mx, "analyze", model, "-r", recipe, "--json", "-", "-q")
    a = libmx.analyze(model, recipe)
    assert saved(a, tmp_path) == expected
    assert a.records == json.loads(expected)["results"]
    assert a.table().encode() == run(mx, "analyze", model, "-r", recipe)


@pytest.mark.parametrize("words, keywords", [
    ([], {}),
    (["--histograms"], {"histograms": True}),
    (["--decompose"], {"decompose": True}),
    (["--regret"], {"regret": True}),
    (["-t", "*mlp*"], {"tensors": "*mlp*"}),
    (["--role", "norm", "--norm-bias", "0.5"], {"roles": "norm", "norm_bias": 0.5}),
    (["--role-pattern", "embedding=*q_proj*"], {"role_patterns": ["embedding=*q_proj*"]}),
    (["--sha256"], {"sha256": True}),
    (["--integers"], {"integers": True}),
    (["--transpose", "*up_proj*"], {"transposed": ["*up_proj*"]}),
    (["--split", "*q_proj.weight=a:16,b:32"], {"splits": "*q_proj.weight=a:16,b:32"}),
    (["--policy", "training", "--target", "b200"], {"policy": "training", "target": "b200"}),
])
def test_options(mx, model, tmp_path, words, keywords):
    expected = run(mx, "analyze", model, *words, "--json", "-", "-q")
    assert saved(libmx.analyze(model, **keywords), tmp_path) == expected
    with libmx.open(model, **{k: v for k, v in keywords.items()
                              if k in ("integers", "transposed", "splits")}) as opened:
        again = libmx.analyze(opened, **keywords)
    if not {"integers", "transposed", "splits"} & set(keywords):
        assert saved(again, tmp_path) == expected
    else:
        assert again.records == json.loads(expected)["results"]


def test_pages(mx, model, tmp_path):
    run(mx, "analyze", model, "-r", "mxfp8", "-r", "mxfp4", "--html", tmp_path / "a.html", "--json",
        tmp_path / "a.json", "-q")
    a = libmx.analyze(model, ["mxfp8", "mxfp4"], page=True)
    assert saved(a, tmp_path) == (tmp_path / "a.json").read_bytes()
    summary = a.report(tmp_path / "p.html")
    assert (tmp_path / "p.html").read_bytes() == (tmp_path / "a.html").read_bytes()
    assert summary + "\n" == run(mx, "report", tmp_path / "a.json", "--summary").decode()
    plain = libmx.analyze(model, ["mxfp8", "mxfp4"])
    plain.save(tmp_path / "b.json")
    run(mx, "report", tmp_path / "b.json", "-o", tmp_path / "b.html", "-q", "--target", "b200",
        "--title", "T")
    plain.report(tmp_path / "q.html", target="b200", title="T")
    assert (tmp_path / "q.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    fragment = a._repr_html_()
    assert "<svg" in fragment and "<table>" in fragment
    assert "<script" not in fragment and "http" not in fragment.replace("http://www.w3.org", "")


def test_arrays_are_measured_as_files_are(model):
    of_file = libmx.analyze(model, RECIPES).records
    arrays = tensors()
    of_arrays = libmx.analyze(arrays, RECIPES)
    # The last axis of an array is stated, that of a file is assumed.
    alike = lambda r: {k: v for k, v in r.items() if k not in ("file", "contraction")}
    assert [alike(r) for r in of_arrays.records] == [alike(r) for r in of_file]
    assert all(r["file"] == "memory" for r in of_arrays.records)
    assert [s["tensor"] for s in of_arrays.skipped] == ["rotary.position_ids"]
    parts = libmx.analyze(arrays, "mxfp8", splits="*q_proj.weight=a:16,b:32", tensors="*q_proj*")
    assert parts.column("tensor") == [f"layers.1.attn.q_proj.weight.{p}" for p in "ab"]
    assert "Repeat" not in str(of_arrays)  # there is no command for arrays
    chosen = libmx.analyze(arrays, "mxfp8", tensors=["*norm*"])
    assert [r["tensor"] for r in chosen.records] == ["layers.0.input_layernorm.weight"]


def test_comparisons(mx, model, tmp_path):
    expected = run(mx, "compare", model, "--element", "e2m1", "--scale", "floor,even", "--block",
                   "1x16,1x32", "--json", "-", "-q")
    c = libmx.compare(model, axes={"element": "e2m1", "scale": ["floor", "even"],
                                   "block": ["1x16", "1x32"]})
    assert saved(c, tmp_path) == expected
    assert saved(libmx.compare(model), tmp_path) == run(mx, "compare", model, "--json", "-", "-q")
    with pytest.raises(libmx.Error, match="unknown axis 'blocks'"):
        libmx.compare(model, axes={"blocks": "1x16"})


def test_clusters(mx, model, tmp_path):
    c = libmx.cluster(model)
    assert saved(c, tmp_path) == run(mx, "cluster", model, "--json", "-", "-q")
    assert c.table().encode() == run(mx, "cluster", model)
    assert c.content["findings"]


def test_differences(mx, dumps, tmp_path):
    expected = run(mx, "diff", *dumps, "-r", "mxfp8:scale=floor", "--json", "-", "-q")
    d = libmx.diff(dumps, "mxfp8:scale=floor")
    assert saved(d, tmp_path) == expected
    run(mx, "diff", *dumps, "-r", "mxfp8:scale=floor", "--html", tmp_path / "a.html", "-q")
    d.report(tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    arrays = [tensors(at) for at in range(3)]
    figures = lambda r: {k: v for k, v in r.items()
                         if not k.startswith(("file", "label", "step"))}
    of_arrays = libmx.diff(arrays, "mxfp8:scale=floor", labels=["100", "200", "1000"])
    assert [figures(r) for r in of_arrays.records] == [figures(r) for r in d.records]
    models = [libmx.open(p) for p in dumps]
    of_models = libmx.diff(models, "mxfp8:scale=floor", labels=["100", "200", "1000"])
    assert [figures(r) for r in of_models.records] == [figures(r) for r in d.records]


def test_differences_of_results(mx, model, tmp_path):
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    run(mx, "analyze", model, "-r", "mxfp8:scale=floor", "--json", a)
    run(mx, "analyze", model, "-r", "mxfp8:scale=floor", "--norm-bias", "1", "--json", b)
    run(mx, "diff", a, b, "--json", tmp_path / "d.json")
    d = libmx.diff([a, b])
    assert d.content["schema"] == "mx.changes/1" and not d.content["identical"]
    assert saved(d, tmp_path) == (tmp_path / "d.json").read_bytes()
    kept = libmx.analyze(model, "mxfp8:scale=floor")
    assert libmx.diff([a, kept], labels=["file", "memory"]).content["identical"]
    assert libmx.diff([kept, b]).records == [
        {**r, "label_a": "results", "label_b": r["label_b"]} for r in d.records]
    for wrong in ([a, model], [kept, {}], [kept], [kept, kept, kept]):
        with pytest.raises(libmx.Error):
            libmx.diff(wrong)
    with pytest.raises(libmx.Error, match="results files"):
        libmx.diff([kept, kept], raw=True)


def test_gates(mx, model, tmp_path):
    a = libmx.analyze(model, ["mxfp8", "mxfp4"])
    a.save(tmp_path / "results")
    for rules in (["sqnr_db>1"], ["sqnr_db>25", "norm:saturated_block_rate==0 or null"],
                  ["policy"]):
        words = [w for r in rules for w in ("--rule", r)]
        expected = run(mx, "gate", tmp_path / "results", *words, "--json", "-", "-q", fine=(0, 1))
        code = subprocess.run([mx, "gate", str(tmp_path / "results"), *words, "-q"]).returncode
        g = a.gate(rules)
        text = saved(g, tmp_path)
        assert text.replace(b'"results"', str(tmp_path / "results").encode().join([b'"', b'"']), 1
                            ).count(b"\n") == expected.count(b"\n")
        assert g.records == json.loads(expected)["results"]
        assert bool(g) == g.holds == (code == 0)
        assert libmx.gate(tmp_path / "results", rules).content == json.loads(expected)
        assert bool(pickle.loads(pickle.dumps(g))) == bool(g)
    with pytest.raises(libmx.Error, match="clamp_rate"):
        a.gate("clamp_rat<1")


def test_several_results_make_one_page(mx, model, dumps, tmp_path):
    a, d = libmx.analyze(model, "mxfp8"), libmx.diff(dumps)
    a.save(tmp_path / "a.json")
    d.save(tmp_path / "d.json")
    run(mx, "report", tmp_path / "a.json", tmp_path / "d.json", "-o", tmp_path / "a.html", "-q")
    libmx.report([a, d], tmp_path / "b.html")
    libmx.report([tmp_path / "a.json", tmp_path / "d.json"], tmp_path / "c.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "c.html").read_bytes()


def test_documents_are_values(model):
    a = libmx.analyze(model, "mxfp8")
    b = pickle.loads(pickle.dumps(a))
    assert type(b) is libmx.Analysis and b.content == a.content and str(b) == str(a)
    assert a.column("tensor") == [r["tensor"] for r in a.records]
    assert "mx.analysis/1" in repr(a) and len(a) == 4


def test_lists_of_the_command(mx):
    by_name = libmx.formats()
    assert list(by_name.values()) == json.loads(
        run(mx, "explain", "formats", "--json", "-"))["results"]
    assert by_name["e4m3"]["max"] == 448
    assert list(libmx.dialects().values()) == json.loads(
        run(mx, "explain", "dialects", "--json", "-"))["results"]
    for words in (["mxfp4:scale=even"], ["e2m1", "0x7"], ["policy", "training"]):
        e = libmx.explain(*words)
        assert e.table().encode() == run(mx, "explain", *words)
    with pytest.raises(libmx.Error, match="e4m3"):
        libmx.explain("e4m4")


@pytest.mark.parametrize("call", [
    lambda path: libmx.analyze(path, "mxfp5"),
    lambda path: libmx.analyze(path, "mxfp8", tensors="nothing*"),
    lambda path: libmx.analyze(path, "mxfp8", roles="normal"),
    lambda path: libmx.analyze(path, "mxfp8", target="b2000"),
    lambda path: libmx.analyze({}, "mxfp8"),
    lambda path: libmx.analyze({"x": np.zeros((0, 32), np.float32)}, "mxfp8"),
    lambda path: libmx.analyze("/nowhere", "mxfp8"),
    lambda path: libmx.cluster(path, "mxfp8:scale=no"),
    lambda path: libmx.diff([path]),
    lambda path: libmx.gate(path, "sqnr_db>1"),
    lambda path: libmx.report(path),
])
def test_refusals(model, call):
    with pytest.raises(libmx.Error) as caught:
        call(model)
    assert "\n" not in str(caught.value)


def test_unknown_keywords(model):
    with pytest.raises(TypeError, match="recipies"):
        libmx.analyze(model, recipies="mxfp8")


def test_threads_do_not_matter(model, tmp_path):
    one = saved(libmx.analyze(model, RECIPES, threads=1), tmp_path)
    for threads in (2, 7):
        assert saved(libmx.analyze(model, RECIPES, threads=threads), tmp_path) == one


def test_raw_files(mx, tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(b"head" + np.arange(-64, 64, dtype=np.float32).tobytes())
    expected = run(mx, "analyze", path, "--shape", "4x32", "--dtype", "f32", "--byte-offset", "4",
                   "-r", "mxfp4", "--json", "-", "-q")
    a = libmx.analyze(path, "mxfp4", shape=(4, 32), dtype="f32", offset=4)
    assert saved(a, tmp_path) == expected
    with libmx.open(path, shape=(4, 32), dtype="f32", offset=4) as m:
        (name,) = m.keys()
        assert np.array_equal(m.rows(name, 1, 3), np.arange(-32, 32).reshape(2, 32))
        assert m.files == [(os.fspath(path), 516)]


def test_parts_are_merged_into_the_bytes_of_one_call(tmp_path, mx, model):
    def call(**more):
        return [libmx.analyze(model, ["mxfp4", "nvfp4"], tensors="layers.*", **more),
                libmx.compare(model, axes={"element": ["e4m3", "e2m1"], "scale": "floor"},
                              tensors="layers.*", groups="layer,role", regret=False, **more)]

    def saved(document, name):
        document.save(tmp_path / name)
        return (tmp_path / name).read_bytes()

    whole = [saved(a, "one.json") for a in call()]
    parts = {}
    for i in (2, 1, 3):
        for at, a in enumerate(call(shard=(i, 3), threads=i)):
            saved(a, f"{at}-part-{i}.json")
            parts.setdefault(at, []).append(tmp_path / f"{at}-part-{i}.json")
    analyses = [libmx.analyze(model, ["mxfp4", "nvfp4"], tensors="layers.*", parts=parts[0]),
                libmx.compare(model, axes={"element": ["e4m3", "e2m1"], "scale": "floor"},
                              tensors="layers.*", groups="layer,role", regret=False,
                              parts=parts[1])]
    assert [saved(a, "all.json") for a in analyses] == whole
    # The command merges them as well.
    for at in (0, 1):
        subprocess.run([mx, "merge", *parts[at], "--input", model, "--json",
                        tmp_path / "all.json", "--quiet"], check=True)
        assert (tmp_path / "all.json").read_bytes() == whole[at]
    with pytest.raises(libmx.Error, match="1 of 3 parts are missing: 2"):
        libmx.analyze(model, ["mxfp4", "nvfp4"], tensors="layers.*", parts=parts[0][1:])
    with pytest.raises(libmx.Error, match="another call"):
        libmx.analyze(model, ["mxfp4", "mxfp8"], tensors="layers.*", parts=parts[0])
    with pytest.raises(libmx.Error, match="parts are of files"):
        libmx.analyze({"x": np.ones((4, 32), np.float32)}, "mxfp4", shard="1/2")
    with pytest.raises(libmx.Error, match="1/7 to 7/7"):
        libmx.analyze(model, "mxfp4", shard="3/2")


def test_addresses_need_libcurl(tmp_path):
    # A build with it says what the address lacks.
    with pytest.raises(libmx.Error, match="without libcurl|127.0.0.1"):
        libmx.open("http://127.0.0.1:9/model.safetensors")
