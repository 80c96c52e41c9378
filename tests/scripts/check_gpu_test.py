#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/check-gpu.py with a stand-in of a device: the whole list of steps, with programs that succeed, fail, crash,
hang and print garbage. Nothing has to be built and no GPU has to be there; what is built takes part as MX, in the
environment."""

import json
import os
import signal
import subprocess
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

from script import ROOT, load

check_gpu = load("check-gpu.py")

# `cast` leaves other bytes on the device, `compare` fails there, and the bench of products prints garbage.
MX = r"""#!/bin/sh
case $1 in
    version) printf 'backend cuda,"NVIDIA GPUs (NVIDIA Made Up, sm_90, 1 SMs, 1.0 GiB)"\r\n'; exit ;;
    compare) case "$*" in *cuda*) echo "no such thing" >&2; exit 4 ;; esac ;;
    bench)
        case "$*" in
            *--gemm*) head -c 300000 /dev/urandom; text='{"fraction_of_roof": [' ;;
            *--together*)
                text='[{"recipe":"mxfp4","elements_per_second":50},{"values":"device","recipe":"mxfp4","elements_per_second":900}'
                text=$text',{"recipes":["mxfp4","mxfp4:scale=ceil","mxfp4:scale=even","mxfp6","mxfp6:scale=ceil"'
                text=$text',"mxfp6:scale=even","mxfp8","mxfp8:scale=ceil","mxfp8:scale=even","nvfp4"],"elements_per_second":20}]' ;;
            *) text='{"values":"device","writes":"sums","recipe":"mxfp4","fraction_of_roof":0.25}' ;;
        esac ;;
esac
text=${text-$1}
case "$*" in *e4m3*cuda*) text=other ;; esac
while [ $# -gt 0 ]; do
    case $1 in -o | --json | --csv)
        case $2 in */runs) mkdir "$2" && echo "$text" >"$2/run.json" ;; *) echo "$text" >"$2" ;; esac ;;
    esac
    shift
