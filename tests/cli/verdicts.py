#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether analyze, compare, cluster, report and plan agree on recipe, bytes and exactness.

    verdicts.py MX [FILE...]
    verdicts.py MX --seeds FIRST LAST

Without files, on checkpoints that it makes: quantized layouts, exact and constant tensors, empty
ones, tied ones, and models drawn by a seed. No sum of stored bytes may exceed the file, and no output
may say nan.
"""
import array
import collections
import json
import os
import pickle
import random
import re
import struct
import subprocess
import sys
import types
import zipfile

MX = os.path.realpath(sys.argv[1])
CHANCE = random.Random(0)
E2M1 = [0, .5, 1, 1.5, 2, 3, 4, 6]


def f32(values):
    return array.array("f", values).tobytes()


def normal(rows, cols, scale=0.02):
    return "F32", [rows, cols], f32(CHANCE.gauss(0, scale) for _ in range(rows * cols))


def codes(dtype, rows, cols, least=0, most=255):
    return dtype, [rows, cols], bytes(CHANCE.randint(least, most) for _ in range(rows * cols))


def e4m3(rows, cols):
    """Codes of E4M3 without NaN."""
    return "F8_E4M3", [rows, cols], bytes(
        CHANCE.randint(0, 126) | CHANCE.randint(0, 1) << 7 for _ in range(rows * cols))


def number(x):
    return "F32", [], f32([x])


def exact_mxfp4(rows, cols):
    """Blocks of 32 values of E2M1, one of them the largest."""
    return "F32", [rows, cols], f32(
        6 if i % 32 == 0 else CHANCE.choice(E2M1) * CHANCE.choice([1, -1])
        for i in range(rows * cols))


def safetensors(path, tensors):
    head, blob = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        head[name] = {"dtype": dtype, "shape": shape,
                      "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + blob)


def write_pt(path, storages, tensors):
    """As torch.save writes it. `storages`: data by key; `tensors`: by name a key, shape, strides and
    offset."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    sys.modules.update({"torch": torch, "torch._utils": utils})
    torch._utils = utils
    kinds = {4: type("FloatStorage", (), {"__module__": "torch"}),
             1: type("ByteStorage", (), {"__module__": "torch"})}
    torch.FloatStorage, torch.ByteStorage = kinds[4], kinds[1]

    def _rebuild_tensor_v2(*_):
        pass

    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2

    class Storage:
        def __init__(self, key):
            dtype, _, self.data = storages[key]
            self.key, self.size = key, 4 if dtype == "F32" else 1

    class Tensor:
        def __init__(self, key, shape, strides, offset=0):
            self.state = Storage(key), offset, shape, strides, False, collections.OrderedDict()

        def __reduce__(self):
            return _rebuild_tensor_v2, self.state

    class Pickler(pickle._Pickler):
        def persistent_id(self, obj):
            if isinstance(obj, Storage):
                return "storage", kinds[obj.size], obj.key, "cpu", len(obj.data) // obj.size
            return None

    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
        with z.open("archive/data.pkl", "w") as f:
            Pickler(f, 2).dump({name: Tensor(*of) for name, of in tensors.items()})
        z.writestr("archive/byteorder", "little")
        for key, (_, _, data) in storages.items():
            z.writestr(f"archive/data/{key}", data)
        z.writestr("archive/version", "3\n")


def tied_pt(path):
    """Two names of one storage, and views of parts of one."""
    write_pt(path, {"0": normal(128, 64), "1": normal(64, 64), "2": normal(64, 96)}, {
        "wte.weight": ("0", (128, 64), (64, 1)),
        "lm_head.weight": ("0", (128, 64), (64, 1)),
        "first.rows": ("0", (16, 64), (64, 1)),
        "layers.0.mlp.up_proj.weight": ("1", (64, 64), (64, 1)),
        "layers.1.mlp.up_proj.weight": ("1", (64, 64), (64, 1)),
        "layers.2.mlp.up_proj.weight": ("1", (64, 64), (1, 64)),
        "layers.0.q.weight": ("2", (64, 32), (96, 1)),
        "layers.0.k.weight": ("2", (64, 32), (96, 1), 32),
        "layers.0.v.weight": ("2", (64, 32), (96, 1), 64),
    })


def tied_codes_pt(path):
    """A quantized matrix under two names, and another that shares its scales."""
    up = "layers.{}.mlp.up_proj.weight"
    tensors = {}
    for layer, key in enumerate("001"):
        tensors[up.format(layer)] = key, (64, 64), (64, 1)
        tensors[up.format(layer) + "_scale"] = "2", (64, 4), (4, 1)
    write_pt(path, {"0": codes("U8", 64, 64), "1": codes("U8", 64, 64),
                    "2": codes("U8", 64, 4, 120, 126)}, tensors)


