#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The parts of scripts/reproduce.py: the data it makes, the closed form, and its tables, with a
program that is made up. The program itself, in the environment as MX, reads what is written where
it is built."""

import hashlib
import io
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from script import ROOT, load

reproduce = load("reproduce.py")

# Prints its arguments and writes the document next to it to the path after --json.
MX = r"""#!/bin/sh
printf '%s\n' "$*"
while [ $# -gt 0 ]; do
    [ "$1" != --json ] || cp document.json "$2"
    shift
done
"""


class Data(unittest.TestCase):
    def test_float32(self):
        # Ties go to the even neighbour.
        tie = 1 + 2.0**-24
        self.assertEqual(reproduce.f32([1.0, -0.99, 0.0, tie, tie + 2.0**-23]).hex(),
                         "0000803f" "a4707dbf" "00000000" "0000803f" "0200803f")
        self.assertEqual(list(reproduce.floats(reproduce.f32([1.5, -2.0]))), [1.5, -2.0])

    def test_normal_numbers(self):
        values = reproduce.normal(1 << 16)
        self.assertEqual(len(values), 1 << 16)
        self.assertAlmostEqual(sum(values) / len(values), 0, delta=0.02)
        self.assertAlmostEqual(sum(x * x for x in values) / len(values), 1, delta=0.02)
        # The pages' figures rest on these bytes.
        self.assertEqual(hashlib.sha256(reproduce.f32(values)).hexdigest()[:16], "61e1cf343bc9eb7b")

    def test_uniform_logarithms(self):
        values = reproduce.log_uniform(64)
        self.assertEqual(len(values), 128)
        self.assertEqual(values[0::2], values[1::2])
        for i, x in enumerate(values[::2]):
            self.assertAlmostEqual(math.log2(x), (i + 0.5) / 64)

    def test_gains(self):
        values = reproduce.gains(0.8)
        self.assertEqual(len(values), 256)
        self.assertTrue(all(abs(x - 0.8) < 0.02 for x in values))
        self.assertLess(min(values), 0.79)
        self.assertGreater(max(values), 0.81)

    def test_llama2c(self):
        data = bytes(28) + struct.pack("<300000f", *range(300000))
        file = reproduce.llama2c_as_safetensors(data)
        size, = struct.unpack("<Q", file[:8])
        header = json.loads(file[8:8 + size])
        self.assertEqual(header["tok_embeddings.weight"], {"dtype": "F32", "shape": [512, 64],
                                                           "data_offsets": [0, 131072]})
        self.assertEqual(header["norm.weight"]["data_offsets"][1], 4 * 260032)
        start, end = header["layers.3.attention.wk.weight"]["data_offsets"]
        self.assertEqual(struct.unpack("<f", file[8 + size + start:][:4])[0], start / 4)
        self.assertEqual(end - start, 4 * 32 * 64)
        with tempfile.NamedTemporaryFile() as made:
            made.write(file)
            made.flush()
            inputs = reproduce.rms_norm_of_embedding(Path(made.name))
        # Row 1 of the embedding is 64 .. 127, the gains are 32768 .. 32831.
        rms = math.sqrt(sum(x * x for x in range(64, 128)) / 64 + 1e-5)
        self.assertEqual(len(inputs), 512 * 64)
        self.assertAlmostEqual(inputs[64 + 5], 69 / rms * (32768 + 5), delta=1e-6)


class Figures(unittest.TestCase):
    def test_the_closed_form(self):
        # docs/reproduce/yang.md: 0.622 % and 4.158 %; P(|X| < 1) by the rule of Simpson.
        self.assertAlmostEqual(100 * reproduce.overflow(1.5, 1.75), 0.622, delta=5e-4)
        self.assertAlmostEqual(100 * reproduce.overflow(1, 1.5), 4.158, delta=5e-4)
        n = 2000
        simpson = sum((1 if i in (0, n) else 4 if i % 2 else 2) * math.exp(-(i / n)**2 / 2) for i in range(n + 1))
        self.assertAlmostEqual(reproduce.within(1), 2 * simpson / n / 3 / math.sqrt(2 * math.pi), delta=1e-12)

    def test_six_digits(self):
        # 1.02645 in six digits, then to four decimals: not 1.0264.
        self.assertEqual("%.4f" % reproduce.six_digits(1.0264496), "1.0265")

    def test_energy(self):
        # Two columns: constant ones, whose mean has all the energy, and one large
        # element in 32.
        values = [x for row in range(64) for x in (1.0, 8.0 if row % 32 == 7 else 0.0)]
        means, largest = reproduce.common_and_largest(values, 2)
        self.assertAlmostEqual(means, (64 + 16**2 / 64) / (64 + 2 * 64))
        self.assertAlmostEqual(largest, 1 / 32)  # the lower of the two in the middle: 1/32, 1/32, 1, 1


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        Path("mx").write_text(MX)
        Path("mx").chmod(0o755)
        self.out = io.StringIO()
        self.run = reproduce.Reproduction(Path("mx").resolve(), ["g2p-en.npz"], self.out)

    def printed(self):
        text = self.out.getvalue()
        self.out.truncate(0)
        self.out.seek(0)
        return text

    def document(self, **members):
        Path("document.json").write_text(json.dumps(members))

    def test_arguments(self):
        self.assertEqual(self.run.arguments("syn-g"), ["small.safetensors", "--role", "gradient"])
        self.assertEqual(self.run.arguments("n-layernorm"), ["layernorm.safetensors", "--role", "norm"])
        self.assertEqual(self.run.arguments("g2p-en.npz"), ["g2p-en.npz", "--role", "weight,embedding"])
        self.assertIn("*MatMul*", self.run.arguments("magika.onnx"))
        self.assertIn("model/layer_normalization/Reshape:0", self.run.arguments("n-magika.onnx"))

    def test_over_and_pick(self):
        self.run.inputs = ["normal", "stories260k.safetensors"]
        self.document(ranking=[{"recipe": "mxfp4:scale=even", "sqnr_db": 18.567, "wins": 3},
                               {"recipe": "mxfp4", "sqnr_db": None, "wins": 0}])
        self.run.over("compare", "--element", "e2m1")
        self.assertEqual(self.printed(), "\n$ mx compare INPUT --element e2m1\n")
        self.run.pick("SQNR", "sqnr_db", 10, "%.1f")
        self.assertEqual(self.printed(), "\nSQNR\n"
                         "                   normal  stories\n"
                         "mxfp4:scale=even    185.7    185.7\n"
                         "mxfp4                   -        -\n")

    def test_mean(self):
        self.run.inputs = ["n-layernorm"]
        self.document(results=[
            {"recipe": "mxfp4:round=stochastic,seed=1", "nrmse": 0.1, "gain": 0.5, "blocks": 1},
            {"recipe": "mxfp4:round=stochastic,seed=2", "nrmse": 0.1, "gain": 1.0, "blocks": 3},
            {"recipe": "mxfp4:round=stochastic,seed=2", "nrmse": None, "gain": 9.0, "blocks": 3},
            {"recipe": "mxfp8", "nrmse": 0.1, "gain": None, "blocks": 0}])
        self.run.over("cluster")
        self.printed()
        self.run.mean("Gain", lambda f: f["gain"], 1, "%.3f")
        self.assertEqual(self.printed(), "\nGain\n"
                         "                       layernor\n"
                         "mxfp4:round=stochastic    0.750\n"
                         "mxfp8                     0.000\n")
        self.run.mean("Gain", lambda f: f["gain"], 1, "%.3f", lambda f: f["blocks"])
        self.assertIn("0.875", self.printed())

    def test_phase(self):
        self.run.inputs = ["normal"]
        contest = {"best": "mxfp4:scale=even", "win": 0.25, "least_ratio": 0.5, "greatest_ratio": 2.0}
        self.document(phase={"groups": [{"contest": contest}, {}]})
        self.run.phase("e2m1", "mxfp4:scale=even", "mxfp4")
        self.assertIn("--scale even,floor --phase-sweep", self.out.getvalue())
        self.assertIn("as they are                1.2500\n", self.printed())
        self.document(phase={"groups": [{"contest": dict(contest, best="mxfp4")}]})
        self.run.phase("e2m1", "mxfp4:scale=even", "mxfp4")
        text = self.printed()
        self.assertIn("as they are                0.8000\n", text)
        self.assertIn("least over the phases      0.5000\n", text)

    def test_a_command_that_fails(self):
        Path("mx").write_text("#!/bin/sh\nexit 3\n")
        with self.assertRaisesRegex(SystemExit, "exit code 3: mx analyze 'a b'"):
            self.run.mx("analyze", "a b")

    def test_show(self):
        self.run.show("diff", "a", "*norm*", without="^diff")
        self.assertEqual(self.printed(), "\n$ mx diff a '*norm*'\n a *norm*\n")


    def test_studies(self):
        Path("b.md").write_text("Text\n\n    mx study b --budget 3m\n\nand\n\n    mx study b --on olmo --budget 1h\n"
                                "    mx study b --seeds 1..2\n")
        Path("a.md").write_text("    mx study scaling-law a.csv\n")
        self.assertEqual(reproduce.study_commands(Path()),
                         {"b.md": ["mx study b --budget 3m", "mx study b --on olmo --budget 1h"]})
        reproduce.studies(self.run)
        text = self.printed()
        for study in "correlation", "recipes", "hybrid", "stages":
            self.assertRegex(text, rf"\$ mx study {study} --budget \w+\nstudy {study} --budget")


class Command(unittest.TestCase):
    def test_mistakes(self):
        script = [sys.executable, "-B", ROOT / "scripts" / "reproduce.py"]
        for arguments, code in ((["a", "b", "c"], 2), (["/nowhere", sys.executable], 3), (["", "/nowhere/mx"], 3)):
            self.assertEqual(subprocess.run([*script, *arguments], stderr=subprocess.DEVNULL).returncode, code)

    @unittest.skipUnless(os.environ.get("MX"), "mx is not built")
    def test_mx_reads_what_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "stories260k.safetensors"
            file.write_bytes(reproduce.llama2c_as_safetensors(bytes(28 + 4 * 260032)))
            done = subprocess.run([os.environ["MX"], "tensors", file, "--json", "-"], stdout=subprocess.PIPE)
            self.assertEqual(sum(t["elements"] for t in json.loads(done.stdout)["results"]), 260032)


if __name__ == "__main__":
    unittest.main()