done
"""
CAPTURE = '#!/bin/sh\nmkdir "$2"\necho >"$2/manifest.json"\n'  # --out FOLDER
CRASHES = "#!/bin/sh\necho some\necho last\nkill -11 $$\n"
SKIPPED = '#!/bin/sh\necho "skipped: for a reason"\nexit 77\n'
PASSES = '#!/bin/sh\necho "5 cases, 0 differ"\n'
GARBAGE = "#!/bin/sh\nhead -c 9000000 /dev/urandom\nexit 1\n"
HANGS = """#!/bin/sh
trap '' TERM
sleep 3600 &
echo $! >"{}"
while :; do sleep 1; done
"""


class CheckGpu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.kit = self.folder / "kit"
        self.kit.mkdir()

    def write(self, name, text):
        path = self.kit / name
        path.write_text(text)
        path.chmod(0o755)

    def start(self, *arguments, tools=""):
        path = f"{tools}:{os.environ['PATH']}" if tools else os.environ["PATH"]
        return subprocess.Popen([ROOT / "scripts" / "check-gpu.py", *arguments], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=dict(os.environ, CUDA_VISIBLE_DEVICES="-1", PATH=path))

    def check(self, code, *arguments, **how):
        """The results of a run that must exit with `code`, by step."""
        process = self.start(*arguments, "--output", "out", **how)
        self.text, self.errors = process.communicate()
        self.assertEqual(process.returncode, code, self.text + self.errors)
        self.assertEqual(list(self.folder.glob(".gpu-check-*")), [])
        if not (self.folder / "out" / "results.json").exists():
            return {}
        self.results = json.loads((self.folder / "out" / "results.json").read_text())
        return {r["step"]: r for r in self.results["steps"]}

    def outcomes(self, steps, **wanted):
        for name, outcome in wanted.items():
            step = steps[name.replace("_", " ")]
            self.assertEqual(step["outcome"], outcome, step)

    def is_gone(self, file):
        """Ended; who inherits an orphan may not have looked yet."""
        status = Path(f"/proc/{int(file.read_text())}/stat")
        for _ in range(100):
            try:
                if status.read_text().rpartition(")")[2].split()[0] in "ZX":
                    return
            except OSError:
                return
            time.sleep(0.1)
        self.fail("it still runs")

    @unittest.skipUnless(os.environ.get("MX"), "mx is not built")
    def test_the_program_without_a_device(self):
        (self.kit / "mx").symlink_to(os.environ["MX"])
        begin = time.monotonic()
        steps = self.check(77, "--kit", "kit", "--seconds", "900")
        self.assertLess(time.monotonic() - begin, 60)
        self.outcomes(steps, version="passed", device="skipped")
        self.assertRegex(self.text, "\nskipped: no device: .")
        self.assertEqual(list(steps), ["version", "device"])

    @unittest.skipUnless(os.environ.get("MX"), "mx is not built")
    def test_the_program_takes_every_command(self):
        """All commands by two backends of the CPU: they write files, and the same bytes."""
        class options:
            seconds, only, output, scratch, kit, build = 900, None, self.folder / "out", None, None, "nowhere"
        check = check_gpu.Check(options)
        check.program = lambda name: os.environ["MX"]
        check.limit = lambda brief, whole: 600 if brief == 70 else "1MiB"
        # One tensor for the many recipes, of which some are slow.
        check.commands = lambda model, small: (
            (name, [*words, "-t", "*layers.0.*q_proj*"] if name == "families" else words)
            for name, words in check_gpu.commands(model, small, width=64, depth=1, batch=64))
        check.on_gpu = ["--backend", "scalar"]
        check.same_bytes()
        names = [name for name, _ in check_gpu.commands("", "")]
        self.assertEqual([(r["step"], r["outcome"]) for r in check.results],
                         [(f"{name}: same bytes", "passed") for name in names], check.results)

    @unittest.skipUnless(os.environ.get("MX"), "mx is not built")
    def test_recipes(self):
        """The program knows every recipe, and writes it as the bench does."""
        for recipe in check_gpu.FAMILIES + check_gpu.TEN:
            said = subprocess.run([os.environ["MX"], "explain", recipe, "--json", "-"], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(said.returncode, 0, recipe + said.stderr)
            self.assertIn(f'"meaning":"{recipe}"', said.stdout)

    def test_mistakes(self):
        self.check(2, "--bild", "real")
        self.assertRegex(self.errors, "^usage: ")
        self.check(2, "--only", "everything")
        self.assertIn("'everything' is none of smoke, equality", self.errors)
        steps = self.check(1, "--build", "nowhere")
        self.assertIn("No such file", steps["version"]["why"])
        process = self.start("--build", "nowhere", "--output", "out")
        self.assertIn("out is there already", process.communicate()[1])
        self.assertEqual(process.returncode, 2)

    def test_every_step(self):
        self.write("mx", MX)
        self.write("mx_capture", CAPTURE)
        self.write("mx_gpu_parity", PASSES)
        self.write("mx_gpu_elements", CRASHES)
        self.write("mx_gpu_products", GARBAGE)
        self.write("mx_gpu_conversions", SKIPPED)
        tools = self.folder / "tools"
        tools.mkdir()
        for name, text in ("compute-sanitizer", '#!/bin/sh\nshift 4\n"$@"\n'), ("ncu", "#!/bin/sh\nexit 9\n"):
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        (self.kit / "commit").write_text("0123abc\n M changed\n")
        steps = self.check(1, "--kit", "kit", "--seconds", "900", tools=tools)
        self.assertEqual(self.results["device"], "NVIDIA Made Up")
        self.assertEqual(self.results["commit"], "0123abc, changed")
        self.outcomes(steps, device="passed", a_few_cases_of_parity="passed", a_few_cases_of_elements="failed",
                      a_few_cases_of_products="failed", all_cases_of_conversions="skipped", recording="passed",
                      recording_verified="passed", bench="passed", memcheck_parity="passed", racecheck_elements="failed",
                      profile_of_rows="failed", compare_by_GPU="failed")
        self.assertEqual(steps["a few cases of elements"]["why"], "ended by signal 11: last")
        self.assertEqual(steps["all cases of conversions"]["why"], "for a reason")
        self.assertEqual(steps["compare by GPU"]["why"], "exit code 4: no such thing")
        for name, outcome in ("analyze", "passed"), ("train", "passed"), ("gemm-sm100", "passed"), ("cast", "failed"), ("compare", "failed"):
            self.assertEqual(steps[f"{name}: same bytes"]["outcome"], outcome, name)
        self.assertEqual(steps["cast: same bytes"]["why"], "they differ")
        # In the order of their value.
        order = [list(steps).index(name) for name in ("device", "a few cases of parity", "all cases of parity", "recording",
                                                      "recording verified", "bench", "memcheck parity", "profile of rows")]
        self.assertEqual(order, sorted(order))
        table = {r["what"].split(",")[0] + r["aim"]: (r["measured"], r["verdict"]) for r in self.results["rates"]}
        self.assertEqual(table["mxfp4>= 0.5"], ("0.25", "missed"))
        self.assertEqual(table["nvfp4>= 0.3"], ("", "not measured"))
        self.assertEqual(table["ten recipes in one pass<= 3"], ("2.5", "reached"))
        self.assertEqual(table["sm90.wgmma.fp8>= 60"], ("", "not measured"))
        summary = (self.folder / "out" / "summary.md").read_text()
        self.assertRegex(summary, r"(?m)^# NVIDIA Made Up$")
        self.assertRegex(summary, r"(?m)^\| cast: same bytes \| failed \|  \| they differ \|$")
        self.assertTrue(summary.isprintable() or summary.isascii(), "garbage in the summary")
        with tarfile.open(self.folder / "out" / "logs.tar.gz") as tar:
            sizes = {member.name: member.size for member in tar}
        self.assertIn("logs/analyze.GPU.json", sizes)
        self.assertLess(max(sizes.values()), check_gpu.LOG_BYTES + 1000)
        with tarfile.open(self.folder / "out" / "capture.tar.gz") as tar:
            self.assertIn("capture/manifest.json", tar.getnames())

    def test_a_step_that_hangs_costs_its_own_time(self):
        pid = self.folder / "pid"
        self.write("mx", MX)
        self.write("mx_gpu_parity", HANGS.format(pid))
        self.write("mx_gpu_products", PASSES)
        begin = time.monotonic()
        steps = self.check(0, "--kit", "kit", "--seconds", str(check_gpu.RESERVE + 6), "--only", "smoke")
        self.assertLess(time.monotonic() - begin, 60)
        self.outcomes(steps, a_few_cases_of_parity="cut", a_few_cases_of_products="cut")
        self.is_gone(pid)

    def test_limits(self):
        """A step that exceeds its own limit has failed, whatever it leaves behind."""
        class options:
            seconds, only, output, scratch, kit, build = None, None, self.folder / "out", None, None, "nowhere"
        check = check_gpu.Check(options)
        pid = self.folder / "pid"
        self.write("hangs", HANGS.format(pid))
        self.assertFalse(check.step("hangs", 1, self.kit / "hangs"))
        self.assertEqual(check.results[-1]["outcome"], "failed")
        self.assertRegex(check.results[-1]["why"], "^not done in 1 s")
        self.is_gone(pid)
        # A child that keeps the output open is ended with its parent.
        self.assertTrue(check.step("leaves", 60, "sh", "-c", f"sleep 3600 & echo $! >{pid}"))
        self.is_gone(pid)

        def broken():
            raise OSError("no space left")
        check.whole(broken)
        self.assertEqual(check.results[-1]["why"], "OSError: no space left")

    def test_what_is_stopped_keeps_its_results(self):
        pid = self.folder / "pid"
        self.write("mx", MX)
        self.write("mx_gpu_elements", PASSES)
        self.write("mx_gpu_parity", HANGS.format(pid))
        process = self.start("--kit", "kit", "--output", "out")
        deadline = time.monotonic() + 600
        while not (pid.exists() and pid.read_text()):
            self.assertLess(time.monotonic(), deadline, "the test does not begin")
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 143, err)
        self.assertRegex(err, "^stopped; what there is lies in .*/out$")
        self.is_gone(pid)
        self.assertEqual(list(self.folder.glob(".gpu-check-*")), [])
        steps = {r["step"]: r["outcome"] for r in json.loads((self.folder / "out" / "results.json").read_text())["steps"]}
        self.assertEqual(steps["a few cases of elements"], "passed")

    def test_a_packed_kit(self):
        self.write("mx", "#!/bin/sh\necho 'backend avx2,AVX2'\n")
        with tarfile.open(self.kit / "kit.tar.xz", "w:xz") as tar:
            tar.add(self.kit / "mx", arcname="mx")
        (self.kit / "mx").unlink()
        steps = self.check(77, "--kit", "kit", "--seconds", "60")
        self.assertEqual(steps["device"]["why"], "mx has no backend cuda")
        self.assertRegex(self.results["kit"], "^[0-9a-f]{64}$")


class Parts(unittest.TestCase):
    def test_device(self):
        self.assertEqual(check_gpu.device_of('item,value\r\nbackend cuda,"NVIDIA GPUs (NVIDIA H200, sm_90, 132 SMs)"\r\n'),
                         ("NVIDIA H200", ""))
        self.assertEqual(check_gpu.device_of('backend cuda,"NVIDIA GPUs (not here: no driver (libcuda))"\r\n'),
                         (None, "no driver (libcuda)"))
        self.assertEqual(check_gpu.device_of("backend avx2,AVX2\r\n"), (None, "mx has no backend cuda"))

    def test_best(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"results": [{"recipe": "mxfp4", "rate": 9}, {"recipe": "mxfp4", "rate": 10.50},
                                   {"recipe": "mxfp4", "rate": None}, {"recipe": "mxfp4", "rate": "many"},
                                   {"recipe": "mxfp8", "rate": 70}]}, file)
            file.flush()
            self.assertEqual(check_gpu.best(file.name, "rate", recipe="mxfp4"), "10.5")
            self.assertEqual(check_gpu.best(file.name, "rate", recipe="mxfp6"), "")
        self.assertEqual(check_gpu.best("/nowhere", "rate"), "")


if __name__ == "__main__":
    unittest.main()
