# SPDX-License-Identifier: Apache-2.0
"""mx lint --fix: the copy has the values of the input, is clean where the fault can be repaired, and
has the fault where it cannot; what a copy would hide is refused. Usage: fix_test.py MX"""
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import lint_test as made
from lint_test import GATE, MX, Q, SOUND, changed, dropped, in_shards, np


def moved(name, to):
    return in_shards(lambda i: i["weight_map"].update({name: f"model-0000{to}-of-00003.safetensors"}))


def doubled(code_name, scale_name, by):
    """Codes that can be doubled, under a scale of `by` times."""
    def fault(c):
        changed(code_name, lambda a: (a & 0x80) | (0x38 + (a & 0x37)))(c)
        changed(scale_name, lambda a: a * by)(c)
    return fault


def broken_index(folder):
    (folder / "model.safetensors.index.json").write_text("{")


# The layout, the fault of the checkpoint or of its folder, the rule, and whether it can be repaired.
CASES = [
    ("compressed-nvfp4", in_shards(lambda i: i["weight_map"].pop(Q + ".weight_packed")), "index", True),
    ("compressed-nvfp4", moved(Q + ".weight_packed", 9), "index", True),
    ("compressed-nvfp4", moved("lm_head.weight", 3), "index", True),
    ("gpt-oss", in_shards(lambda i: i["metadata"].update(total_size=7)), "index", True),
    ("deepseek-fp8", in_shards(), broken_index, True),
    ("compressed-nvfp4", changed(GATE + ".weight_global_scale", lambda a: a / 2), "fused-scales", True),
    ("modelopt-nvfp4", changed(Q + ".weight_scale_2", lambda a: a * 2), "fused-scales", True),
    ("modelopt-nvfp4", changed(Q + ".weight_scale_2", lambda a: a * 3), "fused-scales", False),
    ("modelopt-nvfp4", changed(Q + ".weight_scale_2", lambda a: a * 4096), "fused-scales", False),
    ("modelopt-fp8", doubled(GATE + ".weight", GATE + ".weight_scale", 2), "fused-scales", True),
    ("modelopt-fp8", changed(GATE + ".weight_scale", lambda a: a * 2), "fused-scales", False),
    ("modelopt-fp8", changed(Q + ".input_scale", lambda a: a * 2), "fused-scales", False),
    ("modelopt-nvfp4", dropped(Q + ".weight_scale"), "missing-scale", False),
    ("gptq", made.configured(lambda q: q.update(bits=8)), "config", False),
]
REFUSED = [
    (in_shards(lambda i: i["weight_map"].update({"model.ghost.weight": "model-00001-of-00003.safetensors"})),
     "is in no file of the folder"),
    (in_shards(extra=lambda c: {0: {"lm_head.weight": c.tensors["lm_head.weight"]},
                                2: {"lm_head.weight": c.tensors["lm_head.weight"]}}),
     "remove one of the two"),
]


def run(*words):
    return subprocess.run([MX, *map(str, words)], capture_output=True, text=True)


def values(folder, to):
    """Tensors by name, decoded, bit for bit."""
    files = sorted(folder.glob("*.safetensors"))
    done = run("dequantize", *files, "-o", to, "-q")
    assert done.returncode == 0, done.stderr
    data = to.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
            for name, t in header.items()}


def digests(folder):
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in folder.iterdir()}


def check(work, i, layout, fault, rule, repaired):
    made_of, folder, out = SOUND[layout](), work / f"in{i}", work / f"out{i}"
    fault(made_of)
    made_of.write(folder)
    (folder / "tokenizer.json").write_text("{}")
    if callable(rule):
        rule(folder)
        rule = "index"
    before = digests(folder)
    found = {f["rule"] for f in made.lint(folder)}
    assert rule in found, (i, found)
    done = run("lint", folder, "--fix", "-o", out)
    left = made.lint(out)
    assert done.returncode == int(any(f["severity"] == "error" for f in left)), (i, done)
    word = "\nrepaired: " if repaired else "\nnot repaired: "
    assert f"{word}{rule} " in done.stdout, (i, done.stdout)
    if repaired:
        assert left == [], (i, left)
        assert "\nnot repaired" not in done.stdout, done.stdout
    else:
        assert rule in {f["rule"] for f in left}, (i, left)
    assert digests(folder) == before, i
    for name in ("tokenizer.json", "config.json"):
        assert (out / name).read_bytes() == (folder / name).read_bytes(), (i, name)
    if rule == "missing-scale":
        return
    old, new = values(folder, work / "old.safetensors"), values(out, work / "new.safetensors")
    assert old.keys() == new.keys(), i
    for name in old:
        assert old[name] == new[name], (i, name)


def main():
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        for i, case in enumerate(CASES):
            check(work, i, *case)
        for i, (fault, why) in enumerate(REFUSED):
            c, folder, out = SOUND["compressed-nvfp4"](), work / f"bad{i}", work / "none"
            fault(c)
            c.write(folder)
            done = run("lint", folder, "--fix", "-o", out)
            assert done.returncode == 3 and why in done.stderr and len(done.stderr.splitlines()) == 1, done
            assert not out.exists(), i
        folder = work / "in0"
        for words, code, why in (((folder, "--fix"), 2, "name the new folder with -o"),
                                 ((folder, "-o", work / "none"), 2, "only with --fix"),
                                 ((folder, "--fix", "-o", work / "out0"), 3, "exists already"),
                                 ((folder, "--fix", "-o", folder), 3, "exists already"),
                                 ((folder / "config.json", "--fix", "-o", work / "none"), 3, "")):
            done = run("lint", *words)
            assert done.returncode == code and why in done.stderr and done.stdout == "", (words, done)
            assert not (work / "none").exists(), words
        done = run("lint", folder, "--fix", "-o", work / "again", "--json", "-")
        assert json.loads(done.stdout)["results"] == [] and "repaired: index" in done.stderr, done
    print(f"{len(CASES)} faults, {len(REFUSED)} refused")


if __name__ == "__main__":
    main()