def drawn(seed):
    """A checkpoint of one to six tensors: roles, dtypes, values, layouts and shapes by chance."""
    draw = random.Random(seed)
    tensors = {}
    for layer in range(draw.randint(1, 6)):
        rows, cols = draw.choice([8, 32, 64, 96]), draw.choice([32, 64, 96, 128, 172, 33])
        name = f"model.layers.{layer}." + draw.choice(
            ["self_attn.q_proj", "mlp.up_proj", "mlp.down_proj", "input_layernorm", "mlp.gate"])
        kind = draw.choice(["plain", "plain", "plain", "exact", "zeros", "constant", "sparse", "tails",
                            "mxfp4", "nvfp4", "fp8"])
        w, scale = name + ".weight", 10 ** draw.uniform(-8, 4)
        if kind in ("exact", "mxfp4", "nvfp4", "fp8"):
            cols = 64
        values = {
            "plain": lambda: draw.gauss(0, scale), "zeros": lambda: 0, "constant": lambda: scale,
            "sparse": lambda: draw.gauss(0, scale) if draw.random() < .02 else 0,
            "tails": lambda: draw.gauss(0, scale) * 10 ** draw.gauss(0, 1)}.get(kind)
        if values:
            numbers = f32(values() for _ in range(rows * cols))
            half = draw.random() < .5  # the upper bytes of float32 are a bfloat16
            if half:
                numbers = b"".join(numbers[i + 2:i + 4] for i in range(0, len(numbers), 4))
            tensors[w] = "BF16" if half else "F32", [rows, cols], numbers
        elif kind == "exact":
            tensors[w] = exact_mxfp4(rows, cols)
        elif kind == "fp8":
            tensors[w] = e4m3(rows, cols)
            tensors[w + "_scale"] = number(scale)
        elif kind == "mxfp4":
            tensors[w] = codes("U8", rows, cols)
            tensors[w + "_scale"] = codes("U8", rows, cols // 16, 110, 130)
        else:
            tensors[w] = codes("U8", rows, cols)
            tensors[w + "_scale"] = codes("F8_E4M3", rows, cols // 8, 50, 100)
            tensors[w + "_scale_2"] = number(scale)
    path = f"drawn-{seed}.safetensors"
    safetensors(path, tensors)
    return path


def models():
    """The checkpoints: a path, and whether an operand of it is quantized."""
    q, up = "model.layers.0.self_attn.q_proj.weight", "model.layers.0.mlp.up_proj.weight"

    def made(name, tensors, quantizes):
        safetensors(name + ".safetensors", tensors)
        return name + ".safetensors", quantizes

    mxfp4 = {q: codes("U8", 64, 64), q + "_scale": codes("U8", 64, 4, 120, 126)}
    nvfp4 = {q: codes("U8", 64, 64), q + "_scale": codes("F8_E4M3", 64, 8, 50, 100),
             q + "_scale_2": number(0.01)}
    yield made("mxfp4", mxfp4, False)
    yield made("mixed", {**mxfp4, up: normal(64, 128)}, True)
    yield made("modelopt-nvfp4", nvfp4, False)
    packed = "model.layers.0.self_attn.q_proj.weight_"
    yield made("compressed-nvfp4", {packed + "packed": codes("U8", 64, 64),
                                    packed + "scale": codes("F8_E4M3", 64, 8, 50, 100),
                                    packed + "global_scale": number(100.0)}, False)
    yield made("fp8-blocks", {q: e4m3(256, 256),
                              q + "_scale_inv": ("F32", [2, 2], f32([.01, .02, .03, .04]))}, False)
    yield made("fp8-rows", {q: e4m3(64, 64), q + "_scale": ("F32", [64, 1], f32([.01] * 64))},
               False)
    yield made("fp8-tensor", {q: e4m3(64, 64), q + "_scale": number(.01)}, False)
    yield made("fp8-plain", {q: e4m3(64, 64)}, False)
    yield made("zeros", {"l.weight": ("F32", [64, 64], bytes(4 * 4096))}, True)
    yield made("zeros-bf16", {"l.weight": ("BF16", [64, 64], bytes(2 * 4096))}, True)
    yield made("constant", {up: ("F32", [64, 64], f32([.3] * 4096)),
                            q: ("F32", [64, 64], f32([1] * 4096))}, True)
    yield made("exact-mxfp4", {up: exact_mxfp4(64, 256)}, True)
    yield made("exact-and-normal", {up: exact_mxfp4(64, 64), q: normal(64, 64)}, True)
    yield made("empty", {"a.weight": ("F32", [0, 32], b""), "b.weight": normal(32, 32)}, True)
    yield made("one-value", {up: ("F32", [32, 32], f32([1] + [0] * 1023))}, True)
    tied_pt("tied.pt")
    yield "tied.pt", True
    tied_codes_pt("tied-codes.pt")
    yield "tied-codes.pt", False
    for seed in range(6):
        yield drawn(seed), None
    # The layouts of published checkpoints.
    here = os.path.dirname(os.path.realpath(__file__))
    subprocess.run([sys.executable, os.path.join(here, "quantized_files.py"), "."], check=True)
    for name in sorted(os.listdir(".")):
        if os.path.isdir(name):
            yield os.path.join(name, "model.safetensors"), None
    # Values that recipes hold exactly, and the codes and scales that mx writes.
    safetensors("plain.safetensors", {up: normal(64, 256), q: normal(96, 128, 3)})
    for recipe in ("mxfp8", "mxfp8:scale=rceil", "nvfp4", "mxfp6", "mxfp4:scale=even"):
        for option in ([], ["--packed"]):
            name = re.sub(r"\W", "-", recipe) + "".join(option) + ".safetensors"
            run("quantize", "plain.safetensors", "-r", recipe, "-o", name, "--quiet", *option)
            yield name, None


def run(*words, code=0):
    done = subprocess.run([MX, *words], capture_output=True, text=True)
    assert done.returncode == code, f"mx {' '.join(words)}: {done.stderr}"
    return done.stdout


def load(path):
    with open(path) as f:
        return json.load(f)


def decisions(path, command):
    """By tensor: the recipe, the bytes stored and then, and whether nothing is lost."""
    run("report", f"{command}.json", "--json", path, "--quiet")
    report = load(path)
    said = {}
    for r in report["results"]:
        exact = r["recipe"] not in ("keep", None) and r["sqnr_db"] is None
        said[r["tensor"]] = r["recipe"], r["stored_bytes"], r["bytes"], exact
    totals = report["totals"]
    assert totals["stored_bytes"] == sum(d[1] for d in said.values())
    assert totals["bytes"] == sum(d[2] for d in said.values())
    return said, totals


def no_nan(text, what):
    for line in text.splitlines():
        assert not re.search(r"(?<![\w])-?nan(?![\w])|-0\.0+ dB|-inf|(?<![\w])inf dB", line), (
            what, line)


def check(path, quantizes=None):
    size = os.path.getsize(path)
    first = None
    for command in ("analyze", "compare", "cluster"):
        line = run(command, path, "--json", f"{command}.json", "--summary")
        said, totals = decisions(f"{command}.report", command)
        no_nan(line, command)
        no_nan(run(command, path, "--html", "page.html", "--csv", "table.csv"), command)
        with open("table.csv") as f:
            no_nan(f.read().partition("\n")[2].replace(",", " "), "CSV of " + command)
        no_nan(run("report", f"{command}.json", "--html", "page.html", "--markdown", "-"), "report")
        with open("page.html") as f:
            no_nan(re.sub(r"<script.*?</script>", "", f.read(), flags=re.S), "page of " + command)
        assert 0 < totals["stored_bytes"] <= size, (totals, size)
        results = [r for r in load(f"{command}.json")["results"] if not r.get("tied_to")]
        stored = {(r["file"], r["tensor"]): r["stored_bytes"] for r in results}
        assert sum(stored.values()) <= size, stored
        first = first or (line, said)
        assert (line, said) == first, f"{command}: {line} {said}\nnot {first}"
        planned = subprocess.run([MX, "plan", f"{command}.json", "-o", "plan.json", "--quiet"],
                                 capture_output=True, text=True)
        if "nothing to plan" in planned.stderr:
            assert all(d[0] == "keep" for d in said.values()), said
            continue
        assert planned.returncode == 0, planned.stderr
        for r in load("plan.json")["results"]:
            recipe, before, then, exact = said[r["tensor"]]
            assert recipe == r["recipe"].replace("stored", "keep"), (command, r)
            assert then == -(-r["bits"] // 8), (command, r, then)
            assert not exact or r["squared_error"] == 0, (command, r)
    if quantizes is not None:
        assert quantizes == any(d[0] != "keep" for d in first[1].values()), (path, first)


def main():
    if sys.argv[2:3] == ["--seeds"]:
        given = [(drawn(seed), None) for seed in range(int(sys.argv[3]), int(sys.argv[4]) + 1)]
    else:
        given = [(path, None) for path in sys.argv[2:]]
    for path, quantizes in given or models():
        try:
            check(path, quantizes)
        except AssertionError as e:
            sys.exit(f"{path}: {e}")
        if given:
            print(path, "agrees")


main()
