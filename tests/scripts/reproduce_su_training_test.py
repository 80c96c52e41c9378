#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/reproduce-su-training.py: its budget, its statistics and tables; and where mx is built, named
in the environment as MX, the smallest study and a small intervention."""

import contextlib
import io
import json
import math
import os
import struct
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from script import load

study = load("reproduce-su-training.py")


class Budget(unittest.TestCase):
    def test_it_decides_seeds_and_steps(self):
        full = study.budget(study.FULL)
        self.assertEqual((full["seeds"], full["wide_seeds"], full["cases"]), (32, 8, 2))
        self.assertEqual((full["steps"], full["wide_steps"], full["few_steps"]), (1500, 800, 600))
        self.assertEqual(study.budget(2 * study.FULL)["seeds"], 64)
        self.assertEqual(study.budget(2 * study.FULL)["steps"], 1500)
        least = study.budget(0.2)
        self.assertEqual((least["seeds"], least["steps"], least["cases"]), (2, 60, 1))


class Figures(unittest.TestCase):
    def test_outcomes(self):
        self.assertEqual([study.outcome(step, 300) for step in (None, 290, 310, 311)],
                         ["averted", "not", "not", "delayed"])

    def test_the_floor(self):
        values = [2.0, 4.0] * 150  # mean 3; the last 100 are no full window
        error = math.sqrt(200 / 199 / 200)
        least, windows = study.below_the_floor(values, 2.5)
        self.assertEqual(windows, 1)
        self.assertAlmostEqual(least, 0.5 / error)
        self.assertLess(study.below_the_floor(values, 3.5)[0], 0)
        self.assertEqual(study.below_the_floor([None, *values], 2.5)[1], 0)

    def test_tables(self):
        self.assertEqual(study.table(["a", "b"], [[1, "x"]]), ["| a | b |", "| :--- | ---: |", "| 1 | x |", ""])
        figures = {"survival": 0.5, "survival_low": 0.25, "survival_high": 0.75, "gap": None, "gap_low": None,
                   "gap_high": None}
        self.assertEqual(study.interval(figures, "survival", study.percent), "50 (25 to 75)")
        self.assertEqual(study.interval(figures, "gap", study.percent), "-")
        curve = [{"step": 0, "survival": 1}, {"step": 40, "survival": 0.75}]
        self.assertEqual([study.share_at(curve, step) for step in (39, 40)], [1, 0.75])
        self.assertEqual((study.chance(None), study.chance(0.01234), study.thousandths(0.00012)),
                         ("-", "0.012", "+0.12"))

    def test_rows_of_a_seed_and_of_a_pair(self):
        folders = [Path("a"), Path("b")]
        comparison = {"runs": [{"run": f"{folder}/seed-{seed}/run.json", "unstable_at": step, "late_loss": loss}
                               for folder, seed, step, loss in (("a", 1, None, 0.1), ("a", 2, 70, None),
                                                                ("b", 1, 50, 0.3), ("b", 2, None, 0.2))],
                      "results": [{}, {"log_rank_p": 0.5}]}
        self.assertEqual(study.first_steps(["A", "B"], comparison, folders, [1, 2])[2:4],
                         ["| 1 | - | 50 |", "| 2 | 70 | - |"])
        values = [1.0] * 49 + [20.0] * 20 + [1.5] * 50  # comes back, but not to what it was before 70
        with mock.patch.object(study, "losses", lambda run: values if "b" in run.parts else values[:49] + [20.0] * 70):
            self.assertEqual(study.pair_cells(comparison, folders, [1, 2]),
                             ["1 of 2 (0)", "1 of 2 (1)", "0.5", "0.1", "0.2", "2:70", "1:50"])

    def test_recovery(self):
        values = [1.0] * 100 + [50.0] * 10
        self.assertTrue(study.recovered(values + [2.0] * 50, 101))
        self.assertFalse(study.recovered(values + [2.1] * 50, 101))
        self.assertFalse(study.recovered([1.0] * 100 + [None], 101))


def tensors(file):
    """{name: values} of a safetensors file of float32."""
    data = file.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {name: struct.unpack(f"<{(t['data_offsets'][1] - t['data_offsets'][0]) // 4}f",
                                data[start + t["data_offsets"][0]:start + t["data_offsets"][1]])
            for name, t in header.items()}


@unittest.skipUnless(os.environ.get("MX"), "mx is not built")
class Trainings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = io.StringIO()
        self.study = study.Study(os.environ["MX"], self.folder, 2, self.out)

    def run_all(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            study.main([os.environ["MX"], "--minutes", "0.2", "--folder", str(self.folder)])
        return out.getvalue()

    def test_the_smallest_study_and_what_is_left_of_it(self):
        text = self.run_all()
        for title in ("d = 64:", "d = 128:", "Gains that drift:", "Activation functions", "Width, depth and rate",
                      "The floor"):
            self.assertIn(f"### {title}", text)
        for name in study.SCHEMES:
            self.assertEqual(text.count(f"\n| {name} | "), 2)
        # Runs that were killed or stopped are begun again, the others stay, and the tables are the same.
        runs = sorted(self.folder.rglob("run.json"))
        (runs[3].parent / "checkpoint.safetensors").write_text("cut off")
        runs[3].unlink()
        runs[8].write_text(runs[8].read_text().replace('"complete"', '"stopped"', 1))
        times = [run.stat().st_mtime_ns if run.exists() else 0 for run in runs]
        self.assertEqual(self.run_all(), text)
        after = [run.stat().st_mtime_ns for run in runs]
        self.assertEqual([i for i, (a, b) in enumerate(zip(times, after)) if a != b], [3, 8])

    def test_interventions(self):
        network = {"--width": "32", "--depth": "1", "--batch": "32"}
        folders = {f"E4M3 as {way}": self.folder / way for way in ("coded", "told")}
        # Recorded as breaking at 130, but does not: every copy is averted.
        comparison = {"runs": [{"run": str(self.folder / "coded/seed-3/run.json"), "unstable_at": 130},
                               {"run": str(self.folder / "told/seed-3/run.json"), "unstable_at": 110}]}
        with mock.patch.object(study, "NETWORK", network):
            broken = study.interventions(self.study, "0.001", folders, comparison, 2)
            study.before_it_breaks(self.study, "0.001", broken)
        text = self.out.getvalue()
        self.assertEqual(broken, {"coded": [(3, 130)], "told": []})
        self.assertIn("No run broke after step 120.", text)
        for change in study.CHANGES:
            for before in study.DISTANCES:
                self.assertIn(f"| {before} before: {change} | -; 8/0/0 | 8 of 8 |", text)
        self.assertIn("\n| 131 | ", text)

    def test_gradients_across_runs(self):
        options = ["--width", "32", "--depth", "2", "--batch", "16", "--dump", "2"]
        folders = [self.study.train(scheme, [*options, "--scheme", scheme], [1], 2)
                   for scheme in ("fp32", "su.told.e4m3")]
        of = self.study.compare(*folders)["across"][0]
        g, q = (tensors(folder / "seed-1/dump-000002.safetensors") for folder in folders)
        names = [name for name in g if name.startswith("grad.")]
        self.assertTrue(any(x for x in g["grad.layers.0.ln.bias"]))
        self.assertFalse(any(x for x in q["grad.layers.0.ln.bias"]))
        gg = math.fsum(x * x for name in names for x in g[name])
        dd = math.fsum((x - y)**2 for name in names for x, y in zip(g[name], q[name]))
        self.assertAlmostEqual(of["zeta_norm"] / (dd / gg), 1, delta=1e-9)
        self.assertAlmostEqual(of["rhs"] / (2 * gg / dd), 1, delta=1e-9)
        self.assertEqual(of["step"], 2)


if __name__ == "__main__":
    unittest.main()
