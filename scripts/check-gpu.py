#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks on a machine with an NVIDIA GPU that --backend cuda gives the bytes of the CPU, records what the GPU's
conversions and matrix units compute, and measures rates: docs/howto/check-a-gpu.md.

Without --kit and --build it configures and builds the checkout first. Each step has a limit of its own, and one that
fails, hangs or crashes does not stop the others; they come in the order of their value, and the results are written
after each. It needs no network and no rights but to use the GPU, and changes no setting of it.

Exit code: 0 if nothing failed, 1 if something did, 77 if there is no device and nothing else failed."""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
GRACE = 5  # seconds between asking a process to end and ending it
RESERVE = 10  # seconds at the end of --seconds to pack the results
LOG_BYTES = 4 << 20  # kept of the output of a step
GROUPS = ["smoke", "equality", "recording", "rates", "sanitizer", "profiles"]


class Stopped(BaseException):
    """A signal asked this program to end."""


def end(process):
    """Ends a process and what it started."""
    for number in signal.SIGTERM, signal.SIGKILL:
        try:
            os.killpg(process.pid, number)
            process.wait(GRACE)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            pass
    process.poll()


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

# --every of the tests: for a first look, and where every instruction is checked.
FIRST, CHECKED = 40, 400

# Kernels to profile: the regular expression of their names, and the bench that starts them.
PROFILES = [("rows", "quantize_row_segments", ["--recipe", "mxfp4"]),
            ("numbers", "quantize_number_segments", ["--recipe", "nvfp4"]),
            ("products", "walk_split", ["--gemm", "--accumulate", "sm90.wgmma.fp8", "--mnk", "2048,2048,2048"]),
            ("marked", "quantize_segments", ["--recipe", "mxfp4"]),
            ("trainings", "multiply", ["--train"])]


def asked(recipes):
    return [word for recipe in recipes for word in ("--recipe", recipe)]


def commands(model, small, width=512, depth=4, batch=2048):
    """Commands whose output on the CPU and on a GPU must be the same bytes, by name. They write to the folder OUT."""
    out = ["--json", "OUT/records.json"]
    a, b = f"{small}:activations.layers.0.self_attn.input", f"{small}:model.layers.0.self_attn.q_proj.weight"
    quantize = ["quantize", model, "--all-tensors", "-o", "OUT/x.safetensors"]  # it has no --json
    proxy = ["train", "proxy", "--width", width, "--depth", depth, "--batch", batch, "--steps", 2, "-o", "OUT/runs", *out]
    yield "train", [*proxy, "--recipe", "mxfp8", "--seeds", "1..2"]
    yield "train-coded", [*proxy, "--scheme", "su.coded.e4m3", "--stream", "torch"]
    yield "train-llama", ["train", "llama", "--steps", 2, "--recipe", "mxfp4:transform=hadamard", "-o", "OUT/runs", *out]
    for name, recipe, unit in ("sm100", "mxfp8", "sm100.mxf8f6f4"), ("sm90", "e4m3", "sm90.wgmma.fp8"):
        yield f"gemm-{name}", ["gemm", a, b, "--transpose-b", "-r", recipe, "-m", unit, "-o", "OUT/d.safetensors", *out]
    yield "cast", [*quantize, "-r", "e4m3"]
    yield "packed", [*quantize, "-r", "mxfp8", "--packed"]
    yield "packed-nvfp4", [*quantize, "-r", "nvfp4", "--packed"]
    yield "quantize", [*quantize, "-r", "mxfp4:scale=even"]
    yield "analyze", ["analyze", model, *asked(["mxfp4", "mxfp8:scale=even", "mxfp6:round=stochastic",
                                                "mxint8:block=32x1"]), "--histograms", "--decompose", *out]
    yield "ten", ["analyze", model, *asked(TEN), *out, "--csv", "OUT/records.csv"]
    yield "families", ["analyze", small, *asked(FAMILIES), *out]
    yield "compare", ["compare", small, *out]


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
    """The largest value of a field in the records with these members, as it is written; "" without. A member that is
    None must be missing or null."""
    try:
        document = json.loads(Path(file).read_text(), parse_float=str, parse_int=str)
    except (OSError, ValueError):
        return ""
    found = [r[field] for r in records(document)
             if is_number(r.get(field)) and all(r.get(name) == value for name, value in wanted.items())]
    return max(found, key=float, default="")


def is_number(text):
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def times_one(file):
    """The time of the pass with all recipes of a bench, in times that of mxfp4 alone."""
    # From the memory of the host: values on the GPU, which no pass with several recipes reads, are ten times as fast.
    one = best(file, "elements_per_second", recipe="mxfp4", values=None)
    everything = best(file, "elements_per_second", recipes=TEN)
    return f"{float(one) / float(everything):.3g}" if one and everything and float(everything) else ""


def rates(folder):
    """Rows of the table of rates: what, the aim, the measured figure, the verdict."""
    bench, ten, products = (folder / f"{name}.json" for name in ("bench", "bench-ten-recipes", "bench-products"))

    def roof(recipe="mxfp4", **wanted):
        return best(bench, "fraction_of_roof", recipe=recipe, **wanted)

    def row(what, aim, measured, at_most=False):
        reached = measured and (float(measured) <= aim if at_most else float(measured) >= aim)
        return {"what": what, "aim": f"{'<=' if at_most else '>='} {aim}", "measured": measured,
                "verdict": "not measured" if not measured else "reached" if reached else "missed"}

    on_card = {"values": "device", "writes": "sums"}
    yield row("mxfp4, values on the GPU, of its read bandwidth", 0.5, roof(**on_card))
    yield row("nvfp4, values on the GPU, of its read bandwidth", 0.3, roof("nvfp4", **on_card))
    yield row("mxfp4, codes written, of its copy bandwidth", 0.8, roof(values="device", writes="codes"))
    yield row("mxfp4, from a file, of pinned copies to the GPU", 0.8, roof(values="files", writes="sums"))
    yield row("ten recipes in one pass, times mxfp4", 3, times_one(ten), at_most=True)
    for model in "sm90.wgmma.fp8", "sm100.mxf8f6f4":
        yield row(f"{model}, times two threads of the CPU", 60,
                  best(products, "times_two_threads_of_the_processor", accumulator=model))


class Check:
    def __init__(self, options):
        self.begin = time.monotonic()
        self.seconds = options.seconds
        self.only = options.only or GROUPS
        # Smaller files and shorter limits.
        self.brief = options.seconds is not None and options.seconds < 3600
        self.out = Path(options.output).resolve()
        if self.out.exists() and (not self.out.is_dir() or any(self.out.iterdir())):
            raise SystemExit(f"{self.out} is there already; choose another --output")
        self.out.mkdir(parents=True, exist_ok=True)
        self.scratch = Path(tempfile.mkdtemp(prefix=".gpu-check-", dir=options.scratch or self.out.parent))
        self.logs = self.scratch / "logs"
        self.logs.mkdir()
        self.kit = Path(options.kit).resolve() if options.kit else None
        self.build = Path(options.build or SOURCE / "build" / "gpu").resolve()
        self.make = not options.kit and not options.build
        self.lock = threading.RLock()
        self.running = set()
        self.starting = False  # a process, in the main thread
        self.signal = None
        self.results = []
        self.facts = {"started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        self.device = None
        self.commands = commands
        self.on_gpu = ["--backend", "cuda"]

    # Steps.

    def left(self):
        """Seconds until nothing more may start."""
        return float("inf") if self.seconds is None else self.begin + self.seconds - RESERVE - time.monotonic()

    def note(self, step, outcome, why="", seconds=None):
        """Outcomes: passed, failed, skipped, and cut, when the time of all steps was over."""
        with self.lock:
            self.results.append({"step": step, "outcome": outcome, "seconds": seconds, "why": why})
            print(f"{time.monotonic() - self.begin:6.0f} s  {step}: {outcome}{': ' if why else ''}{why}", flush=True)
            self.write()

    def log_of(self, step):
        return self.logs / (re.sub(r"[^A-Za-z0-9.]+", "-", step) + ".log")

    def step(self, name, limit, *command, quiet=False):
        """Runs a command with a log of its own, for at most `limit` seconds. 77 is skipped, all but 0 has failed.
        `quiet`: only notes what has not passed. Returns whether it passed."""
        command = [str(word) for word in command]
        cut = self.left() < limit
        limit = min(limit, self.left())
        if limit < 1:
            self.note(name, "cut", "no time left")
            return False
        start = time.monotonic()
        log = self.log_of(name)
        with self.lock:
            self.starting = threading.current_thread() is threading.main_thread()
            try:
                if self.signal is None:
                    # A session of its own, so that an interrupt from the terminal ends the steps in order.
                    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                               stdin=subprocess.DEVNULL, cwd=self.scratch, start_new_session=True)
                    self.running.add(process)
            except OSError as problem:
                self.note(name, "failed", str(problem), 0)
                return False
            finally:
                self.starting = False
            if self.signal is not None:
                raise Stopped
        reader = threading.Thread(target=keep, args=(process.stdout, log, " ".join(command)), daemon=True)
        reader.start()
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = 124
        end(process)  # also what it has left behind
        reader.join(GRACE)
        with self.lock:
            self.running.discard(process)
            if self.signal is not None:
                raise Stopped
        took = round(time.monotonic() - start, 1)
        lines = log.read_text(errors="replace").splitlines()[1:]
        last = next((re.sub(r"[^ -~]", "?", line)[:160] for line in reversed(lines) if line.strip()), "")
        if code == 0:
            if not quiet:
                self.note(name, "passed", "", took)
        elif code == 77:
            self.note(name, "skipped", re.sub("^skipped: ", "", last), took)
        elif code == 124 and cut:
            self.note(name, "cut", f"not done in the {limit:.0f} s that were left", took)
        elif code == 124:
            self.note(name, "failed", f"not done in {limit:.0f} s; {last}", took)
        elif code < 0:
            self.note(name, "failed", f"ended by signal {-code}: {last}", took)
        else:
            self.note(name, "failed", f"exit code {code}: {last}", took)
        return code == 0

    def together(self, *lanes):
        """Side by side where there are processors enough for each to be little in the way of the others."""
        if processors() < 8:
            for lane in lanes:
                self.whole(lane)
            return
        threads = [threading.Thread(target=self.whole, args=(lane,)) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def whole(self, lane):
        """Runs steps to their end, whatever happens: what fails here, such as a full disk, is noted."""
        try:
            lane()
        except Stopped:
            if threading.current_thread() is threading.main_thread():
                raise
        except Exception as problem:
            self.note(getattr(lane, "__name__", "steps"), "failed", f"{type(problem).__name__}: {problem}")

    def limit(self, brief, whole):
        return brief if self.brief else whole

    def on_signal(self, number, frame):
        """What is just starting would be left behind, so the signal waits for that."""
        self.signal = number
        if not self.starting:
            raise Stopped

    def stop(self):
        """Ends all steps; no more start."""
        for process in list(self.running):
            end(process)

    # Results.

    def write(self):
        with self.lock:
            table = list(rates(self.logs)) if self.device else []
            facts = dict(self.facts, seconds=round(time.monotonic() - self.begin), steps=self.results, rates=table)
            replace(self.out / "results.json", json.dumps(facts, indent=1) + "\n")
            lines = [f"# {self.device or 'No device'}", "",
                     "; ".join(f"{name} {value}" for name, value in self.facts.items() if value), "",
                     "| step | outcome | s | why |", "|---|---|---:|---|"]
            for r in self.results:
                why = r["why"].replace("|", "\\|")
                lines.append(f"| {r['step']} | {r['outcome']} | {'' if r['seconds'] is None else r['seconds']} | {why} |")
            if table:
                lines += ["", "| rate | aim | measured | |", "|---|---:|---:|---|"]
                lines += [f"| {r['what']} | {r['aim']} | {r['measured'] or '-'} | {r['verdict']} |" for r in table]
            replace(self.out / "summary.md", "\n".join(lines) + "\n")

    def pack(self, folder, name):
        if folder.is_dir() and any(folder.iterdir()):
            with tarfile.open(self.scratch / name, "w:gz", compresslevel=3) as tar:
                tar.add(folder, arcname=name.split(".")[0])
            shutil.move(self.scratch / name, self.out / name)

    # What the steps run.

    def program(self, name):
        if self.kit:
            return self.kit / name
        return self.build / ("tests/gpu" if name.startswith("mx_gpu_") else ".") / name

    def tests(self):
        folder = self.kit if self.kit else self.build / "tests/gpu"
        found = [file for file in sorted(folder.glob("mx_gpu_*")) if file.is_file() and os.access(file, os.X_OK)]
        # The one that compares every float32 last.
        return sorted(found, key=lambda file: file.name == "mx_gpu_conversions")

    def unpack(self):
        packed = self.kit / "kit.tar.xz"
        if (self.kit / "commit").is_file():
            commit, *changed = (self.kit / "commit").read_text().split("\n", 1)
            self.facts["commit"] = commit + (", changed" if "".join(changed).strip() else "")
        if packed.is_file():
            self.facts["kit"] = sha256(packed)
            with tarfile.open(packed) as tar:
                tar.extractall(self.scratch / "kit", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
            self.kit = self.scratch / "kit"

    def compile(self):
        ninja = shutil.which("ninja") and not (self.build / "CMakeCache.txt").exists()
        return self.step("configure", 600, "cmake", "-S", SOURCE, "-B", self.build, *(["-G", "Ninja"] if ninja else []),
                         "-DCMAKE_BUILD_TYPE=Release", "-DMX_CUDA=on", "-DMX_BUILD_TESTS=ON") and \
            self.step("build", 7200, "cmake", "--build", self.build, "--parallel", processors(), "--target", "mx",
                      "mx_capture", "mx_gpu_tests")

    def find_device(self):
        """Its name; None without one."""
        if not self.step("version", 60, self.program("mx"), "version", "--csv", "-"):
            return None
        name, reason = device_of(self.log_of("version").read_text(errors="replace"))
        if name is None:
            self.note("device", "skipped", reason)
            return None
        self.note("device", "passed", name)
        # What a device does not report: driver, clocks, others at work.
        for tool in ["nvidia-smi", "-q"], ["lscpu"]:
            if shutil.which(tool[0]):
                self.step(tool[0], 30, *tool, quiet=True)
        self.facts.update(device=name, threads=processors())
        return name

    # The groups of steps, in the order of their value.

    def smoke(self):
        for test in self.tests():
            self.step(f"a few cases of {test.name[len('mx_gpu_'):]}", self.limit(45, 300), test, "--every", FIRST)

    def equality(self):
        def all_cases(test):
            return lambda: self.step(f"all cases of {test.name[len('mx_gpu_'):]}", self.limit(150, 1800), test)

        self.together(self.same_bytes, *map(all_cases, self.tests()))

    def recording(self):
        capture = self.program("mx_capture")
        if not capture.is_file():
            return self.note("recording", "skipped", "no mx_capture")
        folder = self.scratch / "capture"
        self.step("recording", self.limit(130, 3000), capture, "--out", folder)
        self.pack(folder, "capture.tar.gz")
        if (folder / "manifest.json").exists():
            self.step("recording verified", self.limit(110, 3600), self.program("mx"), "verify", folder, "--json",
                      self.logs / "verify.json")
        else:
            self.note("recording verified", "skipped", "nothing was recorded")

    def same_bytes(self):
        """Each command by the CPU and by the GPU: the same bytes of all files that it writes."""
        mx, limit = self.program("mx"), self.limit(70, 1200)
        backends = ("CPU", []), ("GPU", self.on_gpu)
        model, small = self.scratch / "model.safetensors", self.scratch / "small.safetensors"
        self.step("synth", limit, mx, "synth", "--size", self.limit("1GiB", "4GiB"), "-o", model, "--quiet", quiet=True)
        self.step("synth small", limit, mx, "synth", "--preset", "small", "-o", small, "--quiet", quiet=True)
        for name, arguments in self.commands(model, small):
            sums = {}
            for backend, choice in backends:
                out = self.scratch / f"out-{name}-{backend}"
                out.mkdir()
                passed = self.step(f"{name} by {backend}", limit, mx,
                                   *(str(a).replace("OUT", str(out)) for a in arguments), *choice, "--quiet", quiet=True)
                files = (file for file in sorted(out.rglob("*")) if file.is_file())
                sums[backend] = [f"{sha256(file)}  {file.relative_to(out)}" for file in files] if passed else None
                # Records are small and show which part to examine.
                if (out / "records.json").is_file():
                    shutil.copy(out / "records.json", self.logs / f"{name}.{backend}.json")
                shutil.rmtree(out)
            if None in sums.values():
                if self.left() > 1:
                    self.note(f"{name}: same bytes", "failed", "a command failed")
                continue
            one, other = sums.values()
            self.note(f"{name}: same bytes", "passed" if one and one == other else "failed",
                      "nothing was written" if not one else f"{len(one)} files" if one == other else "they differ")


    def rates(self):
        """Alone on the machine."""
        mx, limit, threads = self.program("mx"), self.limit(50, 1800), processors()
        large = self.scratch / "large.safetensors"
        self.step("synth large", limit, mx, "synth", "--size", self.limit("4GiB", "16GiB"), "-o", large, "--quiet", quiet=True)

        def bench(name, seconds, *options):
            self.step(name, limit, mx, "bench", *options, "--threads", threads, "--seconds", self.limit(seconds, 4 * seconds),
                      "--json", self.logs / (name.replace(" ", "-") + ".json"))

        cuda = ["--backend", "cuda"]
        bench("bench", 3, large, *cuda, *asked(["mxfp4", "mxfp8", "nvfp4"]))
        bench("bench products", 6, "--gemm", *cuda, "--accumulate", "sm90.wgmma.fp8", "--accumulate", "sm100.mxf8f6f4",
              "--mnk", "8192,8192,4096")
        bench("bench ten recipes", 3, *cuda, "--together", *asked(TEN))
        bench("bench trainings", 5, "--train", *cuda)
        bench("bench trainings by the CPU", 5, "--train")
        # Its time is that of the step in the table.
        self.step("200 steps of width 512", self.limit(60, 600), mx, "train", "proxy", "--width", 512, "--depth", 4, "--batch",
                  2048, "--lr", "6e-4", "--scheme", "su.coded.e4m3", "--steps", 200, *cuda)

    def tool(self, name):
        """A tool of the toolkit, where it usually is."""
        cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
        return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), f"{cuda}/bin", "/usr/local/cuda/bin"]))

    def sanitizer(self):
        """Its four tools, over tests that start every kernel."""
        sanitizer = self.tool("compute-sanitizer")
        if not sanitizer:
            return self.note("compute-sanitizer", "skipped", "it is not installed")

        options = subprocess.run([sanitizer, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 stdin=subprocess.DEVNULL, timeout=60).stdout

        def check(tool):
            # Results are received in one copy, with gaps between arrays that no kernel writes or reads.
            gaps = tool == "initcheck" and b"--check-api-memory-access" in options
            for test in self.tests():
                if test.name != "mx_gpu_conversions":  # in all of float32
                    self.step(f"{tool} {test.name[len('mx_gpu_'):]}", self.limit(25, 1800), sanitizer, "--tool", tool,
                              *(["--check-api-memory-access", "no"] if gaps else []), "--error-exitcode", 99, test,
                              "--every", CHECKED)

        self.together(*(lambda tool=tool: check(tool) for tool in ("memcheck", "racecheck", "synccheck", "initcheck")))

    def profiles(self):
        ncu = self.tool("ncu")
        if not ncu:
            return self.note("ncu", "skipped", "it is not installed")
        folder = self.scratch / "profiles"
        folder.mkdir()
        for name, kernel, options in PROFILES:
            # Not the first launches, which are short.
            self.step(f"profile of {name}", self.limit(30, 600), ncu, "--clock-control", "none", "--set", "full", "-k",
                      f"regex:{kernel}", "--launch-skip", 3, "--launch-count", 1, "-f", "-o", folder / name,
                      self.program("mx"), "bench", "--backend", "cuda", "--threads", 2, "--seconds", "0.1", *options)
            self.pack(folder, "profiles.tar.gz")

    def run(self):
        try:
            if self.kit:
                self.unpack()
            if not self.make or self.compile():
                self.device = self.find_device()
            if self.device:
                for group in GROUPS:
                    if group in self.only:
                        self.whole(getattr(self, group))
                        self.pack(self.logs, "logs.tar.gz")
        finally:
            self.write()
            self.pack(self.logs, "logs.tar.gz")
        print(f"\n{(self.out / 'summary.md').read_text()}\nEverything is in {self.out}")
        if any(r["outcome"] == "failed" for r in self.results):
            return 1
        if not self.device:
            print(f"skipped: no device: {self.results[-1]['why']}")
            return 77
        return 0


def keep(pipe, file, first):
    """Writes the output of a step to a file, up to a limit; what follows is read and dropped."""
    with pipe, open(file, "wb") as log:
        log.write(first.encode(errors="replace") + b"\n")
        room = LOG_BYTES
        while data := pipe.read1(1 << 16):
            log.write(data[:room])
            log.flush()
            room -= min(room, len(data))


def replace(file, text):
    """Writes a file that is never seen half-written."""
    part = file.with_name(file.name + ".part")
    part.write_text(text)
    part.replace(file)


def processors():
    return len(os.sched_getaffinity(0))


def sha256(file):
    total = hashlib.sha256()
    with open(file, "rb") as data:
        while block := data.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def group(text):
    if text not in GROUPS:
        raise argparse.ArgumentTypeError(f"'{text}' is none of {', '.join(GROUPS)}")
    return text


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kit", metavar="DIR", help="a kit of scripts/gpu-kit.sh, packed or unpacked")
    parser.add_argument("--build", metavar="DIR", help="a build that is there already; nothing is configured or built")
    parser.add_argument("--seconds", type=float, metavar="N",
                        help="for all steps together; below an hour files are smaller and limits shorter")
    parser.add_argument("--only", action="append", type=group, metavar="GROUP", help=f"any of {', '.join(GROUPS)}")
    parser.add_argument("--output", metavar="DIR", default=time.strftime("gpu-check-%Y%m%d-%H%M%S", time.gmtime()),
                        help="where the results are written (gpu-check-DATE in the current folder)")
    parser.add_argument("--scratch", metavar="DIR",
                        help="where files of some GiB are written and removed (the folder of --output)")
    options = parser.parse_args(arguments)
    if options.kit and options.build:
        parser.error("--kit and --build exclude each other")
    os.environ["LC_ALL"] = "C"
    try:
        check = Check(options)
    except (OSError, SystemExit) as problem:
        parser.exit(2, f"{problem}\n")

    for number in signal.SIGINT, signal.SIGTERM:
        signal.signal(number, check.on_signal)
    try:
        return check.run()
    except Stopped:
        for number in signal.SIGINT, signal.SIGTERM:
            signal.signal(number, signal.SIG_IGN)
        check.stop()
        print(f"stopped; what there is lies in {check.out}", file=sys.stderr)
        return 128 + check.signal
    finally:
        shutil.rmtree(check.scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
