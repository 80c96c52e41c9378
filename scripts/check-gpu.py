#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks everything that needs an NVIDIA GPU, on a machine that has one and CUDA 13: builds, runs the
tests marked gpu, compute-sanitizer, a recording of the GPU and its verification, the commands with
--backend cuda against the bytes of the CPU, and the benchmarks. Takes about an hour, needs no network
and no rights but to use the GPU, and changes no setting of it.

A step that fails does not stop the others. Exit code: 0 if nothing failed, 1 if something did, 77 if
there is no device and nothing else failed."""

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
GRACE = 20  # seconds between asking a process to end and ending it


class Stopped(BaseException):
    """A signal asked this program to end."""

    def __init__(self, number):
        self.number = number


def end(process):
    """Ends a process and what it started."""
    for number, patience in (signal.SIGTERM, GRACE), (signal.SIGKILL, None):
        try:
            os.killpg(process.pid, number)
            process.wait(patience)
            return
        except ProcessLookupError:
            process.wait()
            return
        except subprocess.TimeoutExpired:
            pass


def device_of(version):
    """What the lines of `mx version --csv -` say of the backend cuda: its device's name, or None
    and the reason."""
    lines = [line.rstrip("\r") for line in version.splitlines() if line.startswith("backend cuda,")]
    line = lines[-1] if lines else ""
    if not line or "not here" in line:
        reason = re.search(r'.*not here: (.*)\)"*$', line)
        return None, reason[1] if reason else "mx has no backend cuda"
    # backend cuda,"NVIDIA GPUs (NVIDIA H200, sm_90, ..."
    name = re.match(r".*\(([^(]*), sm_", line)
    return name[1] if name else line, ""


# One recipe of each family of kernels, and ten that share their passes.
FAMILIES = ["mxfp4", "mxfp6:scale=ceil", "mxfp8:scale=rceil", "mxfp8_e5m2", "mxint8:block=32x1", "mxfp4:offset=fp16",
            "mxfp8:round=stochastic", "mxfp4:transform=hadamard", "nvfp4", "nvfp4:dialect=te", "nvfp4:dialect=torchao",
            "nvfp4:four_over_six=mse", "nvfp4:scale_format=ue5m3", "nvfp4:scale=search", "fp8_1x128", "fp8_128x128",
            "mxfp4:dialect=quark", "mxfp8:dialect=microxcaling", "mxfp8:dialect=systems-scaling"]
TEN = ["mxfp4", "mxfp4:scale=ceil", "mxfp4:scale=even", "mxfp6", "mxfp6:scale=ceil", "mxfp6:scale=even", "mxfp8",
       "mxfp8:scale=ceil", "mxfp8:scale=even", "nvfp4"]


def asked(recipes):
    return [word for recipe in recipes for word in ("--recipe", recipe)]


def records(value):
    """Every object in a JSON document, however deep."""
    if isinstance(value, dict):
        yield value
        value = value.values()
    elif not isinstance(value, list):
        return
    for inner in value:
        yield from records(inner)


def best(file, field, **wanted):
    """The largest value of a field in the records with these members, as it is written; "" without."""
    try:
        document = json.loads(Path(file).read_text(), parse_float=str, parse_int=str)
    except (OSError, ValueError):
        return ""
    found = [r[field] for r in records(document)
             if r.get(field) is not None and all(r.get(name) == value for name, value in wanted.items())]
    return max(found, key=float, default="")


def goal(what, aim, measured, at_most=False):
    reached = measured != "" and (float(measured) <= aim if at_most else float(measured) >= aim)
    verdict = "not measured" if measured == "" else "reached" if reached else "missed"
    sign = "<=" if at_most else ">="
    return f"{what:<58} {f'{sign} {aim}':>8} {measured or '-':>10}  {verdict}"


def times_one(file):
    """The time of the pass with all recipes of a bench, in times that of mxfp4 alone."""
    one = best(file, "elements_per_second", recipe="mxfp4")
    everything = best(file, "elements_per_second", recipes=TEN)
    return f"{float(one) / float(everything):.3g}" if one and everything else ""


def speed(bench, ten, products):
    """Each figure with its limit, measured in the same run."""
    def roof(recipe="mxfp4", **wanted):
        return best(bench, "fraction_of_roof", recipe=recipe, **wanted)

    on_card = {"values": "device", "writes": "sums"}
    lines = [f"{'speed':<58} {'aim':>8} {'measured':>10}",
             goal("mxfp4, values on the card, of its read bandwidth", 0.5, roof(**on_card)),
             goal("nvfp4, values on the card, of its read bandwidth", 0.3, roof("nvfp4", **on_card)),
             goal("mxfp4, codes written, of its copy bandwidth", 0.8, roof(values="device", writes="codes")),
             goal("mxfp4, from a file, of pinned copies to the card", 0.8, roof(values="files", writes="sums")),
             goal("ten recipes in one pass, times mxfp4", 3, times_one(ten), at_most=True)]
    for model in "sm90.wgmma.fp8", "sm100.mxf8f6f4":
        lines.append(goal(f"{model}, times two threads of the processor", 60,
                          best(products, "times_two_threads_of_the_processor", accumulator=model)))
    return lines


class Check:
    def __init__(self, options):
        self.quick = options.quick
        self.built = options.build is not None
        self.build = Path(os.path.realpath(options.build)) if self.built else SOURCE / "build" / "gpu"
        self.named = options.output is not None
        # The folder gets its final name once the device is known; without a device the name is "none".
        self.started = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        self.work = Path(options.output or f"gpu-check-none-{self.started}")
        if self.work.exists() and (not self.work.is_dir() or any(self.work.iterdir())):
            raise SystemExit(f"{self.work} is there already; choose another --output")
        self.work.mkdir(parents=True, exist_ok=True)
        self.work = self.work.resolve()
        # In the folder of the results: files of some GiB are written there.
        self.scratch = Path(tempfile.mkdtemp(prefix=".gpu-check-", dir=self.work.parent))
        self.mx = self.build / "mx"
        self.running = None
        self.starting = False
        self.stopping = None  # the signal that came while a step was starting
        self.results = []
        self.failed = False
        self.device = False
        self.no_device = ""

    def stop(self, number, frame):
        """Handles a signal; what is just starting would be left behind, so it waits for that."""
        self.stopping = number
        if not self.starting:
            raise Stopped(number)

    def start(self, *arguments, **options):
        """Starts the process that `running` is from then on."""
        self.starting = True
        try:
            self.running = subprocess.Popen(*arguments, **options)
        finally:
            self.starting = False
        if self.stopping is not None:
            raise Stopped(self.stopping)

    def size(self, whole, quick):
        return quick if self.quick else whole

    def log(self, text):
        with open(self.work / "log.txt", "a") as file:
            file.write(text)

    def say(self, text):
        print(text, flush=True)
        self.log(text + "\n")

    def note(self, step, outcome, why=""):
        self.results.append(f"{step:<34} {outcome:<8} {why}")
        self.say(f"== {step}: {outcome}{': ' if why else ''}{why}")
        self.failed |= outcome == "failed"

    def step(self, name, limit, *command):
        """Runs a command with a log of its own. 77 is skipped, all but 0 has failed."""
        command = [str(word) for word in command]
        file = self.work / (re.sub(r"[ /]", "-", name) + ".log")
        self.say(f"== {name} (at most {limit} s): {' '.join(command)}")
        start = time.monotonic()
        with open(file, "wb") as log:
            try:
                # A separate session, so that an interrupt from the terminal ends the steps in order.
                self.start(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                           cwd=self.scratch, start_new_session=True)
                code = self.running.wait(limit)
            except OSError as problem:
                log.write(f"{problem}\n".encode())
                code = 127
            except subprocess.TimeoutExpired:
                end(self.running)
                code = 124
        self.running = None
        code = 128 - code if code < 0 else code
        text = file.read_text(errors="replace")
        self.log(text)
        last = next((line[:160] for line in reversed(text.splitlines()) if line.strip()), "")
        if code == 0:
            self.note(name, "passed", f"{time.monotonic() - start:.0f} s")
        elif code == 77:
            self.note(name, "skipped", re.sub("^skipped: ", "", last))
        elif code in (124, 137):
            self.note(name, "failed", f"not done in {limit} s, or killed")
        else:
            self.note(name, "failed", f"exit code {code}: {last}")

    def on_device(self, name, *rest):
        """A step that is skipped without a device."""
        if self.device:
            self.step(name, *rest)
        else:
            self.note(name, "skipped", "no device")

    def make(self):
        ninja = shutil.which("ninja") and not (self.build / "CMakeCache.txt").exists()
        self.step("configure", 600, "cmake", "-S", SOURCE, "-B", self.build, *(["-G", "Ninja"] if ninja else []),
                  "-DCMAKE_BUILD_TYPE=Release", "-DMX_CUDA=on", "-DMX_BUILD_TESTS=ON")
        self.step("build", 7200, "cmake", "--build", self.build, "--parallel", processors(), "--target", "mx",
                  "mx_capture", "mx_gpu_tests")

    def find_device(self):
        self.step("version", 120, self.mx, "version", "--csv", "-")
        # Settings that a device does not report; none is changed.
        if shutil.which("nvidia-smi"):
            self.step("nvidia-smi", 60, "nvidia-smi", "-q")
        name, reason = device_of((self.work / "version.log").read_text(errors="replace"))
        if name is None:
            self.no_device = f"no device: {reason}"
            self.note("device", "skipped", self.no_device)
            return
        self.device = True
        self.note("device", "passed", name)
        if not self.named:
            short = re.sub("[^a-z0-9-]", "", name.lower().replace(" ", "-"))
            self.work = self.work.rename(self.work.parent / f"gpu-check-{short}-{self.started}")

    def sanitize(self):
        """The tools of the sanitizer, over the tests that start every kernel."""
        cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
        sanitizer = shutil.which("compute-sanitizer", path=os.pathsep.join(
            [os.environ.get("PATH", ""), f"{cuda}/bin", "/usr/local/cuda/bin"]))
        help_text = subprocess.run([sanitizer, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL).stdout if sanitizer else b""
        for tool in "memcheck", "racecheck", "synccheck", "initcheck":
            # Results are received in one copy, with gaps between arrays that no kernel writes or reads.
            gaps = tool == "initcheck" and b"--check-api-memory-access" in help_text
            for program in sorted(self.build.glob("tests/gpu/mx_gpu_*")):
                if not program.is_file() or not os.access(program, os.X_OK):
                    continue
                name = f"{tool} {program.name[len('mx_gpu_'):]}"
                if program.name == "mx_gpu_conversions":
                    self.note(name, "skipped", "it goes through all of float32")
                elif self.device and not sanitizer:
                    self.note(name, "skipped", "compute-sanitizer is not installed")
                else:
                    self.on_device(name, 1800, sanitizer, "--tool", tool,
                                   *(["--check-api-memory-access", "no"] if gaps else []),
                                   "--error-exitcode", 99, program, "--every", self.size(23, 211))

    def capture(self):
        self.on_device("capture", 3000, self.build / "mx_capture", *(["--quick"] if self.quick else []),
                       "--out", self.work / "capture")
        if (self.work / "capture" / "manifest.json").exists():
            self.step("capture verified", 3600, self.mx, "verify", self.work / "capture")
        else:
            self.note("capture verified", "skipped", "nothing was recorded")

    def same(self, name, *arguments):
        """One command by the processor and by the card. OUT in an argument is a folder, empty at
        first; what is written there must be the same bytes."""
        if not self.device:
            self.note(f"{name}: same bytes", "skipped", "no device")
            return
        out = self.scratch / "out"
        sums = {}
        for backend in "processor", "cuda":
            out.mkdir()
            choice = [] if backend == "processor" else ["--backend", "cuda"]
            self.step(f"{name} by {backend}", 1200, self.mx,
                      *(str(a).replace("OUT", str(out)) for a in arguments), *choice, "--quiet")
            files = (file for file in sorted(out.rglob("*")) if file.is_file())
            sums[backend] = "".join(f"{sha256(file)}  {file.relative_to(out)}\n" for file in files)
            (self.work / f"{name}.{backend}.sha256").write_text(sums[backend])
            out.rename(self.scratch / backend)
        if not sums["processor"]:
            self.note(f"{name}: same bytes", "failed", "nothing was written")
        elif sums["processor"] == sums["cuda"]:
            self.note(f"{name}: same bytes", "passed")
        else:
            self.note(f"{name}: same bytes", "failed", "they differ")
            # Records are small and show which part to examine.
            for backend in "processor", "cuda":
                file = self.scratch / backend / "records.json"
                if file.exists():
                    shutil.copy(file, self.work / f"{name}.{backend}.json")
        for backend in "processor", "cuda":
            shutil.rmtree(self.scratch / backend)

    def same_bytes(self):
        """Each command by the processor and by the card: the same bytes, tables included."""
        model, small = "model.safetensors", "small.safetensors"
        if self.device:
            self.step("synth", 600, self.mx, "synth", "--size", self.size("4GiB", "32MiB"), "-o", model, "--quiet")
            subprocess.run([self.mx, "synth", "--preset", "small", "-o", small, "--quiet"], cwd=self.scratch)
        json_out = ["--json", "OUT/records.json"]
        self.same("analyze", "analyze", model, "-r", "mxfp4", "-r", "mxfp8:scale=even", "-r",
                  "mxfp6:round=stochastic", "-r", "mxint8:block=32x1", "--histograms", "--decompose", *json_out,
                  "--csv", "OUT/records.csv")
        # Without histograms, which have kernels of their own.
        self.same("figures", "analyze", model, *asked(FAMILIES), *json_out)
        self.same("compare", "compare", model, *json_out, "--csv", "OUT/records.csv")
        self.same("quantize", "quantize", model, "--all-tensors", "-r", "mxfp4:scale=even", "-o", "OUT/values.safetensors", *json_out)
        self.same("packed", "quantize", model, "--all-tensors", "-r", "mxfp8", "--packed", "-o", "OUT/packed.safetensors", *json_out)
        self.same("cast", "quantize", model, "--all-tensors", "-r", "e4m3", "-o", "OUT/cast.safetensors", *json_out)
        a = f"{small}:activations.layers.0.self_attn.input"
        b = f"{small}:model.layers.0.self_attn.q_proj.weight"
        for name, recipe, unit in ("sm100", "mxfp8", "sm100.mxf8f6f4"), ("sm90", "e4m3", "sm90.wgmma.fp8"):
            self.same(f"gemm-{name}", "gemm", a, b, "--transpose-b", "-r", recipe, "-m", unit, "-o",
                      "OUT/d.safetensors", *json_out)
        self.same("train", "train", "proxy", "--width", 512, "--depth", 4, "--batch", 2048, "--recipe", "mxfp8",
                  "--steps", self.size(20, 3), "--seeds", "1..8", "-o", "OUT/runs", *json_out)

    def bench(self):
        model = "model.safetensors"
        if self.device:
            self.step("synth for bench", 1200, self.mx, "synth", "--size", self.size("16GiB", "1GiB"), "-o", model,
                      "--quiet")
        self.on_device("bench", 1800, self.mx, "bench", model, "--backend", "cuda", *asked(["mxfp4", "mxfp8", "nvfp4"]),
                       "--threads", f"1,{processors()}", "--seconds", self.size(10, 1), "--json",
                       self.work / "bench.json")
        self.on_device("bench ten recipes", 1800, self.mx, "bench", "--backend", "cuda", "--together", *asked(TEN),
                       "--threads", processors(), "--seconds", self.size(10, 1), "--json", self.work / "ten.json")
        self.on_device("bench products", 1800, self.mx, "bench", "--gemm", "--backend", "cuda", "--threads",
                       processors(), "--accumulate", "sm90.wgmma.fp8", "--accumulate", "sm100.mxf8f6f4", "--mnk",
                       self.size("8192,8192,4096", "4096,4096,2048"), "--seconds", self.size(60, 4), "--json",
                       self.work / "products.json")
        self.on_device("bench trainings", 1800, self.mx, "bench", "--train", "--backend", "cuda", "--threads",
                       f"1,{processors()}", "--seconds", self.size(60, 4), "--json", self.work / "trainings.json")

    def run(self):
        if not self.built:
            self.make()
        there = self.mx.is_file() and os.access(self.mx, os.X_OK)
        if there:
            self.find_device()
        else:
            self.note("mx", "failed", f"no {self.mx}")
        self.on_device("tests", 3600, "ctest", "--test-dir", self.build, "-L", "gpu", "--output-on-failure",
                       "--timeout", 1800)
        self.sanitize()
        self.capture()
        self.same_bytes()
        self.bench()
        return self.summary()

    def summary(self):
        lines = ["", *self.results]
        if self.device:
            lines += ["", *speed(*(self.work / f"{bench}.json" for bench in ("bench", "ten", "products")))]
        text = "".join(f"{line}\n" for line in lines)
        (self.work / "summary.txt").write_text(text)
        self.log(text)
        print(f"{text}\nEverything is in {self.work}")
        if self.device:
            print("To send it: tar czf " + shlex.join([f"{self.work.name}.tar.gz", "-C", str(self.work.parent),
                                                       self.work.name]))
        if self.failed:
            return 1
        if not self.device:
            print(f"skipped: {self.no_device}")
            return 77
        return 0


def processors():
    return len(os.sched_getaffinity(0))


def sha256(file):
    total = hashlib.sha256()
    with open(file, "rb") as data:
        while block := data.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", metavar="DIR",
                        help="a build that is there already; nothing is configured or built")
    parser.add_argument("--output", metavar="DIR",
                        help="where everything is written (gpu-check-DEVICE-DATE in the current folder)")
    parser.add_argument("--quick", action="store_true",
                        help="a smaller file, one case of many under compute-sanitizer, a short recording")
    options = parser.parse_args(arguments)
    os.environ["LC_ALL"] = "C"
    try:
        check = Check(options)
    except SystemExit as problem:
        parser.exit(2, f"{problem}\n")
    for number in signal.SIGINT, signal.SIGTERM:
        signal.signal(number, check.stop)
    try:
        return check.run()
    except Stopped as stopped:
        for number in signal.SIGINT, signal.SIGTERM:
            signal.signal(number, signal.SIG_IGN)
        if check.running is not None:
            end(check.running)
        print(f"stopped; what there is lies in {check.work}", file=sys.stderr)
        return 128 + stopped.number
    finally:
        shutil.rmtree(check.scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
