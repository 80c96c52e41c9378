#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the libraries that are installed next to mx, on the same array with as many threads, and
prints rates, ratios and versions. Missing libraries are skipped, with the reason. Run it with a
Python that has the libraries: numpy, and any of torch, torchao, ml_dtypes, gguf, microxcaling (`mx`
on PYTHONPATH); CPFloat is compiled from --cpfloat FOLDER, its folder of headers. torchao and the same
computation in a few lines of torch are measured as they are and under torch.compile, which needs a
C++ compiler; compiling is not timed.

The array is a matrix of normally distributed bf16 values. Libraries process it in memory; mx analyses
it from a file in the page cache (`mx bench FILE`), and casts as many values of the same distribution,
or quantizes them to codes, in memory (`mx bench --suite`). All take turns, and the best pass counts."""

import argparse
import ctypes
import importlib
import importlib.metadata
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
# The comparisons: quantize, dequantize and compute the root mean square error; codes and scales only; or cast.
RECIPES = ["mxfp4", "mxfp8", "nvfp4"]
CODES = "mxfp8 to codes"
CAST = "cast to e4m3"
CASES = {CODES: "quantize --recipe mxfp8 --packed", CAST: "quantize --recipe e4m3 --packed"}  # of mx bench --suite
ROWS_AT_A_TIME = 256  # of libraries that need many times the memory of their input

CPFLOAT = """
int cast_e4m3(float *to, const float *from, size_t n) {
    optstruct *o = init_optstruct();
    o->precision = 4; o->emin = -6; o->emax = 8;
    o->subnormal = CPFLOAT_SUBN_USE; o->explim = CPFLOAT_EXPRANGE_TARG;
    o->round = CPFLOAT_RND_NE; o->flip = CPFLOAT_SOFTERR_NO; o->p = 0;
    int failed = cpfloatf(to, from, n, o);
    free_optstruct(o);
    return failed;
}
"""


class Missing(Exception):
    """Why a library is left out."""


def found(module):
    try:
        return importlib.import_module(module)
    except Exception as e:  # a broken installation is as good as none
        raise Missing(f"{module}: {str(e).splitlines()[0] if str(e) else type(e).__name__}") from e


def version_of(distribution, module):
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return getattr(module, "__version__", "?")


def in_rows(x, work):
    """The sum of work(rows) over groups of rows."""
    return sum(work(x[at:at + ROWS_AT_A_TIME]) for at in range(0, len(x), ROWS_AT_A_TIME))


# A peer receives the array as float32 (numpy) and the number of threads, and returns its version
# and its tasks: functions without arguments, by comparison.


def torch_peer(array, threads):
    torch = found("torch")
    torch.set_num_threads(threads)
    if not hasattr(torch, "float8_e4m3fn"):
        raise Missing(f"torch {torch.__version__} has no float8_e4m3fn")
    x = torch.from_numpy(array).to(torch.bfloat16)
    return torch.__version__, {CAST: lambda: x.to(torch.float8_e4m3fn)}


def torchao_peer(array, threads):
    torch = found("torch")
    torchao = found("torchao")
    mx_tensor = found("torchao.prototype.mx_formats.mx_tensor")
    torch.set_num_threads(threads)
    x = torch.from_numpy(array).to(torch.bfloat16)

    def rmse(values):
        return torch.sqrt(torch.mean((values.float() - x.float()) ** 2)).item()

    def through_mx(element):
        q = mx_tensor.MXTensor.to_mx(x, element, 32)
        return rmse(q.dequantize(torch.bfloat16) if hasattr(q, "dequantize") else q.to_dtype(torch.bfloat16))

    tasks = {"mxfp8": lambda: through_mx(torch.float8_e4m3fn),
             CODES: lambda: mx_tensor.MXTensor.to_mx(x, torch.float8_e4m3fn, 32)}
    if hasattr(torch, "float4_e2m1fn_x2"):
        tasks["mxfp4"] = lambda: through_mx(torch.float4_e2m1fn_x2)
    try:
        nvfp4 = found("torchao.prototype.mx_formats.nvfp4_tensor")

        def through_nvfp4():
            scale = nvfp4.per_tensor_amax_to_scale(torch.max(torch.abs(x)))
            return rmse(nvfp4.NVFP4Tensor.to_nvfp4(x, per_tensor_scale=scale).dequantize(torch.bfloat16))
        tasks["nvfp4"] = through_nvfp4
    except Missing:
        pass
    return f"{version_of('torchao', torchao)} on torch {torch.__version__}", tasks


def compiled_tasks(torch, threads, x, functions):
    """Tasks that call functions[task](x), each compiled for that many threads and run once."""
    config = found("torch._inductor.config")
    config.cpp.threads = threads
    torch.set_num_threads(threads)
    torch._dynamo.reset()

    def task(function):
        compiled = torch.compile(function, dynamic=False)
        compiled(x)
        return lambda: compiled(x)
    try:
        return {name: task(function) for name, function in functions.items()}
    except Exception as e:  # of a compiler
        raise Missing(f"torch.compile: {str(e).splitlines()[0] if str(e) else type(e).__name__}") from e


def compiled_torchao_peer(array, threads):
    torch = found("torch")
    torchao = found("torchao")
    mx_tensor = found("torchao.prototype.mx_formats.mx_tensor")
    nvfp4 = found("torchao.prototype.mx_formats.nvfp4_tensor")

    def error_of(q, x):
        return torch.mean((q.dequantize(torch.bfloat16).float() - x.float()) ** 2)

    def through_nvfp4(x):
        scale = nvfp4.per_tensor_amax_to_scale(torch.max(torch.abs(x)))
        return error_of(nvfp4.NVFP4Tensor.to_nvfp4(x, per_tensor_scale=scale), x)

    errors = {"mxfp4": lambda x: error_of(mx_tensor.MXTensor.to_mx(x, torch.float4_e2m1fn_x2, 32), x),
              "mxfp8": lambda x: error_of(mx_tensor.MXTensor.to_mx(x, torch.float8_e4m3fn, 32), x),
              "nvfp4": through_nvfp4,
              CODES: lambda x: mx_tensor.to_mx(x, torch.float8_e4m3fn, 32)}
    x = torch.from_numpy(array).to(torch.bfloat16)
    return (f"{version_of('torchao', torchao)} on torch {torch.__version__}, torch.compile",
            compiled_tasks(torch, threads, x, errors))


def pure_torch(torch):
    """The mean squared errors of the recipes, and codes with their scales, in operations of torch."""
    def exponent(x):
        return (x.view(torch.int32) >> 23 & 0xff) - 127

    def power(e):
        return (e + 127 << 23).view(torch.float32)

    def e4m3(y):
        return y.clamp(-448, 448).to(torch.float8_e4m3fn).float()

    def e2m1(y):
        quantum = power(exponent(y).clamp(0, 2) - 1)
        return (torch.round(y / quantum) * quantum).clamp(-6, 6)

    def error(x, size, element, scale_of):
        b = x.float().reshape(-1, size)
        scale = scale_of(b.abs().amax(1, keepdim=True))
        return torch.mean((element(b / scale) * scale - b) ** 2)

    def two_level(x):
        outer = x.float().abs().amax() / 2688
        return error(x, 16, e2m1, lambda amax: e4m3(amax / (6 * outer)).clamp(min=2.0 ** -9) * outer)

    def codes(x):
        b = x.float().reshape(-1, 32)
        e = (exponent(b.abs().amax(1, keepdim=True)) - 8).clamp(-126, 127)
        return (b / power(e)).clamp(-448, 448).to(torch.float8_e4m3fn), (e + 127).to(torch.uint8)

    return {CODES: codes,
            "mxfp4": lambda x: error(x, 32, e2m1, lambda amax: power((exponent(amax) - 2).clamp(-126, 127))),
            "mxfp8": lambda x: error(x, 32, e4m3, lambda amax: power((exponent(amax) - 8).clamp(-126, 127))),
            "nvfp4": two_level}


def pure_torch_peer(array, threads):
    torch = found("torch")
    torch.set_num_threads(threads)
    x = torch.from_numpy(array).to(torch.bfloat16)
    return f"{torch.__version__}, a few lines", {
        name: lambda function=function: function(x) for name, function in pure_torch(torch).items()}


def compiled_torch_peer(array, threads):
    torch = found("torch")
    x = torch.from_numpy(array).to(torch.bfloat16)
    return f"{torch.__version__}, the same lines, torch.compile", compiled_tasks(torch, threads, x, pure_torch(torch))


def ml_dtypes_peer(array, _threads):
    ml_dtypes = found("ml_dtypes")
    x = array.astype(ml_dtypes.bfloat16)
    return version_of("ml_dtypes", ml_dtypes), {CAST: lambda: x.astype(ml_dtypes.float8_e4m3fn)}


def gguf_peer(array, _threads):
    numpy = found("numpy")
    gguf = found("gguf")
    quants = found("gguf.quants")

    def through(kind):
        def error2(rows):
            return float(numpy.sum((quants.dequantize(quants.quantize(rows, kind), kind) - rows) ** 2))
        return lambda: (in_rows(array, error2) / array.size) ** 0.5

    names = {"mxfp4": "MXFP4", "nvfp4": "NVFP4"}
    tasks = {recipe: through(getattr(gguf.GGMLQuantizationType, name)) for recipe, name in names.items()
             if hasattr(quants, name)}
    if not tasks:
        raise Missing(f"gguf {version_of('gguf', gguf)} has neither MXFP4 nor NVFP4")
    for recipe in list(tasks):  # some versions read a format and do not write it
        try:
            quants.quantize(array[:1], getattr(gguf.GGMLQuantizationType, names[recipe]))
        except NotImplementedError:
            del tasks[recipe]
    return version_of("gguf", gguf), tasks


def microxcaling_peer(array, threads):
    torch = found("torch")
    ops = found("mx.mx_ops")
    torch.set_num_threads(threads)
    x = torch.from_numpy(array).to(torch.bfloat16).float()

    def through(element):
        values = ops._quantize_mx(x, 8, element, axes=[-1], block_size=32, round="even")
        return torch.sqrt(torch.mean((values - x) ** 2)).item()

    return f"{version_of('mx', sys.modules['mx'])} on torch {torch.__version__}", {
        "mxfp4": lambda: through("fp4_e2m1"), "mxfp8": lambda: through("fp8_e4m3")}


def cpfloat_peer(array, _threads, folder=None):
    numpy = found("numpy")
    if folder is None:
        raise Missing("cpfloat: give the folder of its headers, --cpfloat FOLDER")
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise Missing("cpfloat: no C compiler")
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "peer.c").write_text(CPFLOAT)
        made = subprocess.run([compiler, "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-w", "-I", folder,
                               "-include", "cpfloat_binary32.h", "-o", "peer.so", "peer.c", "-lm"], cwd=scratch, capture_output=True, text=True)
        if made.returncode:
            errors = [line for line in made.stderr.splitlines() if "error" in line] or ["it does not compile"]
            raise Missing(f"cpfloat: {errors[0]}")
        library = ctypes.CDLL(str(Path(scratch, "peer.so")))
    to = numpy.empty_like(array)
    pointer = ctypes.POINTER(ctypes.c_float)
    arguments = (to.ctypes.data_as(pointer), array.ctypes.data_as(pointer), ctypes.c_size_t(array.size))

    def cast():
        if library.cast_e4m3(*arguments):
            raise RuntimeError("CPFloat refused")
    return "from " + folder, {CAST: cast}


PEERS = {"torchao": torchao_peer, "torchao, compiled": compiled_torchao_peer, "torch, by hand": pure_torch_peer,
         "torch, by hand, compiled": compiled_torch_peer, "microxcaling": microxcaling_peer, "gguf": gguf_peer, "torch": torch_peer,
         "ml_dtypes": ml_dtypes_peer, "CPFloat": cpfloat_peer}


class Mx:
    """The program, on the array in a file."""

    def __init__(self, program, array, threads, folder):
        self.program, self.threads, self.elements = str(program), threads, array.size
        self.file = Path(folder, "array.safetensors")
        bits = array.view("uint32")
        bf16 = (bits >> 16).astype("uint16")  # values of the array are bf16 already
        head = json.dumps({"x": {"dtype": "BF16", "shape": list(array.shape),
                                 "data_offsets": [0, bf16.nbytes]}}).encode()
        head += b" " * (-len(head) % 8)
        self.file.write_bytes(struct.pack("<Q", len(head)) + head + bf16.tobytes())

    def version(self):
        return subprocess.run([self.program, "--version"], check=True, capture_output=True,
                              text=True).stdout.strip()

    def analysis_rates(self, seconds):
        """Elements per second by recipe."""
        words = [self.program, "bench", str(self.file), "--threads", str(self.threads), "--elements", "1",
                 "--seconds", str(seconds), "--json", "-"]
        for recipe in RECIPES:
            words += ["--recipe", recipe]
        placed = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)["placed"]
        return {p["recipe"]: p["elements_per_second"] for p in placed if p["values"] == "files"}

    def rate_of(self, case, seconds):
        """Elements per second of a case of CASES, in memory."""
        words = [self.program, "bench", "--suite", "--case", case, "--threads", str(self.threads), "--elements",
                 str(self.elements), "--seconds", str(seconds), "--json", "-"]
        found = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)["results"]
        return next(r["elements_per_second"] for r in found if r["case"] == case)


def normal_array(rows, columns):
    """Float32 whose values are bf16."""
    numpy = found("numpy")
    random = numpy.random.default_rng(1)
    array = random.standard_normal((rows, columns), dtype=numpy.float32)
    array /= numpy.float32(32)
    array.view(numpy.uint32)[...] &= numpy.uint32(0xffff0000)
    return array


def gather(array, threads, cpfloat):
    """(tasks by name, versions, reasons): what is measured, and why others are left out."""
    tasks, versions, reasons = {}, {}, []
    for name, make in PEERS.items():
        try:
            more = {"folder": cpfloat} if name == "CPFloat" else {}
            versions[name], own = make(array, threads, **more)
            for task, work in own.items():
                tasks[name, task] = work
        except Missing as e:
            reasons.append(f"{name}: {e}")
    return tasks, versions, reasons


def measure(mx, tasks, elements, rounds, seconds):
    """Elements per second: of mx by task, of the others by (name, task); errors by (name, task)."""
    own, others, failed = {}, {}, {}

    def keep(rates, key, rate):
        rates[key] = max(rates.get(key, 0), rate)
    for _ in range(rounds):
        for recipe, rate in mx.analysis_rates(seconds).items():
            keep(own, recipe, rate)
        for task, case in CASES.items():
            keep(own, task, mx.rate_of(case, seconds))
        for key, work in tasks.items():
            if key in failed:
                continue
            start = time.monotonic()
            try:
                work()
            except Exception as e:  # of one library; the others go on
                failed[key] = f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
                continue
            keep(others, key, elements / (time.monotonic() - start))
    return own, others, failed


def table(own, others):
    """Rows of (task, program, G elements/s, mx's, times)."""
    for task in [*RECIPES, *CASES]:
        for (name, of), rate in others.items():
            if of == task and task in own:
                yield task, name, rate * 1e-9, own[task] * 1e-9, own[task] / rate


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mx", metavar="MX", nargs="?", type=Path, default=SOURCE / "build/release/mx",
                        help="the program (build/release/mx)")
    parser.add_argument("--rows", type=int, default=16384)
    parser.add_argument("--columns", type=int, default=4096)
    parser.add_argument("--threads", type=int, nargs="+", metavar="N", help="one and all")
    parser.add_argument("--rounds", type=int, default=3, help="passes of each, in turns (3)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of mx in a round (1)")
    parser.add_argument("--cpfloat", metavar="FOLDER", help="headers of CPFloat: cpfloat_binary32.h")
    parser.add_argument("--json", metavar="FILE", help="also as JSON")
    options = parser.parse_args(arguments)
    counts = options.threads or sorted({1, len(os.sched_getaffinity(0))})
    if min(options.rows, options.columns, options.rounds, *counts) < 1 or options.columns % 32:
        parser.exit(2, "rows, threads and rounds are 1 or more, columns a multiple of 32\n")
    program = options.mx.resolve()
    if not os.access(program, os.X_OK) or program.is_dir():
        parser.exit(3, f"no program {program}; build it first\n")
    os.environ["OMP_NUM_THREADS"] = str(max(counts))  # before the libraries are loaded
    try:
        array = normal_array(options.rows, options.columns)
    except Missing as e:
        parser.exit(3, f"the array is made with numpy; {e}\n")
    print(f"{options.rows} x {options.columns} normally distributed bf16 values; best of {options.rounds}")
    results, mx_rates, skipped = [], {}, []
    for threads in counts:
        tasks, versions, reasons = gather(array, threads, options.cpfloat)
        with tempfile.TemporaryDirectory() as folder:
            mx = Mx(program, array, threads, folder)
            versions = {"mx": mx.version(), **versions}
            own, others, failed = measure(mx, tasks, array.size, options.rounds, options.seconds)
        reasons += [f"{name}, {task}: {reason}" for (name, task), reason in failed.items()]
        if threads == counts[0]:
            print("\n" + "\n".join(f"- {name}: {version}" for name, version in versions.items()))
        print(f"\nthreads: {threads}\n\n| what | program | G elements/s | mx, G elements/s | times |\n"
              "|---|---|---:|---:|---:|")
        for row in table(own, others):
            task, name, rate, mine, times = row
            print(f"| {task} | {name} | {rate:.4f} | {mine:.3f} | {times:.1f} |")
            results.append({"threads": threads, **dict(zip(("task", "program", "rate", "mx_rate", "times"), row))})
        mx_rates[threads] = own
        skipped += [reason for reason in reasons if reason not in skipped]
    if skipped:
        print("\n" + "\n".join(f"skipped: {reason}" for reason in skipped))
    if options.json:
        Path(options.json).write_text(json.dumps(
            {"rows": options.rows, "columns": options.columns, "threads": counts, "versions": versions,
             "results": results, "mx_rates": mx_rates, "skipped": skipped}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
