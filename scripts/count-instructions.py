#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the CUDA kernels of rows, of other recipes and of products, disassembles them, and
prints what they cost: issue slots an element or a multiply-add, registers, spills; then which pipe of an sm_90 that
bounds, and how fast an H100 or H200 can be. docs/design/cuda.md has both tables.

  count-instructions.py                    prints the tables
  count-instructions.py --update           writes them into the document
  count-instructions.py --check            exit code 1 when a figure is larger than the document's,
                                           77 where nvcc or nvdisasm is missing, or nvcc another;
                                           compiles only what is not the code of the document's figures
  count-instructions.py --rates PROGRAM    the same for how often blocks take the steps of the
                                           reference, which PROGRAM (tests/parity/row_rates.cpp) counts

nvdisasm comes with CUDA's toolkit, or alone from PyPI: pip install nvidia-cuda-nvdisasm; scripts/install-interop.sh installs it into build/count."""

import argparse
import collections
import concurrent.futures
import hashlib
import heapq
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs/design/cuda.md"
# As cmake/mx_cuda.cmake and libmx/CMakeLists.txt compile them.
FLAGS = ["-std=c++20", "-O3", "-DNDEBUG", "-fmad=false", "--expt-relaxed-constexpr", "-Xptxas", "-v", "-cubin"]
ARCHITECTURES = ("90", "100f")
SOURCES = ("codec/cuda/row_kernels", "codec/cuda/fp8_instructions", "codec/cuda/narrow_instructions",
           "codec/cuda/kernels", "codec/cuda/dialect_kernels", "codec/cuda/nvfp4_kernels",
           "gemm/cuda/kernels", "lab/cuda/kernels")
JOBS = [(s, a) for s in SOURCES for a in ARCHITECTURES if not ("narrow" in s and a == "90")]
PRODUCTS = re.compile(r"walk_splitILi(\d+)E.*?conversionE(\d)|walk_packed")

# Lanes of each pipe of a sub-partition of an sm_90, of which a multiprocessor has four: assumptions, which only
# measurements settle. Multiply-adds of integers run on the first half of the FMA pipe only.
LANES = {"issue": 32, "ALU": 16, "integer FMA": 16, "FMA": 32, "XU": 4, "LSU": 8}
PIPE = {"FMA": re.compile(r"(FFMA|FADD|FMUL|HFMA2|HADD2|HMUL2)\b"), "integer FMA": re.compile(r"(IMAD|IDP)\b"),
        "XU": re.compile(r"(I2F|F2I|F2F|I2I|MUFU|POPC|FLO|BREV)\b"),
        "LSU": re.compile(r"LD|ST|ATOM|RED|SHFL|MATCH|VOTE"),
        # Branches, barriers and instructions of the uniform path only take slots.
        "issue": re.compile(r"(BRA|EXIT|BSSY|BSYNC|WARPSYNC|BAR|DEPBAR|CALL|RET|BREAK|YIELD|R2UR|S2R|S2UR|CS2R|"
                            r"U[A-Z]\w+)\b")}
MULTIPROCESSORS, HERTZ = 132, 1.755e9  # of an H100 or H200 (SXM); the clock is an assumption
MEMORY = {"H100": 3.35e12, "H200": 4.8e12}  # bytes a second, by NVIDIA's data sheets
BYTES = {"bf16": 2, "f32, f16": 4}  # of a value read, those of f32
CODE_BYTES = 1 + 1 / 32  # and its share of the scale
AIMS = {("NVFP4", "figures"): 0.3, ("MXFP8, MXFP6, MXFP4 by arithmetic", "figures"): 0.5,
        ("MXFP8, MXFP6, MXFP4 by arithmetic", "codes and figures"): 0.8}  # for bf16: docs/howto/check-a-gpu.md


@dataclass
class Loop:
    """A loop of a kernel: the instruction by which it reads, the one that its sums have most of, how many
    at least, and the elements or multiply-adds of a lane in one round."""
    read: str
    sum_up: str
    least: int
    work: int
    every: bool = False  # a round leaves out no block that reads or sums up
    digits: int = 1


def loop_of(name):
    """The loop of a kernel whose cost an element the table has."""
    product = PRODUCTS.search(name)
    if product and product[1]:
        work = 8 * int(product[1])  # outputs of a lane, and a step
        return Loop("LDGSTS", "F2I", work, work, every=True)
    if product:
        return Loop("LDGSTS", "IDP.4A", 64, 256, every=True)
    if "float_scales" in name:
        return Loop("I2F.U64", "IMAD.WIDE", 1, 1)  # the quotient of an element by its scale
    if "multiplyILj" in name:
        return Loop("LDGSTS", "FFMA", 512, 512, digits=2)
    if "quantize_nvfp4_segments" in name:
        return Loop("LDG.E.128", "IMAD.WIDE", 16, 16)
    return Loop("LDG.E.128", "IMAD.WIDE", 32, 32)


