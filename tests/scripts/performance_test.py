#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/performance.py with a program that is made up: rates that give known quotients."""

import os
import re
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from script import load

performance = load("performance.py")

# Rates by recipe, threads, histograms and backend; a run over a file takes negligible time.
MX = f"""#!{sys.executable}
import json, sys
words = sys.argv[1:]
def given(name, default=None):
    values = [b for a, b in zip(words, words[1:]) if a == name]
    return values or default
def rate(recipe, backend, threads, histograms):
    slow = 4 if ":block=4x4" in recipe else 2 if ":" in recipe and "scale" not in recipe else 1
    four = recipe.startswith("mxfp4")
    x = (3e9 if four else 2.8e9) / slow * ((1.9 if four else 1.95) if threads > 1 else 1)
    return x * (0.25 if histograms else 1) * (0.75 if backend == "avx2" else 1)
if words[0] == "version":
    print("item,value\\r\\nversion,1.2.3\\r\\ncompiler,gcc 12\\r\\nbackend avx2,AVX2\\r\\n"
          'backend avx512,"AVX-512 (chosen)"\\r')
elif words[0] == "tensors":
    print(json.dumps({{"results": [{{"elements": 1000}}, {{"elements": 234}}]}}))
elif words[0] == "synth":
    open(given("--output")[0], "w").write("x")
elif words[0] == "bench":
    threads = [int(n) for n in given("--threads")[0].split(",")]
    backends = ["scalar", "avx2", "avx512"] if given("--backend") else ["avx512"]
    results = []
    for backend in backends:
        for count in threads:
            if "--roads" in words:
                continue
            if "--gemm" in words:
                for model in given("--accumulate", ["sm100.mxf8f6f4", "sm100.mxf4", "sm100.mxf4nvf4",
                                                    "sm90.wgmma.fp8", "sm100.f16", "sm100.tf32"]):
                    results.append(dict(accumulator=model, backend=backend, threads=count,
                                        multiply_adds_per_second=(1e8 if backend == "scalar" else 5e9) * count))
                continue
            for recipe in given("--recipe"):
                for histograms in [False, True] if "--histograms" in words else [False]:
                    x = rate(recipe, backend, count, histograms)
                    results.append(dict(recipe=recipe, backend=backend, threads=count, histograms=histograms,
                                        dtype=given("--dtype", ["BF16"])[0], elements_per_second=x,
                                        fraction_of_read_bandwidth=x / 2e10))
    document = dict(results=results)
    if "--together" in words:
        document["together"] = [dict(fraction_of_separate_passes=0.7)]
    json.dump(document, open(given("--json")[0], "w"))
    open(given("--markdown")[0], "w").write("# Bench\\n\\n## Memory\\n")
"""


class Performance(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        Path("mx").write_text(MX)
        Path("mx").chmod(0o755)
        for patch in (mock.patch.object(performance, "say"), mock.patch.object(performance, "TWELVE", ["mxfp4", "mxfp8"]), mock.patch.object(os, "sched_getaffinity",
                                                                               lambda _: {0, 1})):
            patch.start()
            self.addCleanup(patch.stop)

    def test_the_page(self):
        measurement = performance.Measurement(Path("mx").resolve(), "1KiB")
        measurement.run()
        measurement.file_twelve, measurement.file_apart, measurement.peak = 3.0, 4.0, 19
        measurement.file_one, measurement.file_all = 1234 / 1.5e9, 4.0
        measurement.commands = {"mx quantize --packed": 4.0, "mx quantize -r e4m3 --packed": 20.0,
                                "mx cluster": 2.0}
        measurement.symbols = {"mxfp4": "  60.00%  sums   \n\n", "nvfp4": ""}
        text = measurement.figures()
        self.assertIn("\n\nmxfp4:\n```\n  60.00%  sums\n```\n\nnvfp4:\n```\n```\n", text)
        self.assertTrue(text.startswith("## Figures\n\nMeasured by `scripts/performance.py` on "), text)
        self.assertIn(", 2 cores, backend avx512,\nmx 1.2.3, compiler gcc 12.\n", text)
        for what, cells in {
                "BF16, 1 thread, slowest": ">= 2.5 | 2.80 | yes", "the same, of the read": "- | 0.140 | -",
                "F32, 1 thread": ">= 0.25 | 0.140 | no", "2 threads, times one": ">= 1.8 | 1.90 | yes",
                "stochastic rounding": ">= 0.5 | 0.50 | yes", "blocks of 4x4": ">= 0.5 | 0.25 | no",
                "with histograms": ">= 0.333 | 0.25 | no", "twelve recipes in one pass": "<= 0.8 | 0.70 | yes",
                "twelve recipes in one run over a file of 1KiB": "<= 0.8 | 0.75 | yes",
                "`mx analyze` of that file": ">= 0.6 | 0.50 | no", "peak memory": "< 300 | 19 | yes",
                "`mx quantize --packed`": ">= 0.25 | 1.00 | yes", "`mx quantize -r e4m3": ">= 0.25 | 0.20 | no",
                "`mx cluster`": ">= 0.5 | 2.00 | yes",
                "AVX2, times AVX-512": ">= 0.5 | 0.75 | yes", "mxfp4, 2 threads, times microx": ">= 150 | 190 | yes",
                "emulated product, sm100.f16,": "- | 5.00 | -",
                "mxf8f6f4, mxf4 and mxf4nvf4, 2 threads": ">= 1.8 | 2.00 | yes",
                "sm100.mxf4, 1 thread, times the plain loop": "- | 50 | -"}.items():
            line = re.search(rf"^\| {re.escape(what)}.*$", text, re.MULTILINE)
            self.assertIsNotNone(line, what)
            self.assertTrue(line[0].endswith(f"| {cells} |"), line[0])
        self.assertEqual(text.count("### Bench\n\n### Memory\n"), 8)
        self.assertNotIn("| nan", text)

    def test_targets(self):
        self.assertEqual([performance.reached(target, 0.8) for target in
                          (">= 0.8", ">= 0.81", "<= 0.8", "<= 0.79", "< 0.8", "< 1", "-")],
                         ["yes", "no", "yes", "no", "no", "yes", "-"])

    def test_records_that_are_missing_or_doubled(self):
        records = [{"a": 1, "rate": 5}, {"a": 2, "rate": 6}, {"a": 2, "rate": 7}]
        self.assertEqual(performance.figure(records, "rate", a=1), 5)
        for a in 2, 3:
            with self.assertRaises(SystemExit):
                performance.figure(records, "rate", a=a)

    def test_update_keeps_what_is_above_the_figures(self):
        Path("page.md").write_text("# Speed\n\ntext\n\n## Figures\n\nold\n")
        with mock.patch.object(performance, "PAGE", Path("page.md").resolve()), \
             mock.patch.object(performance, "SOURCE", Path.cwd()), \
             mock.patch.dict(os.environ, MX_PERFORMANCE_SIZE="1KiB"):
            self.assertEqual(performance.main(["--update", str(Path("mx").resolve())]), 0)
            text = performance.PAGE.read_text()
        self.assertTrue(text.startswith("# Speed\n\ntext\n\n## Figures\n\nMeasured by"))
        self.assertNotIn("old", text)
        self.assertFalse(Path("model.safetensors").exists())


if __name__ == "__main__":
    unittest.main()
