#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the run of Su et al. at its own size (docs/reproduce/su-training.md) with `mx train` and prints
the tables of that page as Markdown.

    scripts/reproduce-su-paper-run.py --steps 9000

A step takes about 1.6 s of one core with AVX-512, each arm has a core. Arms go on where they were
stopped, so the same command continues them; --tables prints what is there and trains no arm."""

import argparse
import json
import runpy
import statistics
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
# As in the published code, labels of an MX run come from a teacher in the precision of its forward pass.
QUANTIZED = ["--teacher", "quantized", "--probe-every", "50"]
ARMS = {"E4M3 as coded": ["--scheme", "su.coded.e4m3", *QUANTIZED],
        "float32": ["--scheme", "fp32"],
        "rceil": ["--scheme", "su.coded.e4m3", "-r", "mxfp8:scale=rceil,round=away", *QUANTIZED],
        "E4M3 as told": ["--scheme", "su.told.e4m3", *QUANTIZED],
        "bf16 activations": ["--scheme", "su.coded.bf16_act", *QUANTIZED]}
FIRST = list(ARMS)[:2]  # those that decide S3 and S4
# What the gradient at the parameters of the first arm is under other precisions, with labels of the float32 teacher.
OTHERS = {
    "E4M3 as coded": "scheme=su.coded.e4m3",
    "bf16 alone": "scheme=su.coded.e4m3 all=none",
    "rceil": "scheme=su.coded.e4m3 all=mxfp8:scale=rceil,round=away",
    "E4M3 as told": "scheme=su.told.e4m3",
    "bf16 activations": "scheme=su.coded.bf16_act",
    "forward only": "scheme=su.coded.no_bp_quant",
}
KEEP = 500  # steps between checkpoints that are kept
COMPARE = 1000  # steps between those at which the precisions are compared


table = runpy.run_path(str(SOURCE / "scripts/reproduce-su-training.py"))["table"]


def folder_of(folder, arm):
    return folder / arm.replace(" ", "-")


def training(program, folder, arm, network, steps):
    """The command that trains an arm to so many steps, from its checkpoint if there is one."""
    at = folder_of(folder, arm)
    kept = ",".join(str(step) for step in range(KEEP, steps + 1, KEEP))
    keep = ["--checkpoint", kept] if kept else []
    rest = ["--steps", str(steps), "--threads", "1", "--quiet", "--checkpoint-every", "250", *keep]
    if (at / "checkpoint.safetensors").exists():
        return [program, "train", "--resume", at, *rest]
    return [program, "train", "proxy", *network, *ARMS[arm], *rest, "-o", at]


def run(folder):
    return json.loads((folder / "run.json").read_text())


def steps_of(folder):
    return run(folder)["results"][0]["steps"]


def number(x, digits=3):
    return "-" if x is None else f"{x:.{digits}f}"


def windows(folder, edges):
    """Median and largest loss of the steps from each edge to the next, '-' where there are none."""
    losses = [step["loss"] for step in run(folder)["steps"]]
    cells = []
    for start, end in zip(edges, edges[1:]):
        part = [x for x in losses[start:end] if x is not None]
        cells.append(f"{statistics.median(part):.5f} ({max(part):.4f})" if len(part) == end - start else "-")
    return cells


def gain_names(probe):
    return [name for name in probe["gradients"] if name.endswith("ln.weight")]


def probe_row(probe):
    """zeta, cosine, gain of all; gain of each norm's gains."""
    gains = [number(probe["gradients"][name]["gain"], 2) for name in gain_names(probe)]
    return [number(probe["zeta"]), number(probe["cosine"]), number(probe["gain"]), *gains]


def under_other_precisions(program, folder, arm, step):
    """Rows of probes at the checkpoint of that step, one for each of OTHERS."""
    rows = []
    for name, settings in OTHERS.items():
        at = folder / f"at-{step}" / name.replace(" ", "-")
        if not (at / "run.json").exists():
            checkpoint = folder_of(folder, arm) / f"checkpoint-{step:06}.safetensors"
            subprocess.run([program, "train", "--resume", checkpoint, "--steps", str(step + 1), "--at", str(step),
                            *settings.split(), "--probe-every", "1", "--checkpoint-every", "0", "--threads", "1",
                            "--quiet", "-o", at], check=True)
            (at / "checkpoint.safetensors").unlink()
        rows.append([f"{step}: {name}", *probe_row(run(at)["steps"][-1]["probe"])])
    return rows


def gradients(probed, edges):
    """Medians of the probes of the steps from each edge to the next."""
    rows = []
    for a, b in zip(edges, edges[1:]):
        part = [step["probe"] for step in probed if a < step["step"] <= b]
        if not part or b > probed[-1]["step"] + KEEP:
            continue
        columns = zip(*([p["zeta"], p["cosine"], p["gain"], *(p["gradients"][n]["gain"] for n in gain_names(p))]
                        for p in part))
        rows.append([f"{a + 1} to {b}", len(part), *(number(statistics.median(c), 2) for c in columns)])
    return rows