def family_of(name):
    """The row of a kernel in the table, as a key that sorts, or None."""
    row = re.search(r"quantize_row_segmentsILb([01])E.*?(bf16|float)_block.*?"
                    r"(grid_converter|instruction_converter.*?to_(e\dm\d))", name)
    if row:
        how = f"{row[4]} by instruction" if row[4] else "MXFP8, MXFP6, MXFP4 by arithmetic"
        return (0 if not row[4] else 1, how, {"bf16": "bf16", "float": "f32, f16"}[row[2]],
                "codes and figures" if row[1] == "1" else "figures")
    number = re.search(r"quantize_nvfp4_segments.*?(bf16|float)_block", name)
    if number:
        return (1.5, "NVFP4", {"bf16": "bf16", "float": "f32, f16"}[number[1]], "figures")
    if "quantize_segments" in name:
        return (2, "other OCP recipes", "all", "all")
    dialects = re.search(r"quantize_dialect_segments.*?(float|power)_scalesELi(\d+)E", name)
    if dialects:
        kind = "other NVFP4, FP8 blocks and tiles" if dialects[1] == "float" else "dialects under powers of two"
        lanes = int(dialects[2])
        return (3, f"{kind}: {lanes} lane{'s' if lanes > 1 else ''} to a block", "all", "all")
    product = PRODUCTS.search(name)
    if product and product[1]:
        rounding = {"0": "rz-fp32", "1": "rz-e8m13", "2": "rne-fp16"}[product[2]]
        return (4, f"products, steps of {int(product[1]):2}", rounding, "")
    if product:
        return (5, "products of 4-bit operands", "rz-fp32", "")
    chain = re.search(r"lab\d*\w*4cuda\w*8multiplyILj(\d+)E", name)
    if chain:
        return (7, f"products of trainings, tiles of {int(chain[1]):3}", "f32", "")
    return (6, "products, plain steps", "all", "") if re.search(r"cuda\d*\w*4walkE", name) else None


def blocks_of(graph):
    """Instructions by basic block, and who follows whom, from a graph that nvdisasm draws."""
    blocks = {}
    for name, label in re.findall(r'^"([^"]+)"\s*\n\[label="(.*?)"\]', graph, re.M | re.S):
        lines = [line.replace("\\", "") for line in re.split(r"\\l\|?", label)]
        blocks[name] = [line for line in lines if ";" in line and " NOP " not in line]
    after = {name: [] for name in blocks}
    for before, behind in re.findall(r'^"([^"]+)"[:\w]* -> "([^"]+)"', graph, re.M):
        if before in blocks and behind in blocks:
            after[before].append(behind)
    return blocks, after


def shortest(blocks, after, start, end):
    """Blocks on the way with the fewest instructions from behind `start` to the end of `end`; None without one."""
    queue, seen = [(0, start, [])], set()
    while queue:
        cost, at, way = heapq.heappop(queue)
        if at == end and seen:
            return way
        if at in seen and at != start:
            continue
        seen.add(at)
        for to in after[at]:
            heapq.heappush(queue, (cost + len(blocks[to]), to, [*way, to]))
    return None


def round_of(graph, loop):
    """Instructions of the cheapest way around a loop; None where there is no such loop."""
    blocks, after = blocks_of(graph)
    count = lambda name, what: sum(what in line for line in blocks[name])
    sums = max(blocks, key=lambda name: count(name, loop.sum_up))

    def around(*stops):
        ways = [shortest(blocks, after, *pair) for pair in zip(stops, stops[1:] + stops[:1])]
        return None if None in ways else [line for way in ways for name in way for line in blocks[name]]

    reads = [name for name in blocks if count(name, loop.read) > 0]
    if loop.every:
        stops = [name for name in blocks if count(name, loop.read) + count(name, loop.sum_up) > 0
                 and around(sums, name)]
        found = sum(count(name, loop.sum_up) for name in stops)
        rounds = [around(*stops)]
    else:
        found = count(sums, loop.sum_up)
        rounds = [around(sums, name) for name in reads]
    rounds = [lines for lines in rounds if lines]
    return min(rounds, key=len) if found >= loop.least and reads and rounds else None


