#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/reproduce-su-paper-run.py where mx is built, named in the environment as MX: a small network is
trained, stopped and continued, and the tables do not show it."""

import contextlib
import io
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from script import load

study = load("reproduce-su-paper-run.py")


@unittest.skipUnless(os.environ.get("MX"), "mx is not built")
class Trainings(unittest.TestCase):
    def tables(self, folder, steps):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            study.main(["--mx", os.environ["MX"], "--folder", folder, "--width", "32", "--batch", "16", "--steps",
                        str(steps)])
        return out.getvalue()

    def test_a_run_in_two_sittings_gives_the_tables_of_one(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.multiple(study, KEEP=50, COMPARE=50):
            whole = self.tables(f"{folder}/whole", 110)
            self.tables(f"{folder}/parts", 60)
            self.assertEqual(self.tables(f"{folder}/parts", 110), whole)
            self.assertEqual(sorted(path.name for path in Path(folder, "whole").iterdir()),
                             ["E4M3-as-coded", "at-100", "at-50", "float32"])
        self.assertIn("| 1 to 100 | ", whole)
        self.assertIn("| E4M3 as coded | 110 | ", whole)
        self.assertIn("### The gradient of E4M3 as coded", whole)
        self.assertIn("### Gains of E4M3 as coded", whole)
        rows = {line.split(" | ")[0]: line for line in whole.splitlines()}
        for step in (50, 100):
            for name in study.OTHERS:
                self.assertIn(f"| {step}: {name}", rows)
        # Without blocks only bfloat16 remains; quantized gains differ from those that are not.
        error = {name: float(rows[f"| 100: {name}"].split(" | ")[1]) for name in study.OTHERS}
        self.assertLess(error["bf16 alone"], 0.5 * error["E4M3 as coded"])
        self.assertNotEqual(rows["| 100: E4M3 as told"].split(" | ")[1:], rows["| 100: E4M3 as coded"].split(" | ")[1:])

    def test_probes_are_counted_after_step_300_to_the_same_step_in_every_arm(self):
        probed = [{"step": step, "probe": {"gradients": {"layers.0.ln.weight": {"gain": gain}}}}
                  for step, gain in ((300, -1), (301, -0.5), (401, 0.79), (501, 0.8), (901, 0))]
        self.assertEqual(study.kept(probed, 501), "2 of 3; 1 (0.79)")
        self.assertEqual(study.kept(probed, 901), "3 of 4; 1 (0.40)")
        self.assertEqual(study.kept(probed, 900 + study.KEEP + 2), "-")  # the arm did not come there


if __name__ == "__main__":
    unittest.main()
