#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/peers.py with libraries and a program that are made up."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from script import load

peers = load("peers.py")


class Array:
    """What main needs of an array."""
    size = 1000

    def __len__(self):
        return 600

    def __getitem__(self, rows):
        return list(range(len(self)))[rows]


class MadeUpMx:
    def __init__(self, program, array, threads, folder):
        self.threads = threads

    def version(self):
        return "mx 1.2.3"

    def analysis_rates(self, seconds):
        return {"mxfp4": 4e9, "mxfp8": 3e9, "nvfp4": 2e9}

    def rate_of(self, case, seconds):
        return 1e9


def there(array, threads):
    return "7.0", {"mxfp4": lambda: None, "nvfp4": lambda: 1 // 0}


def not_there(array, threads):
    peers.found("no_such_library_of_anybody")


class Peers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for patch in (mock.patch.object(peers, "Mx", MadeUpMx),
                      mock.patch.object(peers, "normal_array", lambda rows, columns: Array()),
                      mock.patch.dict(os.environ)):
            patch.start()
            self.addCleanup(patch.stop)

    def run_main(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = peers.main([sys.executable, *arguments])
        return code, out.getvalue()

    def test_what_is_missing_or_fails_is_skipped_with_the_reason(self):
        # Half a second each, by a clock that is made up.
        ticks = iter(range(1000))
        with mock.patch.object(peers, "PEERS", {"one": there, "other": not_there}), \
             mock.patch.object(peers.time, "monotonic", lambda: next(ticks) / 2):
            code, text = self.run_main("--rounds", "2", "--threads", "3", "--json", str(self.folder / "out.json"))
        self.assertEqual(code, 0)
        self.assertIn("- mx: mx 1.2.3\n- one: 7.0\n", text)
        self.assertIn("| mxfp4 | one | 0.0000 | 4.000 | 2000000.0 |\n", text)
        self.assertIn("skipped: other: no_such_library_of_anybody: No module named", text)
        self.assertIn("skipped: one, nvfp4: ZeroDivisionError", text)
        self.assertNotIn("| nvfp4 |", text)
        self.assertEqual(os.environ["OMP_NUM_THREADS"], "3")
        found = json.loads((self.folder / "out.json").read_text())
        self.assertEqual([r["times"] for r in found["results"]], [2e6])
        self.assertEqual(len(found["skipped"]), 2)

    def test_one_thread_and_all_by_default(self):
        seen = []

        def peer(array, threads):
            seen.append(threads)
            return "7.0", {"mxfp4": lambda: None}

        with mock.patch.object(peers, "PEERS", {"one": peer}), \
             mock.patch.object(peers.os, "sched_getaffinity", lambda _: range(5)):
            _, text = self.run_main("--rounds", "1", "--json", str(self.folder / "out.json"))
            self.run_main("--threads", "2", "3", "4")
        self.assertEqual(seen, [1, 5, 2, 3, 4])
        self.assertIn("\nthreads: 1\n", text)
        self.assertIn("\nthreads: 5\n", text)
        found = json.loads((self.folder / "out.json").read_text())
        self.assertEqual([r["threads"] for r in found["results"]], [1, 5])

    def test_lines_of_torch_have_the_error_of_a_block(self):
        try:
            import torch
        except ImportError:
            self.skipTest("no torch")
        if not hasattr(torch, "float8_e4m3fn"):
            self.skipTest("torch has no float8_e4m3fn")
        errors = peers.pure_torch(torch)
        # 3.3 under the scale 1 is 3 in E2M1 and 3.25 in E4M3; under NVFP4 4 and the scale of 4 are exact.
        x = torch.tensor([4.0, 3.3] + [0.0] * 30)
        self.assertAlmostEqual(errors["mxfp4"](x).item() * 32, 0.09, 5)
        self.assertAlmostEqual(errors["mxfp8"](x).item() * 32, 0.0025, 5)
        self.assertAlmostEqual(errors["nvfp4"](torch.tensor([6.0, 3.0, 1.5] + [0.0] * 13)).item(), 0, 5)

    def test_rows_are_taken_in_groups(self):
        seen = []
        self.assertEqual(peers.in_rows(Array(), lambda rows: seen.append(len(rows)) or len(rows)), 600)
        self.assertEqual(seen, [256, 256, 88])

    def test_cpfloat_needs_its_headers(self):
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest("no numpy")
        with self.assertRaisesRegex(peers.Missing, "give the folder"):
            peers.cpfloat_peer(Array(), 1)

    def test_mistakes(self):
        for arguments in (["--columns", "33"], ["--rows", "0"]):
            with self.assertRaises(SystemExit) as stopped, contextlib.redirect_stderr(io.StringIO()):
                self.run_main(*arguments)
            self.assertEqual(stopped.exception.code, 2)
        with self.assertRaises(SystemExit) as stopped, contextlib.redirect_stderr(io.StringIO()):
            peers.main([str(self.folder / "no-program")])
        self.assertEqual(stopped.exception.code, 3)


if __name__ == "__main__":
    unittest.main()