def slots_of(graph, loop):
    """Issue slots an element, or a multiply-add of a product, on the cheapest way around a loop; None where
    there is no such loop."""
    lines = round_of(graph, loop)
    return None if lines is None else round(len(lines) / loop.work, loop.digits)


def cycles_of(lines, work):
    """Cycles that each pipe of a sub-partition needs for an element of every lane of a warp."""
    used = collections.Counter()
    for line in lines:
        name = re.search(r"(?:^|\s)(?:@!?U?P\w+ +)?([A-Z]\w*)[^;]*;", re.sub(r".*\*/", "", line).lstrip())[1]
        used[next((pipe for pipe, names in PIPE.items() if names.match(name)), "ALU")] += 1
    used["FMA"] += used["integer FMA"]
    used["issue"] = len(lines)
    return {pipe: used[pipe] * 32 / lanes / work for pipe, lanes in LANES.items()}


def figures_of(nvcc, nvdisasm, source, architecture, folder):
    """{family: (slots, registers, bytes of spills, cycles of pipes or None)} of the kernels of a source."""
    cubin = folder / f"{source.replace('/', '_')}.{architecture}.cubin"
    # Names of its own: the attributes of a graph have those of local symbols in them.
    made = subprocess.run([nvcc, *FLAGS, f"-I{ROOT}", f"-gencode=arch=compute_{architecture},code=sm_{architecture}",
                           "-o", cubin, ROOT / "libmx" / f"{source}.cu"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        sys.exit(f"count-instructions.py: nvcc cannot compile {source}.cu for sm_{architecture}: {made.stderr[-500:]}")
    drawn = subprocess.run([nvdisasm, "-bbcfg", cubin], capture_output=True, text=True, check=True).stdout
    graphs = {re.match(r'"cluster_(.*?)"', graph)[1]: graph for graph in re.split(r"^subgraph ", drawn, flags=re.M)[1:]}
    figures = {}
    for entry in re.split(r"Compiling entry function", made.stderr)[1:]:
        name = re.search(r"'(\w+)'", entry)[1]
        family = family_of(name)
        if family is None:
            continue
        stores, loads = map(int, re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", entry).groups())
        registers = int(re.search(r"Used (\d+) registers", entry)[1])
        loop = loop_of(name)
        lines = round_of(graphs[name], loop) if name in graphs else None
        slots, cycles = (round(len(lines) / loop.work, loop.digits), cycles_of(lines, loop.work)) if lines else (None, None)
        figures[family] = (slots, registers, stores + loads, cycles)
    return figures


def digest(nvcc):
    """Of all that the figures follow from, beside the version of nvcc: preprocessed sources and this script."""
    def preprocessed(job):
        source, architecture = job
        text = subprocess.run([nvcc, *FLAGS[:-1], f"-I{ROOT}", "-E", f"-arch=sm_{architecture}",
                               ROOT / "libmx" / f"{source}.cu"], capture_output=True, check=True).stdout
        return b"\n".join(line for line in text.splitlines() if line and not line.startswith(b"#"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = [Path(__file__).read_bytes(), *pool.map(preprocessed, JOBS)]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


def count(nvcc, nvdisasm):
    """{family: {architecture: figures}}"""
    found = {}
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = pool.map(lambda job: figures_of(nvcc, nvdisasm, *job, Path(scratch)), JOBS)
        for (_, architecture), figures in zip(JOBS, made):
            for family, four in figures.items():
                found.setdefault(family, {})[architecture] = four
    return found


def cells(row):
    return "| " + " | ".join(row) + " |"


def table_of(found, version, of_code):
    lines = [f"Compiled by nvcc {version}; digest of the code {of_code}.", "",
             cells(["kernel", "values", "output"] + [f"sm_{a}: {what}" for a in ("90", "100")
                                                     for what in ("slots", "registers", "spills")]),
             "|---|---|---|" + "---:|" * 6]
    for family in sorted(found):
        row = list(family[1:])
        for architecture in ARCHITECTURES:
            figures = found[family].get(architecture, ("", "", "", None))
            row += ["-" if figure is None else str(figure) for figure in figures[:3]]
        lines.append(cells(row))
    return "\n".join(lines)


def bounds_table(found):
    """What an sm_90 could do at most: cycles by pipe, and the share of memory bandwidth that this keeps busy."""
    lines = [cells(["kernel", "values", "output", *LANES, "T/s at most", *MEMORY, "aim"]),
             "|---|---|---|" + "---:|" * (len(LANES) + len(MEMORY) + 2)]
    for family in sorted(found):
        cycles = found[family].get("90", (None,) * 4)[3]
        if cycles is None:
            continue
        _, kernel, values, output = family
        a_second = MULTIPROCESSORS * 4 * 32 * HERTZ / max(cycles.values())
        moved = BYTES.get(values, 0) + (CODE_BYTES if "codes" in output else 0)
        shares = [f"{min(1, a_second * moved / most):.2f}" if values in BYTES else "" for most in MEMORY.values()]
        aim = AIMS.get((kernel, output)) if values == "bf16" else None
        lines.append(cells([kernel, values, output, *(f"{c:.1f}" for c in cycles.values()), f"{a_second / 1e12:.2f}",
                            *shares, str(aim or "")]))
    return "\n".join(lines)


def rates_table(program):
    lines = [cells(["recipe", "normal", "Laplace", "Student-t"]), "|---|---:|---:|---:|"]
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    for line in said.splitlines():
        recipe, *shares = line.split(",")
        lines.append(cells([f"`{recipe}`", *shares]))
    return "\n".join(lines)


def parts(text, mark):
    begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->"
    before, _, rest = text.partition(begin)
    recorded, there, after = rest.partition(end)
    if not there:
        sys.exit(f"count-instructions.py: {DOCUMENT.name} has no '{begin.strip()}' with an end")
    return before + begin, recorded.strip("\n"), end + after


def grown(recorded, now):
    """What became more in a table, row by row; a row that the record lacks is more, too."""
    rows = lambda text: {tuple(c[:3] if len(c) > 4 else c[:1]): c for c in
                         ([x.strip() for x in line.strip("|").split("|")] for line in text.splitlines()
                          if line.startswith("| "))}
    old, found = rows(recorded), []
    for key, row in rows(now).items():
        if key not in old:
            found.append(f"{', '.join(key)}: is not in the document")
            continue
        for before, after in zip(old[key], row):
            try:
                more = float(after) > float(before)
            except ValueError:
                more = after != before  # "-" where a figure was
            if more:
                found.append(f"{', '.join(k for k in key if k)}: {after} where the document has {before}")
    return found


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def find_nvdisasm(named):
    """As named, on the path, or of the package: of this Python, or where install-interop.sh installs it."""
    folders = [*map(Path, sys.path), *ROOT.glob("build/count/lib/*/site-packages")]
    in_package = [folder / "nvidia/cu13/bin" for folder in folders]
    return shutil.which(named) or shutil.which("nvdisasm", path=os.pathsep.join(map(str, in_package)))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--update", action="store_true")
    options.add_argument("--check", action="store_true")
    options.add_argument("--rates", metavar="PROGRAM")
    options.add_argument("--nvcc", default="nvcc")
    options.add_argument("--nvdisasm", default="nvdisasm")
    chosen = options.parse_args()
    text = DOCUMENT.read_text()
    if chosen.rates:
        before, recorded, after = parts(text, "rates")
        now = rates_table(chosen.rates)
    else:
        before, recorded, after = parts(text, "instructions")
        nvcc, nvdisasm = shutil.which(chosen.nvcc), find_nvdisasm(chosen.nvdisasm)
        if not nvcc:
            skip("no nvcc")
        if not nvdisasm:
            skip("no nvdisasm (scripts/install-interop.sh installs it)")
        version = re.search(r"V([\d.]+)", subprocess.run([nvcc, "--version"], capture_output=True, text=True,
                                                         check=True).stdout)[1]
        if chosen.check and f"nvcc {version};" not in recorded:
            skip(f"nvcc {version} is not that of the record: {recorded.splitlines()[0] if recorded else 'none'}")
        of_code = digest(nvcc)
        if chosen.check and of_code in recorded:
            print("the code of the document's figures, unchanged")
            return
        found = count(nvcc, nvdisasm)
        now, bounds = table_of(found, version, of_code), bounds_table(found)
    if chosen.update:
        DOCUMENT.write_text(before + now + "\n" + after)
        if not chosen.rates:
            before, _, after = parts(DOCUMENT.read_text(), "bounds")
            DOCUMENT.write_text(before + bounds + "\n" + after)
    elif chosen.check:
        more = grown(recorded, now)
        for line in more:
            print(line)
        if more:
            sys.exit("count-instructions.py: figures became larger; make them smaller, or say why in the change "
                     "and record them with --update")
    else:
        print(now if chosen.rates else f"{now}\n\n{bounds}")


if __name__ == "__main__":
    main()