def kept(probed, end):
    """Of the last gains' gradient, to a step: the probes with a short one, backwards, and the median."""
    late = [p["probe"]["gradients"][gain_names(p["probe"])[-1]]["gain"] for p in probed if 300 < p["step"] <= end]
    if not late or end > probed[-1]["step"] + KEEP:
        return "-"
    return (f"{sum(x < 0.8 for x in late)} of {len(late)}; {sum(x < 0 for x in late)} "
            f"({statistics.median(late):.2f})")


def gains(probed):
    """What the gains of norms are at every KEEP-th step."""
    rows = []
    for one in probed:
        if (one["step"] - 1) % KEEP:
            continue
        of, found = one["probe"]["gains"].values(), one["probe"]["blocks"]
        saturated = [found[name]["saturated_share"] for name in gain_names(one["probe"])]
        rows.append([one["step"], number(min(g["least"] for g in of)), number(max(g["largest"] for g in of)),
                     "; ".join(number(g["median"]) for g in of),
                     "; ".join(f"{100 * x:.0f}" for x in saturated)])
    return rows


def print_tables(program, folder):
    arms = {arm: folder_of(folder, arm) for arm in ARMS if (folder_of(folder, arm) / "run.json").exists()}
    coded = folder_of(folder, FIRST[0])
    most = max(map(steps_of, arms.values()))
    edges = [0, 100, 200, 300, 400, 500, *range(1000, most + 1, 500)]
    lines = ["### Losses: median (largest)", ""]
    rows = [[f"{a + 1} to {b}"] for a, b in zip(edges, edges[1:])]
    for at in arms.values():
        for row, cell in zip(rows, windows(at, edges)):
            row.append(cell)
    lines += table(["steps", *arms], rows)
    lines += ["### Instabilities", ""]
    answer = subprocess.run([program, "runs", *arms.values(), "--burn-in", "300", "--quiet", "--json", "-"], check=True,
                            stdout=subprocess.PIPE).stdout
    lines += table(["run", "steps", "jump at", "sustained excess from", "rise at the end, %"],
                   [[arm, one["steps"], one["jump_at"] or "-", one["excess_at"] or "-",
                     "-" if one["rise_at_end"] is None else number(100 * one["rise_at_end"], 1)] for arm, one in zip(arms, json.loads(answer)["runs"])])
    probed = {arm: steps for arm, at in arms.items() if (steps := [s for s in run(at)["steps"] if "probe" in s])}
    blocks = len(gain_names(probed[FIRST[0]][0]["probe"]))
    head = ["zeta", "cosine", "gain", *(f"gain, block {i}" for i in range(blocks))]
    for arm, steps in probed.items():
        lines += [f"### The gradient of {arm}", "", *table(["steps", "probes", *head], gradients(steps, edges))]
    lines += ["### Probes after step 300 whose last gains' gradient keeps less than 0.8; backwards (median)", ""]
    lines += table(["to step", *probed], [[end, *(kept(steps, end) for steps in probed.values())]
                                          for end in sorted({steps_of(at) for at in arms.values()})])
    lines += ["### The same parameters and batch under other precisions", ""]
    rows = []
    for step in range(COMPARE, steps_of(coded) + 1, COMPARE):
        rows += under_other_precisions(program, folder, "E4M3 as coded", step)
    lines += table(["step: precision", *head], rows)
    for arm, steps in probed.items():
        lines += [f"### Gains of {arm}", ""]
        lines += table(["step", "least", "largest", "medians by block", "blocks that saturate if quantized, %"],
                       gains(steps))
    print("\n".join(lines))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=9000)
    parser.add_argument("--arm", action="append", choices=ARMS, help=f"repeatable; default: {' and '.join(FIRST)}")
    parser.add_argument("--tables", action="store_true", help="train no arm")
    parser.add_argument("--mx", default=str(SOURCE / "build/release/mx"))
    parser.add_argument("--folder", type=Path, default=SOURCE / "build/su-paper-run")
    parser.add_argument("--width", type=int, default=512, help="for a trial at a smaller width")
    parser.add_argument("--batch", type=int, default=2048)
    options = parser.parse_args(arguments)
    network = ["--width", str(options.width), "--depth", "4", "--batch", str(options.batch), "--lr", "6e-4",
               "--stream", "torch", "--seed", "1337"]
    if not options.tables:
        arms = [subprocess.Popen(training(options.mx, options.folder, arm, network, options.steps))
                for arm in options.arm or FIRST]
        if any([arm.wait() for arm in arms]):
            sys.exit("an arm was stopped; the same command continues it")
    print_tables(options.mx, options.folder)


if __name__ == "__main__":
    main()
