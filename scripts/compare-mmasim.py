#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the accumulator models with MMA-Sim, another emulator: random and special products through both,
bit for bit, for every unit that both have, with every pair of operands and every kind of scale.

MMA-Sim's results are written as vector files of kind mma, which `mx verify` compares. Where outputs
differ, fields of the model are changed one by one until none does, and one product is reduced to as few terms as
possible. Needs a Python with mmasim (PyPI; its numbers are those of torch on a CPU)."""

import argparse
import fnmatch
import importlib.metadata
import itertools
import json
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from mmasim import amd, nv_ptx
from mmasim.arithmetic.helper import decode_uint8_to_fp6_fp4

# Exponent bits, mantissa bits, bias of a code.
FORMATS = {"f32": (8, 23, 127), "tf32": (8, 23, 127), "bf16": (8, 7, 127), "f16": (5, 10, 15), "e4m3": (4, 3, 7),
           "e5m2": (5, 2, 15), "e3m2": (3, 2, 3), "e2m3": (2, 3, 1), "e2m1": (2, 1, 1), "e4m3fnuz": (4, 3, 8),
           "e5m2fnuz": (5, 2, 16)}
DTYPES = {"f32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16,
          "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e4m3fnuz": torch.float8_e4m3fnuz,
          "e5m2fnuz": torch.float8_e5m2fnuz}
WORDS = {8: torch.uint8, 16: torch.int16, 32: torch.int32}
MIXED = ("e5m2", "e4m3", "e3m2", "e2m3", "e2m1")
FP8 = ("e5m2", "e4m3")
SIDE = 128  # rows and columns of a tile
# What may differ: fields of a model, the likeliest first.
EDITS = ("", "exponent_floor=-21", "exponent_floor=-20", "underflow=plus", "exponent_floor=-21,underflow=plus",
         "exponent_floor=-20,underflow=plus", "zero=kept", "zero=kept,underflow=plus")


def units():
    """(model of mx, operation of MMA-Sim, formats of A and B, block and format of scales or None)."""
    def unit(model, make, arch, shape, a, b, scale=None):
        return model, make(arch, shape), a, b, scale
    for chip, arch in (("sm100.mma", "Blackwell"), ("sm120", "RTX Blackwell"), ("sm90.mma", "Hopper"),
                       ("sm89", "Ada Lovelace"), ("sm80", "Ampere")):
        for f in ("f16", "bf16"):
            yield unit(f"{chip}.f16", nv_ptx.MMA, arch, f"m16n8k16.f32.{f}.{f}.f32", f, f)
        yield unit(f"{chip}.f16.f16acc", nv_ptx.MMA, arch, "m16n8k16.f16.f16.f16.f16", "f16", "f16")
        yield unit(f"{chip}.tf32", nv_ptx.MMA, arch, "m16n8k8.f32.tf32.tf32.f32", "tf32", "tf32")
        for a, b in itertools.product(FP8, FP8) if chip in ("sm120", "sm89") else ():
            yield unit(f"{chip}.fp8", nv_ptx.MMA, arch, f"m16n8k32.f32.{a}.{b}.f32", a, b)
            yield unit(f"{chip}.fp8.f16acc", nv_ptx.MMA, arch, f"m16n8k32.f16.{a}.{b}.f16", a, b)
    for a, b in itertools.product(MIXED, MIXED):
        for d, end in (("f32", ""), ("f16", ".f16acc")):
            yield unit(f"sm120.f8f6f4{end}", nv_ptx.MMA, "RTX Blackwell",
                       f"m16n8k32.kind::f8f6f4.{d}.{a}.{b}.{d}", a, b)
            yield unit(f"sm100.f8f6f4{end}", nv_ptx.TCGen05MMA, "Blackwell",
                       f"m64n8k32.kind::f8f6f4.{d}.{a}.{b}", a, b)
        yield unit("sm120.mxf8f6f4", nv_ptx.MMABlockScale, "RTX Blackwell",
                   f"m16n8k32.kind::mxf8f6f4.block32.f32.{a}.{b}.f32.ue8m0", a, b, (32, "ue8m0"))
        yield unit("sm100.mxf8f6f4", nv_ptx.TCGen05MMABlockScale, "Blackwell",
                   f"m128n8k32.kind::mxf8f6f4.block32.f32.{a}.{b}.ue8m0", a, b, (32, "ue8m0"))
    for kind, block, scale in (("mxf4", 32, "ue8m0"), ("mxf4nvf4", 32, "ue8m0"), ("mxf4nvf4", 16, "ue8m0"),
                               ("mxf4nvf4", 16, "ue4m3")):
        name = f"k64.kind::{kind}.block{block}.f32.e2m1.e2m1"
        if (kind, block, scale) != ("mxf4nvf4", 16, "ue8m0"):  # mx has no such scales on sm_120
            yield unit(f"sm120.{kind}", nv_ptx.MMABlockScale, "RTX Blackwell", f"m16n8{name}.f32.{scale}", "e2m1",
                       "e2m1", (block, scale))
        yield unit(f"sm100.{kind}", nv_ptx.TCGen05MMABlockScale, "Blackwell", f"m128n8{name}.{scale}", "e2m1", "e2m1",
                   (block, scale))
    for chip, make, arch, shape in (("sm90.wgmma", nv_ptx.WGMMA, "Hopper", "m64n8k{k}.{d}.{f}.{f}"),
                                    ("sm100", nv_ptx.TCGen05MMA, "Blackwell", "m64n8k{k}.kind::{kind}.{d}.{f}.{f}")):
        for f, k, kind in (("f16", 16, "f16"), ("bf16", 16, "f16"), ("tf32", 8, "tf32")):
            yield unit(f"{chip}.{kind}", make, arch, shape.format(k=k, kind=kind, d="f32", f=f), f, f)
        yield unit(f"{chip}.f16.f16acc", make, arch, shape.format(k=16, kind="f16", d="f16", f="f16"), "f16", "f16")
    for a, b in itertools.product(FP8, FP8):
        yield unit("sm90.wgmma.fp8", nv_ptx.WGMMA, "Hopper", f"m64n8k32.f32.{a}.{b}", a, b)
        yield unit("sm90.wgmma.fp8.f16acc", nv_ptx.WGMMA, "Hopper", f"m64n8k32.f16.{a}.{b}", a, b)
    for f in ("f16", "bf16"):
        yield unit("cdna3.f16", amd.MFMA, "CDNA3", f"f32_32x32x8_{f}", f, f)
    yield unit("cdna3.xf32", amd.MFMA, "CDNA3", "f32_16x16x8_xf32", "tf32", "tf32")
    yield unit("cdna3.f32", amd.MFMA, "CDNA3", "f32_16x16x4_f32", "f32", "f32")
    names = {"bf8": "e5m2fnuz", "fp8": "e4m3fnuz"}
    for a, b in itertools.product(names, names):
        yield unit("cdna3.fp8", amd.MFMA, "CDNA3", f"f32_16x16x32_{a}_{b}", names[a], names[b])


def word(fmt):
    return max(8, 1 + sum(FORMATS[fmt][:2]))


class Inputs:
    """Seeded codes. A row of a matrix has one of nine kinds, so that a product of matrices has all pairs."""
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def ints(self, low, high, shape):
        return torch.randint(low, high, shape, generator=self.g, dtype=torch.int64)

    def codes(self, fmt, rows, cols):
        e, m, bias = FORMATS[fmt]
        fields = 1 << e
        shape = (rows, cols)
        sign = self.ints(0, 2, shape) << (e + m)
        mantissa = self.ints(0, 1 << m, shape)
        def with_exponent(low, high):
            return sign | self.ints(max(low, 0), min(high, fields), shape) << m | mantissa
        any_code = with_exponent(0, fields)
        near = with_exponent(bias - 1, bias + 2)
        kinds = [any_code, with_exponent(0, fields - 1), near,
                 torch.where(self.ints(0, 4, shape) == 0, with_exponent(0, fields - 1), near),
                 with_exponent(0, 2),                                            # zeros, subnormals, the least
                 torch.where(self.ints(0, 8, shape) == 0, any_code, sign),       # mostly zeros
                 torch.where(self.ints(0, 16, shape) == 0, sign | (fields - 1) << m | mantissa, near),  # specials
                 with_exponent(bias + fields // 4, fields - 1),                  # large
                 with_exponent(0, 4) & ~((1 << m) - 2)]                          # few bits, for the floor
        kind = (torch.arange(rows) % len(kinds))[:, None]
        out = kinds[0]
        for i, k in enumerate(kinds[1:], 1):
            out = torch.where(kind == i, k, out)
        return out

    def scales(self, fmt, rows, cols):
        shape = (rows, cols)
        if fmt == "ue4m3":
            near = self.ints(0x30, 0x48, shape)
        else:
            near = self.ints(119, 136, shape)
        pick = self.ints(0, 64, shape)
        # Extremes are rare, because a NaN scale decides the whole product.
        ends = self.ints(0, 256, shape)
        return torch.where(pick == 0, ends, torch.where(pick < 8, self.ints(1, 0x7f if fmt == "ue4m3" else 254, shape),
                                                        near))

    def accumulators(self, product, f16):
        """Codes of C: near the negated product, or anything."""
        fmt = "f16" if f16 else "f32"
        e, m, _ = FORMATS[fmt]
        shape = product.shape
        shift = torch.where(self.ints(0, 2, shape) == 0, 0, self.ints(-30, 5, shape)).double()
        close = -product * torch.exp2(shift)
        close = close.to(DTYPES[fmt]).view(WORDS[word(fmt)]).long() + self.ints(-2, 3, shape)
        sign = self.ints(0, 2, shape) << (e + m)
        others = [sign, sign | self.ints(0, (1 << e) - 1, shape) << m | self.ints(0, 1 << m, shape),
                  sign | self.ints(0, 1 << m, shape), self.ints(0, 1 << word(fmt), shape)]
        pick = self.ints(0, 16, shape)
        for i, other in enumerate(others):
            close = torch.where(pick == i, other, close)
        return close & ((1 << word(fmt)) - 1)


def as_tensor(codes, fmt):
    """Codes as what MMA-Sim takes: numbers, or fp6 and fp4 in bytes as mma.sync wants them."""
    if fmt not in DTYPES:
        return (codes << (2 if fmt == "e2m1" else 0)).to(torch.uint8)
    bits = word(fmt)
    signed = torch.where(codes >= 1 << (bits - 1), codes - (1 << bits), codes) if bits > 8 else codes
    return signed.to(WORDS[bits]).view(DTYPES[fmt])


def numbers(t, fmt):
    return (t if fmt in DTYPES else decode_uint8_to_fp6_fp4(t, fmt)).double()


def results(operation, a_fmt, b_fmt, scale, a, b, c, sfa=None, sfb=None):
    """Codes of D = A B' + C as MMA-Sim computes it."""
    f16 = operation.d_type == torch.float16
    acc = as_tensor(c, "f16" if f16 else "f32")
    if scale is None:
        d = operation(as_tensor(a, a_fmt), as_tensor(b, b_fmt).T, acc)
    else:
        to = torch.float8_e4m3fn if scale[1] == "ue4m3" else torch.float8_e8m0fnu
        pack = operation.packing == 2
        ab = [(x[:, 0::2] << 4 | x[:, 1::2]).to(torch.uint8) if pack else as_tensor(x, f)
              for x, f in ((a, a_fmt), (b, b_fmt))]
        sf = [s.to(torch.uint8).view(to) for s in (sfa, sfb)]
        d = operation(ab[0], ab[1].T, acc, sf[0], sf[1].T)
    if a_fmt == "f32":
        d = torch.where(d.isnan(), torch.tensor(0x7fffffff, dtype=torch.int32).view(torch.float32), d)  # a CPU's NaN
    bits = 16 if f16 else 32
    return d.contiguous().view(WORDS[bits]).long() & ((1 << bits) - 1)


