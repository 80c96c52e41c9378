#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/targets.py with programs that are made up: rates that give known quotients."""

import contextlib
import io
import json
import os
import re
import struct
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from script import load

targets = load("targets.py")

# Rates by recipe; the base has half of mx's mxfp4, so ratios are double those of the rates.
MX = f"""#!{sys.executable}
import json, sys
words = sys.argv[1:]
def given(name, default=None):
    return [b for a, b in zip(words, words[1:]) if a == name] or default
base = "base" in sys.argv[0]
def rate(recipe):
    x = {{"mxfp4": 2e9, "mxfp8": 1e9, "nvfp4": 6e8}}.get(recipe, 4e8)
    return x * 0.5 if base else x
if words[0] == "analyze":
    recipes = given("--recipe", ["mxfp4", "nvfp4"])
    json.dump(dict(results=[dict(recipe=r) for r in recipes]), open(given("--json")[0], "w"))
elif "--roads" in words:
    threads = int(given("--threads")[0])
    def road(family, name, x, roof=0.5):
        return dict(family=family, road=name, elements_per_second=x * (1.9 if threads == 2 else 1),
                    fraction_of_roof=roof)
    results = [road("format", r, rate(r)) for r in given("--road", [])] or [
        road("format", "mxfp4", 2e9), road("rule", "mxfp4:scale=ceil", 1.9e9), road("format", "nvfp4", 1e7),
        road("dialect", "mxint8:dialect=quark", 1e8), road("rounding", "mxfp4:round=stochastic", 4e8),
        road("figures", "mxfp4 +histograms", 1e6), road("command", "analyze (2 recipes)", 5e8),
        road("command", "quantize --recipe mxfp4 --packed", 6e8),
        road("command", "quantize --recipe e4m3 --packed", 1e9, 0.24)]
    json.dump(dict(results=results), sys.stdout)
else:
    dtype = given("--dtype", ["BF16"])[0]
    files = [w for w in words[1:] if w.endswith(".safetensors")]
    slow = 1 if not files or "normal.safetensors" == files[0].split("/")[-1] else 2
    json.dump(dict(results=[dict(recipe=r, elements_per_second=rate(r)) for r in given("--recipe")],
                   placed=[dict(elements_per_second=1e9 / slow) for _ in files]), sys.stdout)
"""


class Targets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name in "mx", "base":
            (self.folder / name).write_text(MX)
            (self.folder / name).chmod(0o755)
        for patch in (mock.patch.object(targets, "say"), mock.patch.object(targets, "ROUNDS", 1),
                      mock.patch.dict(os.environ)):
            patch.start()
            self.addCleanup(patch.stop)
        os.environ.pop(targets.PEERS_PYTHON, None)

    def test_the_table(self):
        # one, hundred, nine, eleven, nine of base, default, default of base
        made_up = iter([2.0, 3.0, 4.0, 4.5, 10.0, 1.0, 5.0])
        with mock.patch.object(targets, "seconds_of", lambda *_: next(made_up)), \
             contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(targets.main([str(self.folder / "base"), str(self.folder / "mx"), "--size-log2", "19",
                                           "--seconds", "0"]), 0)
        text = out.getvalue()
        for what, cells in {
                "one recipe, mxfp4 or mxfp8": ">= 0.5 | 2 | `mxfp4` | met",
                "nvfp4, fp8_1x128": ">= 0.4 | 0.4 | `fp8_1x128 BF16` | met",
                "every other recipe": ">= 0.2 | 0.1 | `mxint8:dialect=quark` | missed",
                "four-over-six, hadamard": ">= 0.3 | 0.4 | `mxfp4:round=stochastic` | met",
                "default recipes of a training": "<= 1.5 | 2 | `analyze (2 recipes)` | missed",
                "nine recipes": "<= 1.5 | 2 |  | missed",
                "100 recipes": "<= 3 | 1.5 | from a file | met",
                "NVFP4 and dialect=torchao among": "<= 0.3 | 0.25 | from a file | met",
                "whole `mx analyze` of a bf16 file under the nine": ">= 4 | 2.5 |  | missed",
                "whole `mx analyze` of a bf16 file under the 2": ">= 4 | 5 |  | met",
                "`quantize --packed`": ">= 0.5 | 0.6 | `quantize --recipe mxfp4 --packed` | met",
                "`mx quantize -r e4m3`": ">= 0.25 | 0.24 |  | missed",
                "mxfp4 on log-normal": ">= 0.7 | 0.5 |  | missed",
                "mxfp4 on bf16 with uniform": ">= 0.3 | 0.5 |  | met",
                "mxfp4 analysis, times torchao": ">= 40 | - | | not measured: no torchao"}.items():
            line = re.search(rf"^\| {re.escape(what)}.*$", text, re.MULTILINE)
            self.assertIsNotNone(line, what)
            self.assertTrue(line[0].endswith(f"| {cells} |"), line[0])
        self.assertIn("| two threads, times one, every road | >= 1.8 | 1.9 |", text)

    def test_how_many_are_below(self):
        roads = {"a": 1.0, "b": 0.1, "c": 0.15}
        with mock.patch.object(targets.Targets, "rows", lambda _: iter(
                [("what", ">= 0.2", *targets.least(roads, 0.2)), ("one", ">= 0.12", *targets.least(roads, 0.12))])):
            table = targets.Targets(Path("mx"), Path("base"), 19, 0).table()
        self.assertIn("| what | >= 0.2 | 0.1 | `b`; 2 of 3 below: also `c` 0.15 | missed |", table)
        self.assertIn("| one | >= 0.12 | 0.1 | `b` | missed |", table)

    def test_files(self):
        for kind in "normal", "log-normal", "uniform":
            path = self.folder / "x.safetensors"
            targets.write_bf16(path, kind, 130, 32)
            data = path.read_bytes()
            size = struct.unpack("<Q", data[:8])[0]
            self.assertEqual(len(data), 8 + size + 2 * 130 * 32)
            self.assertEqual(size % 8, 0)
            self.assertEqual(json.loads(data[8:8 + size]).popitem()[1]["shape"], [130, 32])

    def test_there_are_a_hundred_recipes(self):
        self.assertEqual(len(set(targets.HUNDRED)), 100)

    def test_recipes_are_recipes(self):
        mx = os.environ.get("MX")
        if not mx:
            self.skipTest("no mx")
        for name in {*targets.HUNDRED, *targets.NINE, *targets.COMMON, *targets.ADDED}:
            targets.output(mx, "explain", name)

    def test_verdicts(self):
        self.assertEqual([targets.verdict(b, 0.3) for b in (">= 0.3", ">= 0.31", "<= 0.3", "<= 0.2")],
                         ["met", "missed", "met", "missed"])


if __name__ == "__main__":
    unittest.main()
