#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/check-gpu.sh makes of a machine without a device, and of steps that pass and fail: with
programs that are made up, so that nothing has to be built and no card has to be there. The program
itself, in the environment as MX, takes part where it is built."""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

from script import ROOT, load

check_gpu = load("check-gpu.py")

# A device: `quantize -r e4m3` leaves other bytes there, `compare` fails.
MX = r"""#!/bin/sh
case $1 in
    version) printf 'backend cuda,"NVIDIA GPUs (NVIDIA Made Up, sm_90, 1 SMs, 1.0 GiB)"\r\n'; exit ;;
    compare) case "$*" in *cuda*) echo "no such thing" >&2; exit 4 ;; esac ;;
    bench)
        case "$*" in
            *--gemm*) text='{"accumulator":"sm100.mxf8f6f4","times_two_threads_of_the_processor":150.5}' ;;
            *--together*)
                text='[{"recipe":"mxfp4","elements_per_second":50},{"recipes":["mxfp4","mxfp4:scale=ceil"'
                text=$text',"mxfp4:scale=even","mxfp6","mxfp6:scale=ceil","mxfp6:scale=even","mxfp8"'
                text=$text',"mxfp8:scale=ceil","mxfp8:scale=even","nvfp4"],"elements_per_second":20}]' ;;
            *) text='{"values":"device","writes":"sums","recipe":"mxfp4","fraction_of_roof":0.25}' ;;
        esac ;;
esac
text=${text-$1}
[ "$5" != e4m3 ] || case "$*" in *cuda*) text=other ;; esac
while [ $# -gt 0 ]; do
    case $1 in -o | --json | --csv)
        case $2 in */runs) mkdir "$2" && echo "$text" >"$2/run.json" ;; *) echo "$text" >"$2" ;; esac ;;
    esac
    shift
