#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/count-instructions.py counts in a graph that is made up, and that it sees figures grow."""

import unittest

from script import load

count = load("count-instructions.py")


def block(name, instructions, extra=""):
    lines = "".join(f"\\ \\ {i}\\ R0,\\ R1\\ ;\\l" for i in instructions)
    return f'"{name}"\n[label="{{<entry>{name}:\\l{lines}|<exit0>{extra}}}"]\n'


# A loop that reads, multiplies and adds up; the way by `slow` is longer, that by `cheap` misses the sums.
LOOP = ("".join([
    block("begin", ["MOV"] * 9), block("load", ["LDG.E.128"] * 4 + ["NOP"]), block("slow", ["CALL"] * 99),
    block("sums", ["IMAD.WIDE"] * 40), block("cheap", ["BRA"]), block("end", ["BRA"] * 20)]) + "".join(
        f'"{a}":exit0:e -> "{b}":entry:n [style=solid];\n' for a, b in [
            ("begin", "load"), ("load", "slow"), ("slow", "end"), ("load", "sums"), ("sums", "end"),
            ("load", "cheap"), ("cheap", "end"), ("end", "load")]))

TABLE = "| kernel | values | output | slots | spills |\n|---|---|---|---:|---:|\n| a | b | c | {} | {} |"


class Count(unittest.TestCase):
    def test_the_cheapest_way_that_does_the_work_is_counted(self):
        rows = count.loop_of("quantize_row_segments")
        self.assertEqual(count.slots_of(LOOP, rows), 2.0)  # 4 + 40 + 20 of 32 elements
        self.assertIsNone(count.slots_of(LOOP.replace("IMAD.WIDE", "IADD3"), rows))
        self.assertIsNone(count.slots_of(LOOP.replace("LDG.E.128", "LDG.E"), rows))

    def test_the_busiest_pipe_bounds(self):
        cycles = count.cycles_of(count.round_of(LOOP, count.loop_of("quantize_row_segments")), 32)
        self.assertEqual(cycles, {"issue": 2.0, "ALU": 0.0, "integer FMA": 2.5, "FMA": 1.25, "XU": 0.0, "LSU": 0.5})
        others = ["/*0010*/ @!P0 F2I.TRUNC R1, R2 ;", "LOP3.LUT R1, R2 ;", "@P1 FFMA R1, R2 ;", "/*0040*/ UIADD3 UR4 ;"]
        self.assertEqual(count.cycles_of(others, 1),
                         {"issue": 4.0, "ALU": 2.0, "integer FMA": 0.0, "FMA": 1.0, "XU": 8.0, "LSU": 0.0})
        rows = (0, "MXFP8, MXFP6, MXFP4 by arithmetic", "bf16", "figures")
        table = count.bounds_table({rows: {"90": (2.5, 1, 0, cycles)}, (9, "a", "", ""): {"90": (None, 1, 0, None)}})
        self.assertEqual(len(table.splitlines()), 3)
        # 132 multiprocessors of four quarters, 32 lanes and 1.755 GHz, every 2.5 cycles: more than either memory reads
        self.assertIn("| 2.0 | 0.0 | 2.5 | 1.2 | 0.0 | 0.5 | 11.86 | 1.00 | 1.00 | 0.5 |", table)

    def test_chains_are_counted_by_multiply_add(self):
        chain = count.loop_of("multiplyILj64E")
        chains = LOOP.replace("LDG.E.128", "LDGSTS.E").replace(
            block("sums", ["IMAD.WIDE"] * 40), block("sums", ["FFMA"] * 512 + ["LDS.128"] * 40))
        self.assertEqual(count.slots_of(chains, chain), 1.12)  # 4 + 552 + 20 of 512
        self.assertIsNone(count.slots_of(chains.replace("LDGSTS", "LDG"), chain))

    def test_no_part_of_a_products_step_is_left_out(self):
        # The way by `skip` would miss the copies.
        parts = {"begin": ["LDGSTS"] * 9, "wait": ["BAR"] * 8, "copy": ["LDGSTS"] * 8, "skip": ["BRA"],
                 "sums": ["F2I"] * 256}
        graph = "".join(block(name, lines) for name, lines in parts.items()) + "".join(
            f'"{a}":exit0:e -> "{b}":entry:n;\n' for a, b in [
                ("begin", "wait"), ("wait", "copy"), ("wait", "skip"), ("copy", "sums"), ("skip", "sums"),
                ("sums", "wait")])
        self.assertEqual(count.slots_of(graph, count.loop_of("walk_splitILi32ELNS0_10conversionE0")), 1.1)  # 272 of 256
        self.assertIsNone(count.slots_of(graph, count.loop_of("walk_splitILi64ELNS0_10conversionE0")))

    def test_kernels_have_families(self):
        row = "_ZN2mx5codec4cuda21quantize_row_segmentsILb{}ENS1_10{}ENS1_14grid_converterEEEvNS1_6launchEj"
        self.assertEqual(count.family_of(row.format(1, "bf16_block"))[2:], ("bf16", "codes and figures"))
        self.assertEqual(count.family_of(row.format(0, "float_block"))[2:], ("f32, f16", "figures"))
        chain = "_ZN2mx3lab4cuda43_GLOBAL__N__6889e9e6_10_kernels_cu_41e58ecd8multiplyILj64EEEvNS1_14product_launchE"
        self.assertEqual(count.family_of(chain)[1], "products of trainings, tiles of  64")
        self.assertIsNone(count.family_of("_ZN2mx4base4cuda5probeEv"))

    def test_what_grows_is_found(self):
        self.assertEqual(count.grown(TABLE.format(24.0, 0), TABLE.format(23.5, 0)), [])
        self.assertEqual(count.grown(TABLE.format(24.0, 0), TABLE.format(24.1, 0)),
                         ["a, b, c: 24.1 where the document has 24.0"])
        self.assertEqual(count.grown(TABLE.format(24.0, 0), TABLE.format("-", 8)),
                         ["a, b, c: - where the document has 24.0", "a, b, c: 8 where the document has 0"])
        self.assertEqual(count.grown("", TABLE.format(1, 1)), ["kernel, values, output: is not in the document",
                                                               "a, b, c: is not in the document"])
        rates = "| `mxfp4` | 99 | 167 | {} |"
        self.assertEqual(count.grown(rates.format(3), rates.format(4)), ["`mxfp4`: 4 where the document has 3"])


if __name__ == "__main__":
    unittest.main()
