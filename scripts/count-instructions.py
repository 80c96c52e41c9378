#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the CUDA kernels of rows, of other recipes and of products, disassembles them, and
prints what they cost: issue slots an element or a multiply-add, registers, spills. docs/design/cuda.md has
the table.

  count-instructions.py                    prints the table
  count-instructions.py --update           writes it into the document
  count-instructions.py --check            exit code 1 when a figure is larger than the document's,
                                           77 where nvcc or nvdisasm is missing, or nvcc another
  count-instructions.py --rates PROGRAM    the same for how often blocks take the steps of the
                                           reference, which PROGRAM (tests/parity/row_rates.cpp) counts

nvdisasm comes with CUDA's toolkit, or alone from PyPI: pip install nvidia-cuda-nvdisasm; scripts/install-interop.sh installs it into build/count."""

import argparse
import concurrent.futures
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
           "codec/cuda/kernels", "codec/cuda/general_kernels", "codec/cuda/number_kernels",
           "gemm/cuda/kernels", "lab/cuda/kernels")
PRODUCTS = re.compile(r"walk_splitILi(\d+)E.*?conversionE(\d)|walk_packed")
NEVER = 10 ** 9


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
    if "number_scales" in name:
        return Loop("I2F.U64", "IMAD.WIDE", 1, 1)  # the quotient of an element by its scale
    if "multiplyILj" in name:
        return Loop("LDGSTS", "FFMA", 512, 512, digits=2)
    if "quantize_number_segments" in name:
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
    number = re.search(r"quantize_number_segments.*?(bf16|float)_block", name)
    if number:
        return (1.5, "NVFP4", {"bf16": "bf16", "float": "f32, f16"}[number[1]], "figures")
    if "quantize_segments" in name:
        return (2, "other plain recipes", "all", "all")
    general = re.search(r"quantize_general_segments.*?(number|power)_scalesELi(\d+)E", name)
    if general:
        kind = "other NVFP4, FP8 blocks and tiles" if general[1] == "number" else "dialects under powers of two"
        lanes = int(general[2])
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
    """Instructions on the shortest way from behind `start` to the end of `end`."""
    queue, seen = [(0, start)], set()
    while queue:
        cost, at = heapq.heappop(queue)
        if at == end and seen:
            return cost
        if at in seen and at != start:
            continue
        seen.add(at)
        for to in after[at]:
            heapq.heappush(queue, (cost + len(blocks[to]), to))
    return NEVER


def slots_of(graph, loop):
    """Issue slots an element, or a multiply-add of a product, on the cheapest way around a loop; None where
    there is no such loop."""
    blocks, after = blocks_of(graph)
    count = lambda name, what: sum(what in line for line in blocks[name])
    sums = max(blocks, key=lambda name: count(name, loop.sum_up))
    round_by = lambda name: shortest(blocks, after, sums, name) + shortest(blocks, after, name, sums)
    reads = [name for name in blocks if count(name, loop.read) > 0]
    if loop.every:
        stops = [name for name in blocks if count(name, loop.read) + count(name, loop.sum_up) > 0
                 and round_by(name) < NEVER]
        found = sum(count(name, loop.sum_up) for name in stops)
        around = sum(shortest(blocks, after, *pair) for pair in zip(stops, stops[1:] + stops[:1]))
    else:
        found = count(sums, loop.sum_up)
        around = min(map(round_by, reads), default=NEVER)
    if found < loop.least or not reads or around >= NEVER:
        return None
    return round(around / loop.work, loop.digits)


def figures_of(nvcc, nvdisasm, source, architecture, folder):
    """{family: (slots, registers, bytes of spills)} of the kernels of a source."""
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
        slots = slots_of(graphs[name], loop_of(name)) if name in graphs else None
        figures[family] = (slots, registers, stores + loads)
    return figures


def count(nvcc, nvdisasm):
    """{family: {architecture: figures}}"""
    found = {}
    jobs = [(s, a) for s in SOURCES for a in ARCHITECTURES if not ("narrow" in s and a == "90")]
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = pool.map(lambda job: figures_of(nvcc, nvdisasm, *job, Path(scratch)), jobs)
        for (_, architecture), figures in zip(jobs, made):
            for family, three in figures.items():
                found.setdefault(family, {})[architecture] = three
    return found


def cells(row):
    return "| " + " | ".join(row) + " |"


def table_of(found, version):
    lines = [f"Compiled by nvcc {version}.", "",
             cells(["kernel", "values", "output"] + [f"sm_{a}: {what}" for a in ("90", "100")
                                                     for what in ("slots", "registers", "spills")]),
             "|---|---|---|" + "---:|" * 6]
    for family in sorted(found):
        row = list(family[1:])
        for architecture in ARCHITECTURES:
            three = found[family].get(architecture, ("", "", ""))
            row += ["-" if figure is None else str(figure) for figure in three]
        lines.append(cells(row))
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
        if chosen.check and f"nvcc {version}." not in recorded:
            skip(f"nvcc {version} is not that of the record: {recorded.splitlines()[0] if recorded else 'none'}")
        now = table_of(count(nvcc, nvdisasm), version)
    if chosen.update:
        DOCUMENT.write_text(before + now + "\n" + after)
    elif chosen.check:
        more = grown(recorded, now)
        for line in more:
            print(line)
        if more:
            sys.exit("count-instructions.py: figures became larger; make them smaller, or say why in the change "
                     "and record them with --update")
    else:
        print(now)


if __name__ == "__main__":
    main()
