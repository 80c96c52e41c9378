#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains every run of docs/reproduce/su-training.md with `mx train`, compares them with `mx runs`,
and prints the tables of that page as Markdown. The budget alone decides the number of seeds and
steps: a slower machine takes longer and prints the same tables. Minutes are those of one core of an
AMD EPYC with AVX-512; twice as many cores take half the time.

Runs that are already in the folder are not repeated, so the same command continues a study that was
stopped."""

import argparse
import json
import math
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
FULL = 25  # minutes, for the seeds and steps that the page reports
BF16 = ["--vector", "bf16", "--ln", "bf16", "--ln-bias", "frozen"]
# The comparisons, by their names in the tables. bf16 is the published code's treatment of everything that
# it does not quantize: the control for the effect of the blocks.
SCHEMES = {
    "fp32": ["--scheme", "fp32"],
    "bf16": BF16,
    "E4M3 as coded": ["--scheme", "su.coded.e4m3"],
    "E4M3 as told": ["--scheme", "su.told.e4m3"],
    "E5M2 backward": ["--scheme", "su.coded.e5m2_bwd"],
    "rceil": [*BF16, "--recipe", "mxfp8:scale=rceil,round=away"],
    "bf16 activations": ["--scheme", "su.coded.bf16_act"],
    "forward only": ["--scheme", "su.coded.no_bp_quant"],
}
PAIR = ["fp32", "E4M3 as coded"]
NETWORK = {"--width": "64", "--depth": "4", "--batch": "64"}
# Chosen before any of the reported seeds was run, on seeds 1001 to 1006: see the page.
RATE, WIDE_RATE, DRIFT_RATE = "0.02", "0.014", "0.003"
# The changes before an instability. {} is coded or told, like the run.
CHANGES = {
    "nothing": None,
    "fp32": "scheme=fp32",
    "fp32 with frozen biases": "scheme=fp32 ln-bias=frozen",
    "rceil": "all=mxfp8:scale=rceil,round=away",
    "norms in fp32": "ln=fp32 ln-gain=none",
    "bf16 activations": "scheme=su.{}.bf16_act",
    "bf16 activations and gradients": "scheme=su.{}.bf16_act_all",
    "forward only": "scheme=su.{}.no_bp_quant",
}
COPIES, AFTER, SAME = 8, 100, 10
DISTANCES = [10, 100]


# ---- computations ----

def budget(minutes):
    """Seeds, steps and cases for so many minutes."""
    share = minutes / FULL

    def some(most, least=2):
        return max(least, round(most * share))

    shorter = min(1, 4 * share)
    return {"seeds": some(32), "wide_seeds": some(8), "few_seeds": some(4),
            "steps": max(60, round(1500 * shorter)), "wide_steps": max(60, round(800 * shorter)),
            "few_steps": max(60, round(600 * shorter)), "long_steps": max(60, round(2000 * shorter)),
            "cases": some(2, 1)}


def folder_name(name):
    """'d = 64/E4M3 as told' without blanks."""
    return name.replace(" = ", "").replace(" ", "-")


def finished(run):
    """Whether a run.json is there, of a run that went to its end."""
    return run.exists() and json.loads(run.read_text())["results"][0]["status"] != "stopped"


def words(options):
    return [word for pair in options.items() for word in pair]


class Study:
    def __init__(self, program, folder, threads, out=None):
        self.program, self.folder, self.threads, self.out = program, folder, threads, out

    def say(self, *lines):
        print(*lines, sep="\n", file=self.out, flush=True)

    def mx(self, *arguments):
        command = [self.program, *map(str, arguments)]
        done = subprocess.run(command, stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            raise SystemExit(f"exit code {done.returncode}: mx {shlex.join(command[1:])}")

    def train(self, name, options, seeds, steps):
        """One run a seed in folder/name/seed-N; those that are there already stay."""
        at = self.folder / folder_name(name)
        left = [seed for seed in seeds if not finished(at / f"seed-{seed}/run.json")]
        for seed in left:
            shutil.rmtree(at / f"seed-{seed}", ignore_errors=True)
        command = ["train", "proxy", *options, "--steps", steps, "--checkpoint-every", "0", "--threads",
                   self.threads, "--quiet"]
        if len(left) == 1:
            self.mx(*command, "--seed", left[0], "-o", at / f"seed-{left[0]}")
        elif left:
            self.mx(*command, "--seeds", ",".join(map(str, left)), "-o", at)
        for seed in left:
            (at / f"seed-{seed}/checkpoint.safetensors").unlink()
        return at

    def resume(self, checkpoint, name, options, steps, copies):
        """The run of a checkpoint continued; with copies, one folder each."""
        at = self.folder / folder_name(name)
        ends = [at / f"nudge-{i}/run.json" for i in range(1, copies + 1)] if copies else [at / "run.json"]
        if not all(map(finished, ends)):
            shutil.rmtree(at, ignore_errors=True)
            self.mx("train", "--resume", checkpoint, "--steps", steps, *options, "--checkpoint-every", "0",
                    "--threads", self.threads, "--quiet", *(["--nudge", copies] if copies else []), "-o", at)
            for file in at.rglob("checkpoint.safetensors"):
                file.unlink()
        return at

    def compare(self, *folders):
        """The output of `mx runs` for these folders; the others are compared with the first."""
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "runs.json"
            self.mx("runs", *folders, "--quiet", "--json", file)
            return json.loads(file.read_text())


def losses(run):
    return [step["loss"] for step in json.loads(run.read_text())["steps"]]


# ---- output ----

def table(head, rows):
    left = [":---" if i == 0 else "---:" for i in range(len(head))]
    return ["| " + " | ".join(map(str, row)) + " |" for row in (head, left, *rows)] + [""]


def interval(figures, name, form):
    """'0.12 (0.05 to 0.31)', or '-' where there is none."""
    key = {"survival": ("survival_low", "survival_high"), "gap": ("gap_low", "gap_high")}[name]
    values = [figures[name], *(figures[k] for k in key)]
    return "-" if None in values else "{} ({} to {})".format(*(form(value) for value in values))


def percent(x):
    return f"{100 * x:.0f}"


def thousandths(x):
    return f"{1000 * x:+.2f}"


def chance(p):
    return "-" if p is None else f"{p:.2g}"


def share_at(curve, step):
    """The share of stable runs after so many steps."""
    return [point["survival"] for point in curve if point["step"] <= step][-1]


def outcome(unstable_at, broke):
    """The outcome of a run that was changed before the step at which it became unstable."""
    return "averted" if unstable_at is None else "delayed" if unstable_at > broke + SAME else "not"


def below_the_floor(values, floor, window=200):
    """By how many standard errors the mean of each full window lies above the floor: the least, and how
    many windows there were."""
    least, windows = math.inf, 0
    for start in range(0, len(values) - window + 1, window):
        part = values[start:start + window]
        if any(x is None for x in part):
            continue
        mean = math.fsum(part) / window
        error = math.sqrt(math.fsum((x - mean)**2 for x in part) / (window - 1) / window)
        least = min(least, (mean - floor) / error)
        windows += 1
    return least, windows


def recovered(values, broke):
    """Whether a run that became unstable at this step came back: the median of its last 50 losses is at most
    twice that of the 100 before the step."""
    def median(part):
        return statistics.median(math.inf if x is None else x for x in part)

    return median(values[broke - 1:][-50:]) <= 2 * median(values[max(0, broke - 101):broke - 1])


def unstable(runs):
    """'5 of 32 (4)': how many became unstable, and how many of these recovered."""
    broken = [run for run in runs if run["unstable_at"] is not None]
    back = sum(recovered(losses(Path(run["run"])), run["unstable_at"]) for run in broken)
    return f"{len(broken)} of {len(runs)}" + (f" ({back})" if broken else "")


# ---- the parts ----

def first_steps(names, comparison, folders, seeds):
    """A row a seed: the first unstable step under each scheme."""
    at = {Path(run["run"]).parent: run["unstable_at"] for run in comparison["runs"]}
    rows = [[seed, *(at[folder / f"seed-{seed}"] or "-" for folder in folders)] for seed in seeds]
    return table(["seed", *names], rows)


def survival(study, title, network, rate, seeds, steps):
    folders = [study.train(f"{title}/{name}", [*words(network), "--lr", rate, *options], seeds, steps)
               for name, options in SCHEMES.items()]
    of_fp32 = study.compare(*folders)
    at = list(SCHEMES).index("E4M3 as coded")
    of_coded = study.compare(folders[at], *folders[:at], *folders[at + 1:])
    p_coded = {group["group"]: group["log_rank_p"] for group in of_coded["results"]}
    quarters = [steps // 4, steps // 2, 3 * steps // 4]
    rows = []
    for name, group, folder in zip(SCHEMES, of_fp32["results"], folders):
        rows.append([name, unstable([r for r in of_fp32["runs"] if Path(r["run"]).parents[1] == folder]),
                     *(percent(share_at(group["survival_curve"], step)) for step in quarters),
                     interval(group, "survival", percent), chance(group["log_rank_p"]),
                     chance(p_coded[group["group"]]), interval(group, "gap", thousandths)])
    study.say(f"### {title}: rate {rate}, {steps} steps, seeds {seeds[0]} to {seeds[-1]}", "",
              *table(["scheme", "unstable (recovered)", *(f"stable at {step}, %" for step in quarters),
                      f"at {steps} (95 %)", "p to fp32", "p to E4M3 as coded", "gap, 1e-3 (95 %)"], rows),
              "First unstable step:", "", *first_steps(SCHEMES, of_fp32, folders, seeds))
    return dict(zip(SCHEMES, folders)), of_fp32


def interventions(study, rate, folders, comparison, cases):
    """Of the first runs (by seed) that broke, as coded and as told: what a change 10 and 100 steps before
    does to them and to their nudged copies. Returns the runs and when they broke."""
    at = {Path(run["run"]).parent: run["unstable_at"] for run in comparison["runs"]}
    cases_of = {}
    for way in "coded", "told":
        folder = folders[f"E4M3 as {way}"]
        broken = sorted((int(run.name[5:]), step) for run, step in at.items()
                        if run.parent == folder and step is not None and step > 120)[:cases]
        cases_of[way] = broken
        if not broken:
            study.say(f"### Interventions, E4M3 as {way}", "", "No run broke after step 120.", "")
            continue
        study.say(f"### Interventions, E4M3 as {way}: " + ", ".join(f"seed {s} broke at {b}" for s, b in broken), "")
        rows = []
        for before in DISTANCES:
            for change, settings in CHANGES.items():
                row, pooled = [f"{before} before: {change}"], []
                for seed, broke in broken:
                    place = f"interventions/{way}/seed-{seed}"
                    kept = [study.folder / place / f"checkpoint-{broke - d:06}.safetensors" for d in DISTANCES]
                    if not all(file.exists() for file in kept):
                        shutil.rmtree(study.folder / place, ignore_errors=True)
                        study.mx("train", "proxy", *words(NETWORK), "--lr", rate, "--scheme", f"su.{way}.e4m3",
                                 "--seed", seed, "--steps", broke - min(DISTANCES), "--checkpoint",
                                 ",".join(str(broke - d) for d in DISTANCES), "--checkpoint-every", "0",
                                 "--quiet", "-o", study.folder / place)
                    options = [] if settings is None else ["--at", f"{broke - before} {settings.format(way)}"]
                    if way == "told" and change == "rceil":
                        options[1] += " ln-gain=mxfp8:scale=rceil,round=away"
                    checkpoint = kept[DISTANCES.index(before)]
                    name = f"{place}/{before}/{change}"
                    one = study.resume(checkpoint, f"{name}/itself", options, broke + AFTER, 0)
                    many = study.resume(checkpoint, f"{name}/copies",
                                        [*options, "--nudge-at", broke - before], broke + AFTER, COPIES)
                    itself = study.compare(one)["runs"][0]["unstable_at"]
                    outcomes = [outcome(run["unstable_at"], broke) for run in study.compare(many)["runs"]]
                    pooled += outcomes
                    row.append(f"{itself or '-'}; " + "/".join(str(outcomes.count(f)) for f in
                                                             ("averted", "delayed", "not")))
                count = pooled.count("averted")
                rows.append([*row, f"{count} of {len(pooled)}"])
        study.say(*table(["change", *(f"seed {seed}" for seed, _ in broken), "averted"], rows))
    return cases_of


def probes(run):
    """The steps of a run that were probed."""
    return [step for step in json.loads(run.read_text())["steps"] if "probe" in step]


def before_it_breaks(study, rate, broken):
    """Loss, gradient and its error every 10 steps before the first instabilities."""
    for way, cases in broken.items():
        for seed, broke in cases[:1]:
            at = study.train(f"before/{way}", [*words(NETWORK), "--lr", rate, "--scheme", f"su.{way}.e4m3",
                                               "--probe-every", "10"], [seed], broke + 40)
            steps = probes(at / f"seed-{seed}/run.json")
            early = sorted(s["probe"]["zeta"] for s in steps if 100 < s["step"] < broke - 100)
            rows = [[s["step"], f"{s['loss']:.4f}", f"{s['gradient_norm']:.3f}", f"{s['probe']['zeta']:.3f}",
                     f"{s['probe']['cosine']:.3f}", f"{s['probe']['gain']:.3f}"]
                    for s in steps if s["step"] > broke - 100]
            study.say(f"### Before an instability: E4M3 as {way}, seed {seed}, unstable at {broke}", "")
            if early:
                study.say(f"zeta from step 101 to {broke - 101}: median {early[len(early) // 2]:.3f}, from "
                          f"{early[0]:.3f} to {early[-1]:.3f}.", "")
            study.say(*table(["step", "loss", "gradient norm", "zeta", "cosine", "gain"], rows))


def gains_saturated(probe):
    """The share of saturated blocks of gains, mean over layers."""
    shares = [figures["saturated_share"] for name, figures in probe["blocks"].items() if name.endswith("ln.weight")]
    return sum(shares) / len(shares)


def drift(study, seeds, steps):
    """Gains on their way through the clamp zone, with the error of the gradient beside them, and what the
    published code logs in its place."""
    every = steps // 20
    rceil = "mxfp8:scale=rceil,round=away"
    schemes = {**{name: SCHEMES[name] for name in ("fp32", "bf16", "E4M3 as coded", "E4M3 as told")},
               "rceil as told": [*BF16, "--recipe", rceil, "--ln-gain", rceil]}
    folders, found = {}, {}
    for name, options in schemes.items():
        folders[name] = study.train(f"drift/{name}",
                                    [*words(NETWORK), "--lr", DRIFT_RATE, "--probe-every", every, "--dump",
                                     ",".join(str(1 + 2 * every * i) for i in range(10)), *options], seeds, steps)
        found[name] = [probes(folders[name] / f"seed-{seed}/run.json") for seed in seeds]
    told, mended, coded = (found[name][0] for name in ("E4M3 as told", "rceil as told", "E4M3 as coded"))
    rows = []
    for a, b, c in zip(told, mended, coded):
        of = a["probe"]["gains"].values()
        rows.append([a["step"], f"{min(g['least'] for g in of):.3f}",
                     f"{sum(g['median'] for g in of) / len(of):.3f}", f"{max(g['largest'] for g in of):.3f}",
                     percent(gains_saturated(a["probe"])), f"{a['loss']:.4f}",
                     *(f"{s['probe'][key]:.2f}" for s in (a, b, c) for key in ("zeta", "gain"))])
    study.say(f"### Gains that drift: rate {DRIFT_RATE}, seed {seeds[0]}", "",
              *table(["step", "least gain", "median", "largest", "saturated blocks, %", "loss", "zeta", "gain",
                      "zeta, rceil", "gain, rceil", "zeta, coded", "gain, coded"], rows))
    bands = {"none": (-1, 0), "up to half": (0, 0.5), "more than half": (0.5, 1)}
    rows = []
    for band, (low, high) in bands.items():
        chosen = [s["probe"] for run in found["E4M3 as told"] for s in run
                  if s["step"] > 1 and low < gains_saturated(s["probe"]) <= high]
        rows.append([band, len(chosen), *(f"{sum(x[key] for x in chosen) / len(chosen):.3f}" if chosen else "-"
                                          for key in ("zeta", "cosine", "gain", "bias_share"))])
    study.say(f"As told, seeds {seeds[0]} to {seeds[-1]}, by saturated blocks of gains:", "",
              *table(["saturated", "probes", "zeta", "cosine", "gain", "bias share"], rows))
    across = study.compare(*folders.values())["across"]
    rows = []
    for step in sorted({r["step"] for r in across}):
        rows.append([step, *(f"{r['zeta_norm']:.3f}" for name in list(folders)[1:] for r in across
                             if r["step"] == step and Path(r["run"]).parent == folders[name] / f"seed-{seeds[0]}")])
    study.say(f"As the published code has it, across runs, seed {seeds[0]}: |q - g|^2 / |g|^2", "",
              *table(["step", *list(folders)[1:]], rows))


def activations(study, seeds, steps):
    """Their figure 2: activation functions with and without layer norms."""
    rows = []
    for activation in "gelu", "relu", "swiglu":
        for norm in "layer", "none":
            folders = [study.train(f"activations/{activation}-{norm}/{name}",
                                   [*words(NETWORK), "--lr", RATE, "--activation", activation, "--norm", norm,
                                    *SCHEMES[name]], seeds, steps) for name in PAIR]
            rows.append([f"{activation}, {'layer norm' if norm == 'layer' else 'no norm'}",
                         *pair_cells(study.compare(*folders), folders, seeds)])
    study.say(f"### Activation functions and norms: rate {RATE}, {steps} steps, seeds {seeds[0]} to {seeds[-1]}",
              "", *table(["network", *PAIR_HEAD], rows))


PAIR_HEAD = ["fp32 unstable", "E4M3 unstable", "p", "late loss, fp32", "late loss, E4M3", "fp32 broke at",
             "E4M3 broke at"]


def pair_cells(comparison, folders, seeds):
    """How often a pair of schemes broke, the median of their late losses, and when each seed broke."""
    runs = {Path(run["run"]).parent: run for run in comparison["runs"]}

    def late(folder):
        values = sorted(math.inf if (x := runs[folder / f"seed-{seed}"]["late_loss"]) is None else x for seed in seeds)
        middle = values[(len(values) - 1) // 2]
        return f"{middle:.3g}" if middle < math.inf else "-"

    def steps(folder):
        broke = [f"{seed}:{step}" for seed in seeds if (step := runs[folder / f"seed-{seed}"]["unstable_at"])]
        return " ".join(broke) or "-"

    return [*(unstable([runs[folder / f"seed-{seed}"] for seed in seeds]) for folder in folders),
            chance(comparison["results"][1]["log_rank_p"]), *map(late, folders), *map(steps, folders)]


def sweep(study, seeds, steps):
    """Width, depth and rate, one of them changed at a time."""
    rows = []
    for key, value in (("--width", "64"), ("--width", "32"), ("--width", "128"), ("--depth", "2"), ("--depth", "8"),
                       ("--lr", "0.01"), ("--lr", "0.028")):
        options = {**NETWORK, "--lr": RATE, key: value}
        folders = [study.train(f"sweep/{key[2:]}-{value}/{name}", [*words(options), *SCHEMES[name]], seeds, steps)
                   for name in PAIR]
        rows.append([f"{'rate' if key == '--lr' else key[2:]} {value}",
                     *pair_cells(study.compare(*folders), folders, seeds)])
    study.say(f"### Width, depth and rate: from width 64, depth 4, rate {RATE}; {steps} steps, seeds {seeds[0]} to "
              f"{seeds[-1]}", "", *table(["changed", *PAIR_HEAD], rows))


def floors(study, folders, seeds, steps):
    """The mean loss of every 200 steps against 1/d + sigma^2, and how near a cosine comes to it."""
    least, windows = math.inf, 0
    for folder in folders:
        for run in sorted(folder.glob("**/run.json")):
            width = int(json.loads(run.read_text())["request"]["width"])
            this, many = below_the_floor(losses(run), 1 / width + 25e-6)
            least, windows = min(least, this), windows + many
    study.say("### The floor", "", f"Of {windows} means over 200 steps of the runs of the survival curves, the lowest "
              f"lies {least:+.1f} standard errors from 1/d + sigma^2." if windows else "No run has 200 steps.", "")
    rows = []
    for width, rate in ("64", "0.003"), ("128", "0.002"):
        at = study.train(f"cosine/{width}", [*words({**NETWORK, "--width": width}), "--lr", rate, "--cosine"], seeds,
                         steps)
        for seed in seeds:
            part = losses(at / f"seed-{seed}/run.json")[-200:]
            mean = math.fsum(part) / len(part)
            error = math.sqrt(math.fsum((x - mean)**2 for x in part) / (len(part) - 1) / len(part))
            floor = 1 / int(width) + 25e-6
            rows.append([width, seed, f"{mean:.6f}", f"{error:.6f}", f"{floor:.6f}",
                         f"{100 * (mean / floor - 1):+.2f}"])
    study.say(*table(["d", "seed", "mean loss", "standard error", "floor", "above it, %"], rows))


def whole(study, amount):
    def first(n):
        return list(range(1, n + 1))

    folders, comparison = survival(study, "d = 64", NETWORK, RATE, first(amount["seeds"]), amount["steps"])
    broken = interventions(study, RATE, folders, comparison, amount["cases"])
    before_it_breaks(study, RATE, broken)
    drift(study, first(amount["cases"]), amount["long_steps"])
    wide, _ = survival(study, "d = 128", {**NETWORK, "--width": "128"}, WIDE_RATE, first(amount["wide_seeds"]),
                       amount["wide_steps"])
    activations(study, first(amount["few_seeds"]), amount["few_steps"])
    sweep(study, first(amount["few_seeds"]), amount["few_steps"])
    floors(study, [*folders.values(), *wide.values()], first(amount["cases"]), amount["long_steps"])


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mx", metavar="MX", nargs="?", type=Path, default=SOURCE / "build/release/mx",
                        help="the program (build/release/mx)")
    parser.add_argument("--minutes", type=float, default=FULL,
                        help=f"minutes of one core that seeds and steps are chosen for ({FULL}; at least 0.2)")
    parser.add_argument("--folder", type=Path, default=SOURCE / "build/su-training",
                        help="where the runs are kept (build/su-training)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="runs side by side (all processors)")
    options = parser.parse_args(arguments)
    program = options.mx.resolve()
    if not os.access(program, os.X_OK) or program.is_dir():
        parser.exit(3, f"no program {program}; build it first\n")
    if not 0.2 <= options.minutes <= 10000:
        parser.error(f"--minutes {options.minutes:g}: give a number from 0.2 to 10000")
    if options.threads < 1:
        parser.error(f"--threads {options.threads}: give at least 1")
    amount = budget(options.minutes)
    # Runs of other lengths are other runs.
    folder = options.folder / "-".join(map(str, amount.values()))
    study = Study(program, folder, options.threads)
    study.say(f"    scripts/{Path(__file__).name} --minutes {options.minutes:g}", "",
              ", ".join(f"{value} {key.replace('_', ' ')}" for key, value in amount.items()), "")
    whole(study, amount)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
