#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the Python package, each figure beside what it is held against, in one run:

    PYTHONPATH=build/release/python MX=build/release/mx python3 python/benchmarks.py

What is compared runs by turns, on the same number of threads, and the best turn of each counts, so
that other work on the machine disturbs least. Both sides of a ratio are wall time, which is what
`mx bench` measures: run it on an idle machine. Exits with 1 where a limit is not kept. Some
need PyTorch."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import timeit

import numpy as np

import libmx

turns = 7
failed = []


def show(what, figure, unit, limit, least):
    kept = figure >= limit if least else figure <= limit
    print(f"{what:<62} {figure:8.3f} {unit:<4} {'at least' if least else 'at most'} {limit:g}"
          f"{'' if kept else '   NOT KEPT'}", flush=True)
    if not kept:
        failed.append(what)


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def by_turns(*calls):
    """The fewest seconds of each, after one call of each that does not count."""
    for call in calls:
        call()
    times = [[seconds(call) for call in calls] for _ in range(turns)]
    return [min(column) for column in zip(*times)]


def bits_of_bf16(n, seed=1):
    x = np.random.default_rng(seed).standard_normal(n, dtype=np.float32).view(np.uint32)
    return ((x + 0x7FFF + (x >> 16 & 1)) >> 16).astype(np.uint16)


def bf16(n):
    import ml_dtypes
    return bits_of_bf16(n).view(ml_dtypes.bfloat16).reshape(-1, 4096)


def bench(mx, n, recipes):
    """Elements per second of `mx bench` on one thread."""
    arguments = [a for r in recipes for a in ("--recipe", r)]
    out = subprocess.run([mx, "bench", "--threads", "1", "--dtype", "BF16", "--elements", str(n),
                          "--seconds", "4", "-q", "--json", "-", *arguments],
                         check=True, capture_output=True, text=True).stdout
    return {r["recipe"]: r["elements_per_second"] for r in json.loads(out)["results"]}


def arrays(mx):
    n, recipes = 1 << 25, ["mxfp4", "mxfp8"]
    x = bf16(n)
    out = np.empty_like(x)
    for recipe in recipes:
        analyzed, faked, rates = [], [], []
        for _ in range(3):  # by turns with the command
            rates.append(bench(mx, n, [recipe])[recipe])
            a, f = by_turns(lambda: libmx.analyze({"x": x}, recipe, threads=1),
                            lambda: libmx.fake_quantize(x, recipe, out=out, threads=1))
            analyzed.append(n / a)
            faked.append(n / f)
        rate = max(rates)
        print(f"mx bench, {recipe}, bfloat16, one thread: {rate / 1e9:.2f} G elements/s")
        show(f"analyze of an array over mx bench, {recipe}",
             max(analyzed) / rate, "", 0.9, True)
        show(f"fake_quantize of bfloat16 over mx bench, {recipe}",
             max(faked) / rate, "", 0.5, True)


def two_threads():
    x = bf16(1 << 24)
    calls = 8

    def work(times):
        for _ in range(times):
            libmx.fake_quantize(x, "mxfp4", threads=1)

    def both():
        others = [threading.Thread(target=work, args=(calls // 2,)) for _ in range(2)]
        for t in others:
            t.start()
        for t in others:
            t.join()

    one, two = by_turns(lambda: work(calls), both)
    show("two Python threads over one, fake_quantize", one / two, "", 1.7, True)


def microseconds(call):
    return 1e6 * min(timeit.repeat(call, number=200, repeat=100)) / 200


def small_calls():
    x = np.random.default_rng(1).standard_normal((8, 64), dtype=np.float32)
    show("quantize of 8 x 64 float32, mxfp8", microseconds(lambda: libmx.quantize(x, "mxfp8")), "us", 10, False)
    try:
        import torch
    except ImportError:
        return
    import libmx.torch as mxt
    t = torch.from_numpy(x)
    g = t.clone().requires_grad_()
    layer = mxt.Linear(64, 64, config=mxt.LinearConfig("mxfp8"))
    print(f"PyTorch, 8 x 64: fake_quantize without a gradient {microseconds(lambda: mxt.fake_quantize(t, 'mxfp8')):.1f} us,"
          f" Linear of two operands {microseconds(lambda: layer(g)):.1f} us")
    show("fake_quantize of 8 x 64 with a gradient, mxfp8", microseconds(lambda: mxt.fake_quantize(g, "mxfp8")), "us",
         40, False)


def memory():
    """Of a process of its own, since a peak does not go back. ru_maxrss would begin with the peak
    of this one."""
    probe = """
import re, numpy as np, libmx
x = np.ones((1 << 18, 1 << 10), np.float32)
libmx.quantize(x[:64], "mxfp4")
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
before = peak()
q = libmx.quantize(x, "mxfp4")
print(peak() - before)
"""
    added = float(subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True,
                                 text=True).stdout)
    show("memory that quantizing 1 GiB of float32 to mxfp4 adds", added, "MiB", 160, False)


def training():
    try:
        import torch
    except ImportError:
        print("no PyTorch here: watch and Linear are not measured")
        return
    import libmx.torch as mxt
    torch.set_num_threads(os.cpu_count() or 1)
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads")

    def step(layer, x, dy):
        layer.zero_grad()
        x.grad = None
        layer(x).backward(dy)

    plain = torch.nn.Linear(1024, 1024)
    config = mxt.LinearConfig("mxfp8", "mxfp8", "mxfp8")
    ours = mxt.Linear(1024, 1024, config=config)
    x, dy = torch.randn(2048, 1024).requires_grad_(), torch.randn(2048, 1024)
    theirs, mine = by_turns(lambda: step(plain, x, dy), lambda: step(ours, x, dy))
    print(f"Linear 1024x1024, batch 2048, forward and backward: float32 {1000 * theirs:.0f} ms, "
          f"six operands in mxfp8 {1000 * mine:.0f} ms")
    show("Linear with six operands in mxfp8 over float32", mine / theirs, "", 1.6, False)

    layers = [m for _ in range(10) for m in (torch.nn.LayerNorm(1024), torch.nn.Linear(1024, 1024),
                                             torch.nn.GELU())]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    x = torch.randn(512, 1024)

    def train():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    # Of ten steps one is measured. The next one has cold caches; those that follow show what hooks cost.
    every = 10
    watch = mxt.watch(model, ["mxfp8", "mxfp4"], every=every)

    def watched():
        train()
        list(watch.scalars())

    train()
    rounds = [[seconds(watched) for _ in range(every)] for _ in range(turns)]
    watch.close()
    bare = min(seconds(train) for _ in range(every * turns))
    best = [min(column) - bare for column in zip(*rounds)]
    measured, after, others = best[0], best[1], min(best[2:])
    count = sum(p.numel() for p in model.parameters())
    print(f"a step of {count / 1e6:.1f} M parameters, batch 512: {1000 * bare:.0f} ms; measured "
          f"under two recipes: {1000 * measured:.0f} ms more; the next: {1000 * after:.1f} ms more; "
          f"others: {1000 * others:.1f} ms more")
    share = (measured + max(after, 0) + 48 * max(others, 0)) / (50 * bare)
    show("watch(every=50): share of the wall time of training", 100 * share, "%", 2, False)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    mx = os.environ.get("MX") or shutil.which("mx")
    if not mx:
        sys.exit("no mx command: set MX")
    arrays(mx)
    two_threads()
    small_calls()
    memory()
    training()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