def write(path, what, tiles):
    """A vector file of kind mma with one distribution."""
    model, operation, a_fmt, b_fmt, scale = what
    acc = "f16" if operation.d_type == torch.float16 else "f32"
    meta = {"kind": "mma", "mode": "single", "architecture": model.split(".")[0], "instruction": model,
            "a_format": a_fmt, "b_format": b_fmt, "acc_format": acc, "instruction_k": str(operation.k),
            "scale_format": scale[1] if scale else "none", "scale_block": str(scale[0] if scale else 0),
            "source": "MMA-Sim " + importlib.metadata.version("mmasim")}
    header, data, at = {"__metadata__": meta}, [], 0
    for name, fmt in (("A", a_fmt), ("B", b_fmt), ("SFA", "e4m3"), ("SFB", "e4m3"), ("C", acc), ("D", acc)):
        if name not in tiles[0]:
            continue
        bits = word(fmt)
        stack = torch.stack([t[name] for t in tiles])
        packed = stack.to({8: torch.uint8, 16: torch.int32, 32: torch.int64}[bits]).numpy()
        raw = packed.astype({8: "<u1", 16: "<u2", 32: "<u4"}[bits]).tobytes()
        header["random." + name] = {"dtype": f"U{bits}", "shape": list(stack.shape), "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def verify(mx, path, model, top=1):
    run = subprocess.run([mx, "verify", path, "--accumulate", model, "--json", "-", "-q", "--top", str(top),
                          "--threads", "1"], capture_output=True, text=True)
    if run.returncode not in (0, 1):
        sys.exit(f"{model}: {run.stderr.strip()}")
    return json.loads(run.stdout)


class Comparison:
    def __init__(self, mx, work, what, seed):
        self.mx, self.what, self.path = mx, what, str(Path(work) / "products.safetensors")
        self.inputs = Inputs(seed)

    def tile(self):
        _, operation, a_fmt, b_fmt, scale = self.what
        k = operation.k
        t = {"A": self.inputs.codes(a_fmt, SIDE, k), "B": self.inputs.codes(b_fmt, SIDE, k)}
        order = torch.randperm(SIDE, generator=self.inputs.g)  # else equal kinds would meet on diagonals only
        t["B"] = t["B"][order]
        a, b = (numbers(as_tensor(t[x], f), f) for x, f in (("A", a_fmt), ("B", b_fmt)))
        if scale is not None:
            for x in "AB":
                t["SF" + x] = self.inputs.scales(scale[1], SIDE, k // scale[0])
            # The powers of two of the scales, nearly.
            bias, step = (127, 1) if scale[1] == "ue8m0" else (56, 8)
            s = [torch.exp2(((t["SF" + x].double() - bias) / step).floor()).repeat_interleave(scale[0], 1)
                 for x in "AB"]
            a, b = a * s[0], b * s[1]
        t["C"] = self.inputs.accumulators(a @ b.T, operation.d_type == torch.float16)
        if a_fmt == "f16":
            # 2^-25, half of the least f16, plus 2^-48 to 2^-41: zero, unless the floor leaves the small term.
            t["A"][0], t["B"][:8], t["C"][0, :8] = 0, 0, 0
            t["A"][0, :2] = torch.tensor([0x0c00, 0x0001])
            for j in range(8):
                t["B"][j, :2] = torch.tensor([0x0800, 1 << j])
        return self.compute(t)

    def compute(self, t):
        _, operation, a_fmt, b_fmt, scale = self.what
        t["D"] = results(operation, a_fmt, b_fmt, scale, t["A"], t["B"], t["C"], t.get("SFA"), t.get("SFB"))
        return t

    def run(self, products, seconds):
        """Compares until `products` or `seconds` are spent: count, and by edit of the model the differences."""
        model = self.what[0]
        record = {"model": model, "a": self.what[2], "b": self.what[3],
                  "scale": f"{self.what[4][1]}/{self.what[4][0]}" if self.what[4] else None, "products": 0,
                  "differences": {"": 0}, "seconds": {"mmasim": 0.0, "mx": 0.0}}
        edits, start = [], time.monotonic()
        while record["products"] < products and time.monotonic() - start < seconds:
            begun = time.monotonic()
            left = -(-int(products - record["products"]) // SIDE ** 2)
            tiles = [self.tile() for _ in range(max(1, min(8, left)))]
            write(self.path, self.what, tiles)
            computed = time.monotonic()
            found = verify(self.mx, self.path, model, 2000)
            record["products"] += found["compared"]
            record["differences"][""] += found["difference_count"]
            if found["differences"]:
                if "example" not in record:
                    record["example"] = self.example(tiles, found["differences"])
                    edits = [e for e in EDITS[1:] if not (model.startswith("cdna3.") and "zero" in e)]
                for edit in list(edits):
                    count = verify(self.mx, self.path, f"{model}:{edit}")["difference_count"]
                    record["differences"][edit] = record["differences"].get(edit, 0) + count
                    if count:
                        edits.remove(edit)  # it is not the only difference
            record["seconds"]["mmasim"] += computed - begun
            record["seconds"]["mx"] += time.monotonic() - computed
        return record

    def differs(self, products):
        """Which of single products, lists of (a, b, c, sfa, sfb), differ, and both results."""
        tiles = []
        for a, b, c, sfa, sfb in products:
            t = {"A": a[None], "B": b[None], "C": c.reshape(1, 1)}
            if sfa is not None:
                t |= {"SFA": sfa[None], "SFB": sfb[None]}
            tiles.append(self.compute(t))
        write(self.path + ".one", self.what, tiles)
        found = verify(self.mx, self.path + ".one", self.what[0], len(tiles))
        return {d["index"]: (d["expected_hex"], d["got_hex"]) for d in found["differences"]}

    def example(self, tiles, differences):
        """A differing product with as many zeros as possible."""
        def product(index):
            t, at = divmod(index, SIDE * SIDE)
            i, j = divmod(at, SIDE)
            x = tiles[t]
            return (x["A"][i], x["B"][j], x["C"][i, j], *((x["SFA"][i], x["SFB"][j]) if "SFA" in x else (None, None)))
        def terms(p):
            return int(((p[0] != 0) & (p[1] != 0)).sum())
        best = min((product(d["index"]) for d in differences), key=terms)
        while True:
            tries = [(best[0], best[1], torch.zeros_like(best[2]), *best[3:])] if best[2] != 0 else []
            for i in range(len(best[0])):
                for side in (0, 1):
                    if best[side][i] != 0:
                        other = [x.clone() if x is not None else None for x in best]
                        other[side][i] = 0
                        tries.append(tuple(other))
            found = self.differs(tries) if tries else {}
            if not found:
                break
            best = tries[min(found)]
        theirs, ours = self.differs([best])[0]
        def hexes(t):
            return [f"{int(v):#x}" for v in t.reshape(-1)]
        used = [i for i in range(len(best[0])) if best[0][i] != 0 or best[1][i] != 0]
        return {"k": used, "a": hexes(best[0][used]), "b": hexes(best[1][used]), "c": hexes(best[2]),
                "scales_a": hexes(best[3]) if best[3] is not None else None,
                "scales_b": hexes(best[4]) if best[4] is not None else None, "mmasim": theirs, "mx": ours}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mx", help="the program")
    parser.add_argument("--units", default="*", help="models, as patterns with commas: 'sm100.*,cdna3.*'")
    parser.add_argument("--products", type=int, default=10**7, help="of each model, over its pairs (10^7)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of each model at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", default="-", help="JSON with a record per model and pair")
    args = parser.parse_args()
    torch.set_num_threads(1)
    every = [u for u in units() if any(fnmatch.fnmatch(u[0], p) for p in args.units.split(","))]
    if not every:
        sys.exit(f"no unit is named '{args.units}'; known: {', '.join(sorted({u[0] for u in units()}))}")
    records = []
    with tempfile.TemporaryDirectory() as work:
        for i, what in enumerate(every):
            pairs = sum(u[0] == what[0] for u in every)
            r = Comparison(args.mx, work, what, args.seed * 1000 + i).run(args.products / pairs, args.seconds / pairs)
            records.append(r)
            clean = [e for e, n in r["differences"].items() if n == 0]
            print(f"{r['model']} {r['a']} x {r['b']} {r['scale'] or ''}: {r['products']} products, "
                  f"{r['differences']['']} differ" + (f"; none with {clean[0]}" if clean and clean[0] else ""),
                  file=sys.stderr, flush=True)
            log = {"mmasim": importlib.metadata.version("mmasim"), "torch": torch.__version__, "seed": args.seed,
                   "records": records}
            if args.output != "-":
                Path(args.output).write_text(json.dumps(log, indent=1) + "\n")
    if args.output == "-":
        print(json.dumps(log, indent=1))


if __name__ == "__main__":
    main()