done
"""
CAPTURE = '#!/bin/sh\nmkdir "$3"\necho >"$3/manifest.json"\n'  # --quick --out FOLDER
SKIPPED = '#!/bin/sh\necho "skipped: for a reason"\nexit 77\n'


class CheckGpu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def start(self, *arguments):
        return subprocess.Popen([ROOT / "scripts" / "check-gpu.sh", *arguments], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=dict(os.environ, CUDA_VISIBLE_DEVICES="-1"))

    def check(self, code, *arguments):
        """Standard output of a run that must exit with `code`."""
        process = self.start(*arguments)
        out, err = process.communicate()
        self.assertEqual(process.returncode, code, out + err)
        self.errors = err
        return out

    def summary(self, folder):
        return (self.folder / folder / "summary.txt").read_text()

    def says(self, text, *patterns):
        for pattern in patterns:
            self.assertTrue(re.search(pattern, text, re.MULTILINE), f"no '{pattern}' in: {text}")

    @unittest.skipUnless(os.environ.get("MX"), "mx is not built")
    def test_the_program_without_a_device(self):
        (self.folder / "real").mkdir()
        (self.folder / "real" / "mx").symlink_to(os.environ["MX"])
        self.says(self.check(77, "--build", "real", "--output", "none"), "^skipped: no device: .")
        text = self.summary("none")
        self.says(text, "^version +passed", "^device +skipped +no device: ", "^tests +skipped +no device",
                  "^gemm-sm90: same bytes +skipped +no device")
        self.assertNotIn("failed", text)
        self.check(2, "--build", "real", "--output", "none")
        self.assertIn("none is there already", self.errors)

    def test_no_device(self):
        self.write("made/mx", "#!/bin/sh\necho 'backend avx2,AVX2'\n")
        self.says(self.check(77, "--build", "made", "--output", "none"),
                  "^skipped: no device: mx has no backend cuda$")
        self.assertNotIn("failed", self.summary("none"))

    def test_mistakes(self):
        self.check(2, "--bild", "real")
        self.says(self.errors, "^usage: ")
        self.check(1, "--build", "nowhere", "--output", "missing")
        self.says(self.summary("missing"), "^mx +failed +no .*/nowhere/mx$")

    def test_a_device(self):
        self.write("made/mx", MX)
        self.write("made/mx_capture", CAPTURE)
        self.write("made/tests/gpu/mx_gpu_parity", SKIPPED)
        out = self.check(1, "--build", "made", "--quick")
        folder, = self.folder.glob("gpu-check-*")
        self.assertTrue(folder.name.startswith("gpu-check-nvidia-made-up-"), folder.name)
        self.says(out, f"^To send it: tar czf {folder.name}")
        text = self.summary(folder)
        self.says(text, "^device +passed +NVIDIA Made Up$", "^memcheck parity +skipped",
                  "^capture verified +passed", "^analyze: same bytes +passed", "^gemm-sm90: same bytes +passed",
                  "^train: same bytes +passed",
                  "^cast: same bytes +failed +they differ",
                  "^compare by cuda +failed +exit code 4: no such thing", "^compare: same bytes +failed",
                  "^figures: same bytes +passed", r"^mxfp4, values on the card.*>= 0\.5 +0\.25 +missed$",
                  "^nvfp4, values on the card.*- +not measured$", r"^ten recipes in one.*<= 3 +2\.5 +reached$",
                  r"^sm100\.mxf8f6f4, times.*>= 60 +150\.5 +reached$", "^mxfp4, from a file.*- +not measured$")
        self.assertIn("==", (folder / "log.txt").read_text())
        self.assertEqual(len((folder / "cast.cuda.sha256").read_text().splitlines()), 2)
        self.assertTrue((folder / "cast.cuda.json").is_file())
        self.says((folder / "train.cuda.sha256").read_text(), "^[0-9a-f]{64}  runs/run.json$")
        self.assertEqual(list(self.folder.glob(".gpu-check-*")), [])

    def test_what_is_stopped_stops_at_once(self):
        self.write("made/mx", MX)
        self.write("made/mx_capture", f'#!/bin/sh\necho $$ >"{self.folder}/pid"\nexec sleep 60\n')
        process = self.start("--build", "made", "--quick", "--output", "stopped")
        pid = self.folder / "pid"
        deadline = time.monotonic() + 600
        while not (pid.exists() and pid.read_text()):
            self.assertLess(time.monotonic(), deadline, "the recording does not begin")
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 143, err)
        self.says(err, "^stopped; what there is lies in .*/stopped$")
        with self.assertRaises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)
        self.assertEqual(list(self.folder.glob(".gpu-check-*")), [])


class Parts(unittest.TestCase):
    def test_a_signal_while_a_step_starts(self):
        check = check_gpu.Check.__new__(check_gpu.Check)
        check.starting, check.stopping, check.running = False, None, None

        def popen(*arguments, **options):
            check.stop(signal.SIGTERM, None)
            return "process"

        with unittest.mock.patch.object(subprocess, "Popen", popen), self.assertRaises(check_gpu.Stopped):
            check.start("x")
        self.assertEqual(check.running, "process")

    def test_device(self):
        self.assertEqual(check_gpu.device_of('item,value\r\nbackend cuda,"NVIDIA GPUs (NVIDIA H200, sm_90, 132 SMs)"\r\n'),
                         ("NVIDIA H200", ""))
        self.assertEqual(check_gpu.device_of('backend cuda,"NVIDIA GPUs (not here: no driver (libcuda))"\r\n'),
                         (None, "no driver (libcuda)"))
        self.assertEqual(check_gpu.device_of("backend avx2,AVX2\r\n"), (None, "mx has no backend cuda"))

    def test_best(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"results": [{"recipe": "mxfp4", "rate": 9}, {"recipe": "mxfp4", "rate": 10.50},
                                   {"recipe": "mxfp4", "rate": None}, {"recipe": "mxfp8", "rate": 70}]}, file)
            file.flush()
            self.assertEqual(check_gpu.best(file.name, "rate", recipe="mxfp4"), "10.5")
            self.assertEqual(check_gpu.best(file.name, "rate", recipe="mxfp6"), "")
        self.assertEqual(check_gpu.best("/nowhere", "rate"), "")

    def test_goal(self):
        self.assertTrue(check_gpu.goal("x", 0.7, "0.7").endswith("reached"))
        self.assertTrue(check_gpu.goal("x", 0.7, "0.69").endswith("missed"))
        self.assertTrue(check_gpu.goal("x", 0.7, "").endswith(" -  not measured"))
        self.assertTrue(check_gpu.goal("x", 3, "3", at_most=True).endswith("reached"))
        self.assertTrue(check_gpu.goal("x", 3, "3.1", at_most=True).endswith("missed"))

    @unittest.skipUnless(os.environ.get("MX"), "mx is not built")
    def test_recipes(self):
        """The program knows every recipe, and writes it as the bench does."""
        for recipe in check_gpu.FAMILIES + check_gpu.TEN:
            said = subprocess.run([os.environ["MX"], "explain", recipe, "--json", "-"], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(said.returncode, 0, recipe + said.stderr)
            self.assertIn(f'"meaning":"{recipe}"', said.stdout)

    def test_a_step_that_takes_too_long_ends(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            self.addCleanup(os.chdir, ROOT)

            class options:
                quick, build, output = True, folder, f"{folder}/out"
            check = check_gpu.Check(options)
            check.say = lambda text: None
            check.step("sleeps", 0.2, "sleep", 3600)
            self.assertIn("not done in 0.2 s, or killed", check.results[-1])
            check.step("dies", 600, "sh", "-c", "echo some; echo last; kill -11 $$")
            self.assertIn("failed   exit code 139: last", check.results[-1])
            check.step("is not for here", 600, "sh", "-c", "echo 'skipped: for a reason'; exit 77")
            self.assertIn("skipped  for a reason", check.results[-1])
            check.step("is missing", 600, "./no-such-program")
            self.assertIn("failed   exit code 127", check.results[-1])


if __name__ == "__main__":
    unittest.main()
