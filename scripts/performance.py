#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures every figure of docs/performance.md and prints them as Markdown; --update writes them to
that page. Takes some minutes of an otherwise idle machine and, until it ends, 8 GiB of disk
(MX_PERFORMANCE_SIZE)."""

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import targets

SOURCE = Path(__file__).resolve().parents[1]
PAGE = SOURCE / "docs" / "performance.md"
RULES = ["", ":scale=ceil", ":scale=even", ":scale=rceil"]
PLAIN = [form + rule for form in ("mxfp4", "mxfp8") for rule in RULES]
EVERY = [form + key for form in ("mxfp4", "mxfp8") for key in
         (*RULES, ":round=stochastic", ":block=32x1", ":block=4x4", ":offset=fp16")]
TWELVE = [form + rule for form in ("mxfp4", "mxfp6", "mxfp8") for rule in RULES]
# Emulated products and their targets, G multiply-adds per second.
PRODUCTS = [("sm100.mxf8f6f4", ">= 1"), ("sm100.mxf4", ">= 2"), ("sm100.mxf4nvf4", ">= 2"),
            ("sm90.wgmma.fp8", "-"), ("sm100.f16", "-"), ("sm100.tf32", "-")]
# Other commands on the file, with their targets in multiples of the rate of `mx analyze`.
COMMANDS = {
    "mx quantize --packed": (["quantize", "model.safetensors", "--all-tensors", "--recipe", "mxfp4", "--packed",
                              "--output", "out.safetensors"], ">= 0.25"),
    "mx quantize -r e4m3 --packed": (["quantize", "model.safetensors", "--all-tensors", "--recipe", "e4m3",
                                      "--packed", "--output", "out.safetensors"], ">= 0.25"),
    "mx cluster": (["cluster", "model.safetensors", "--recipe", "mxfp4"], ">= 0.5"),
}
# What misses a target, beside mxfp4: the profile says why.
PROFILED = {
    "mxfp4": ["--recipe", "mxfp4"],
    "mxfp4, F32": ["--recipe", "mxfp4", "--dtype", "F32"],
    "mxfp4:block=4x4": ["--recipe", "mxfp4:block=4x4"],
    "nvfp4:scale=search-single-level": ["--recipe", "nvfp4:scale=search-single-level"],
    "nvfp4:four_over_six=mae,bound=448,dialect=te": ["--recipe", "nvfp4:four_over_six=mae,bound=448,dialect=te"],
    "default recipes of a training": ["--roads", "--road", "analyze (7*"],
    "mxfp4, a file of log-normal values with sigma 8": ["log-normal.safetensors", "--recipe", "mxfp4"],
}
PARTS = ["roads", "bf16", "F16", "F32", "backends", "twelve", "products", "product_backends"]


def say(text):
    print(text, file=sys.stderr, flush=True)


def recipes(names):
    return [word for name in names for word in ("--recipe", name)]


def reached(target, measured):
    """yes or no; a target is ">= x", "<= x" or "< x", or "-" when there is none."""
    if target == "-":
        return "-"
    how, _, bound = target.partition(" ")
    return "yes" if {">=": measured >= float(bound), "<=": measured <= float(bound),
                     "<": measured < float(bound)}[how] else "no"


def row(what, target, measured, form):
    return f"| {what} | {target} | {form % measured} | {reached(target, measured)} |"


def figure(records, name, **wanted):
    """A member of the one record that has these members."""
    found = [r[name] for r in records if all(r.get(key) == value for key, value in wanted.items())]
    if len(found) != 1:
        raise SystemExit(f"{len(found)} records with {wanted}")
    return found[0]


def one_deeper(markdown):
    """The headings of a page of mx, for a section of another page."""
    return re.sub("^##? ", "### ", markdown, flags=re.MULTILINE)


class Measurement:
    """Runs mx in the current folder and keeps what it measured."""

    def __init__(self, mx, size, base=None):
        self.mx = str(mx)
        self.size = size
        self.targets = targets.Targets(mx, base) if base else None
        self.all = len(os.sched_getaffinity(0))
        version = self.output("version", "--csv", "-")
        self.facts = dict(line[:2] for line in csv.reader(version.splitlines()))
        self.best = next(item.split()[1] for item, value in self.facts.items()
                         if item.startswith("backend ") and "(chosen)" in value)

    def output(self, *arguments):
        return subprocess.run([self.mx, *arguments], check=True, stdout=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, text=True).stdout

    def bench(self, name, *arguments):
        self.output("bench", *map(str, arguments), "--json", f"{name}.json", "--markdown", f"{name}.md", "--quiet")

    @staticmethod
    def records(name, member="results"):
        return json.loads(Path(f"{name}.json").read_text())[member]

    def analyze(self, *arguments):
        self.output("analyze", "model.safetensors", *arguments, "--json", "analysis.json", "--quiet")

    @staticmethod
    def seconds_of(work):
        """Wall time of the best of three runs."""
        times = []
        for _ in range(3):
            start = time.monotonic()
            work()
            times.append(time.monotonic() - start)
        return min(times)

    def peak_memory(self, *arguments):
        """Peak memory of `mx analyze` of the file in MiB."""
        process = subprocess.Popen([self.mx, "analyze", "model.safetensors", *arguments, "--json", "analysis.json",
                                    "--quiet"], stdin=subprocess.DEVNULL)
        peak = 0
        while process.poll() is None:
            line = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{process.pid}/status").read_text())
            if line:
                peak = int(line[1]) // 1024
            time.sleep(0.02)
        if process.returncode:
            raise SystemExit(process.returncode)
        return peak

    def run(self):
        threads = f"1,{self.all}"
        if self.targets:
            self.targets.run()
        say("every road ...")
        self.bench("roads", "--roads", "--threads", 1, "--seconds", 60)
        say("recipes, threads and histograms ...")
        # Includes stochastic rounding, columns, tiles and offsets, not only plain recipes.
        self.bench("bf16", *recipes(EVERY), "--threads", threads, "--seconds", 12, "--histograms")
        say("other dtypes ...")
        for dtype in "F16", "F32":
            self.bench(dtype, *recipes(["mxfp4", "mxfp8"]), "--dtype", dtype, "--threads", 1)
        say("from the cache ...")
        self.bench("cached", *recipes(["mxfp4"]), "--elements", 4194304, "--threads", 1)
        say("other backends ...")
        self.bench("backends", *recipes(["mxfp4", "mxfp8"]), "--backend", "all", "--threads", 1)
        say("twelve recipes in one pass ...")
        self.bench("twelve", *recipes(TWELVE), "--together", "--threads", 1, "--seconds", 6)
        say("emulated matrix products ...")
        self.bench("products", "--gemm", "--threads", threads, "--seconds", 12)
        self.bench("product_backends", "--gemm", "--accumulate", "sm100.mxf8f6f4", "--accumulate", "sm100.mxf4",
                   "--backend", "all", "--threads", 1)
        self.measure_a_file()
        self.profile()

    def measure_a_file(self):
        say(f"a file of {self.size} ...")
        self.output("synth", "--size", self.size, "--output", "model.safetensors", "--quiet")
        tensors = json.loads(self.output("tensors", "model.safetensors", "--json", "-"))["results"]
        self.elements = sum(t["elements"] for t in tensors)
        with open("model.safetensors", "rb") as file:  # into the page cache
            while file.read(1 << 24):
                pass
        everything = ["--threads", str(self.all)]
        self.file_one = self.seconds_of(lambda: self.analyze("--recipe", "mxfp4", "--threads", "1"))
        self.file_all = self.seconds_of(lambda: self.analyze("--recipe", "mxfp4", *everything))
        self.file_twelve = self.seconds_of(lambda: self.analyze(*recipes(TWELVE), *everything))
        self.file_apart = self.seconds_of(lambda: [self.analyze("--recipe", r, *everything) for r in TWELVE])
        self.peak = self.peak_memory("--recipe", "mxfp4", *everything)
        self.commands = {name: self.seconds_of(lambda: self.output(*words, *everything, "--quiet"))
                         for name, (words, _) in COMMANDS.items()}

    def profile(self):
        """The functions that take at least 3 % of the time, as {what: text}."""
        self.symbols = {}
        if not shutil.which("perf"):
            return
        say("profiles ...")
        targets.write_bf16("log-normal.safetensors", "log-normal", 2 ** 14)
        quiet = dict(stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for what, words in PROFILED.items():
            subprocess.run(["perf", "record", "--quiet", "--output", "perf.data", self.mx, "bench", *words, "--threads",
                            "1", "--seconds", "6", "--quiet"], stdout=subprocess.DEVNULL, **quiet)
            self.symbols[what] = subprocess.run(
                ["perf", "report", "--quiet", "--input", "perf.data", "--stdio", "--sort", "symbol", "--percent-limit",
                 "3"], stdout=subprocess.PIPE, text=True, **quiet).stdout

    def bench_figure(self, name, recipe, file="bf16", backend=None, threads=1, dtype="BF16", histograms=False):
        return figure(self.records(file), name, recipe=recipe, backend=backend or self.best, threads=threads,
                      dtype=dtype, histograms=histograms)

    def rate(self, recipe, file="bf16", **wanted):
        return self.bench_figure("elements_per_second", recipe, file, **wanted)

    def fraction(self, recipe, file="bf16", **wanted):
        return self.bench_figure("fraction_of_read_bandwidth", recipe, file, **wanted)

    def product(self, model, backend=None, threads=1, file="products"):
        return figure(self.records(file), "multiply_adds_per_second", accumulator=model,
                      backend=backend or self.best, threads=threads)

    def rows(self):
        """The table of targets."""
        both = ["mxfp4", "mxfp8"]
        every, rate = self.all, self.rate
        in_file = self.elements / self.file_one, self.elements / self.file_all

        def worst(one, other):
            return min(one(form) / other(form) for form in both)

        yield row("BF16, 1 thread, slowest of mxfp4, mxfp8 under four rules: G elements/s", ">= 2.5",
                  min(map(rate, PLAIN)) * 1e-9, "%.2f")
        yield row("the same, of the read bandwidth (0.14 would do instead on a slower machine)", "-",
                  min(map(self.fraction, PLAIN)), "%.3f")
        yield row("F32, 1 thread, mxfp4 and mxfp8, of the read bandwidth", ">= 0.25",
                  min(self.fraction(form, "F32", dtype="F32") for form in both), "%.3f")
        yield row("BF16, 1 thread, mxfp4 in the cache (4 million elements), times in memory", "-",
                  rate("mxfp4", "cached") / rate("mxfp4"), "%.2f")
        yield row(f"{every} threads, times one", ">= 1.8", worst(lambda f: rate(f, threads=every), rate), "%.2f")
        yield row("stochastic rounding, times nearest", ">= 0.5",
                  worst(lambda f: rate(f"{f}:round=stochastic"), rate), "%.2f")
        for block in "32x1", "4x4":
            yield row(f"blocks of {block}, times rows", ">= 0.5", worst(lambda f: rate(f"{f}:block={block}"), rate),
                      "%.2f")
        yield row("with histograms, times without", ">= 0.333", worst(lambda f: rate(f, histograms=True), rate), "%.2f")
        yield row("twelve recipes in one pass, in memory, times twelve passes", "<= 0.8",
                  figure(self.records("twelve", "together"), "fraction_of_separate_passes"), "%.2f")
        yield row(f"twelve recipes in one run over a file of {self.size}, times twelve runs", "<= 0.8",
                  self.file_twelve / self.file_apart, "%.2f")
        yield row("`mx analyze` of that file, mxfp4, 1 thread, times in memory", ">= 0.6", in_file[0] / rate("mxfp4"),
                  "%.2f")
        yield row(f"the same, {every} threads", ">= 0.6", in_file[1] / rate("mxfp4", threads=every), "%.2f")
        for name, (_, target) in COMMANDS.items():
            yield row(f"`{name}` of that file, mxfp4, {every} threads, times `mx analyze`", target,
                      self.file_all / self.commands[name], "%.2f")
        yield row("peak memory of `mx analyze`, MiB", "< 300", self.peak, "%d")
        if self.best == "avx512":
            yield row("AVX2, times AVX-512", ">= 0.5", worst(lambda f: rate(f, "backends", backend="avx2"),
                                                             lambda f: rate(f, "backends")), "%.2f")
        yield row("mxfp4, 1 thread, times ggml's 0.26 G elements/s", ">= 10", rate("mxfp4") / 0.26e9, "%.1f")
        yield row("mxfp4, 1 thread, times CPFloat's 0.18 G elements/s", ">= 13", rate("mxfp4") / 0.18e9, "%.1f")
        yield row(f"mxfp4, {every} threads, times microxcaling's 0.03 G elements/s", ">= 150",
                  rate("mxfp4", threads=every) / 0.03e9, "%.0f")
        for model, target in PRODUCTS:
            yield row(f"emulated product, {model}, 1 thread: G multiply-adds/s", target, self.product(model) * 1e-9,
                      "%.2f")
        yield row(f"mxf8f6f4, mxf4 and mxf4nvf4, {every} threads, times one", ">= 1.8",
                  min(self.product(m, threads=every) / self.product(m) for m, _ in PRODUCTS[:3]), "%.2f")
        for model in "sm100.mxf8f6f4", "sm100.mxf4":
            yield row(f"{model}, 1 thread, times the plain loop", "-",
                      self.product(model, file="product_backends") /
                      self.product(model, "scalar", file="product_backends"), "%.0f")

    def figures(self):
        """The section of the page."""
        processor = re.search(r"^model name[^:]*: (.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        lines = ["## Figures", "",
                 f"Measured by `scripts/performance.py` on {time.strftime('%Y-%m-%d', time.gmtime())}: "
                 f"{processor[1] if processor else ''}, {self.all} cores, backend {self.best},",
                 f"mx {self.facts['version']}, compiler {self.facts['compiler']}.", "",
                 "| what | target | measured | reached |", "|---|---|---|---|", *self.rows()]
        if self.targets:
            lines += ["", "### Compared with commit ab32965, alternating", "", self.targets.table().rstrip("\n")]
        for part in PARTS:
            lines += ["", one_deeper(Path(f"{part}.md").read_text()).rstrip("\n")]
        if self.symbols:
            lines += ["", "### Profiles: BF16 unless noted, 1 thread; read_words and copy_words are the bandwidths"]
        for what, text in self.symbols.items():
            lines += ["", f"{what}:", "```", *(line[:100].rstrip() for line in text.splitlines() if line.strip()),
                      "```"]
        return "\n".join(lines) + "\n"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help=f"write the figures to {PAGE.relative_to(SOURCE)}")
    parser.add_argument("--base", metavar="BASE", type=Path,
                        help="mx of commit ab32965: measures the targets of scripts/targets.py as well")
    parser.add_argument("mx", metavar="MX", nargs="?", type=Path, default=SOURCE / "build/release/mx",
                        help="the program (build/release/mx)")
    options = parser.parse_args(arguments)
    program = options.mx.resolve()
    base = options.base.resolve() if options.base else None
    for needed in filter(None, (program, base)):
        if not os.access(needed, os.X_OK) or needed.is_dir():
            parser.exit(3, f"no program {needed}; build it first\n")
    os.environ["LC_ALL"] = "C"
    work = SOURCE / "build" / "performance"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    os.chdir(work)
    measurement = Measurement(program, os.environ.get("MX_PERFORMANCE_SIZE", "4GiB"), base)
    try:
        measurement.run()
    finally:
        Path("model.safetensors").unlink(missing_ok=True)
    figures = measurement.figures()
    if options.update:
        before = PAGE.read_text().partition("## Figures")[0]
        PAGE.write_text(before + figures)
    else:
        print(figures, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
