// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/accumulator_page.hpp"

#include <fmt/format.h>

#include <string_view>

#include "apps/mx/commands/accumulator_tables.hpp"
#include "apps/mx/manual_text.hpp"
#include "libmx/gemm/accumulator_keys.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/operand_formats.hpp"

namespace mx::app {
namespace {

using gemm::accumulator;

constexpr std::string_view introduction =
    "A matrix unit does not add like a processor. It aligns the products of a step to the largest "
    "exponent among them, cuts off what lies below, adds what is left exactly and rounds once; how "
    "many products, where it cuts and how it rounds differ from chip to chip and from instruction "
    "to "
    "instruction. `mx` emulates these sums bit for bit. Every parameter of a model is a field of "
    "one "
    "list; `mx accumulators` prints it, `NAME:key=value` changes fields.\n";

constexpr std::string_view step =
    "\n## One step\n\n"
    "An operand is unpacked and **not** normalized: its value is significand * 2^(e - m) with m "
    "mantissa bits, where e is the exponent field less the bias, or the least exponent for zero "
    "and "
    "subnormals. A product is the product of the significands and the sum of the exponents; an "
    "E8M0 "
    "scale adds to the exponent.\n\n"
    "1. Codes alone decide NaN and Inf: a NaN element, scale or accumulator, Inf times zero, and "
    "Inf "
    "of both signs give NaN; else any Inf gives Inf. NaN is written 0x7fffffff (f32) or 0x7fff "
    "(f16).\n"
    "2. E is the largest of the floor, the exponents of the products that are not zero, and that "
    "of "
    "the accumulator if it is not zero.\n"
    "3. Every term is cut, toward zero, to a multiple of 2^(E - F).\n"
    "4. The terms are added exactly and converted: `rz-fp32` cuts toward zero (Inf from 2^128 on, "
    "subnormals kept), `rz-e8m13` likewise with 13 mantissa bits, `rne-fp16` and `rne-fp32` round "
    "to "
    "nearest even. An exact zero is +0; what rounds to zero keeps its sign.\n\n"
    "*grouped* (the 4-bit block-scaled kinds): 16 products are added exactly, and the terms are "
    "these "
    "groups times their two scales. A group aligns at the exponent of its scales, whatever its "
    "sum, "
    "unless all of its products are zero.\n\n"
    "*f16-halves* (fp8 `mma.sync` of chips whose compiler makes f16 instructions of it): elements "
    "are widened to f16, exactly. Of 32 k a first step takes the 16 with k mod 4 = 0 or 1, in f16 "
    "or float32 as the row says, beginning with c = 0; a second step takes the other 16, with the "
    "first one's result as its accumulator; then c is added to the second one's result, to nearest "
    "even in the accumulator's format.\n\n"
    "*two-sided* (CDNA3): products are aligned and cut among themselves at F bits; their sum is "
    "rounded down (toward minus infinity) F2 + 1 bits and the accumulator F bits below the larger "
    "exponent of the two (at least -126); the result is rounded down to F2 bits of its own and "
    "then "
    "to nearest. A product of 2^128 or more is Inf. *interleaved* (CDNA3 fp8): even and odd k are "
    "summed apart, put together rounded down, and an accumulator more than F + 1 below is left "
    "out. "
    "The published code also loses an Inf or NaN accumulator beside large products there; we take "
    "that for a slip of the code and keep IEEE's rules.\n\n"
    "The bodies are integers only and compile for host and device: `libmx/gemm/one_step.hpp`. "
    "`tests/oracle/dot.hpp` states the same in rationals; the tests compare the two on inputs that "
    "aim at what rounds.\n";

constexpr std::string_view arrangement =
    "\n## Many steps\n\n"
    "A dot product of K products takes steps in ascending k, each step's result being the next "
    "one's "
    "accumulator; K is filled with zeros up to a whole step. Around that, and not part of any "
    "model:\n\n"
    "- descending k, step by step (in software models element by element);\n"
    "- slices: k is cut into so many parts of equal numbers of steps, each begins at zero, and the "
    "results are added in float32, the first slice first;\n"
    "- `promote=N`: after every N products the accumulator is added to a float32 sum, which begins "
    "with C, and starts again at zero;\n"
    "- alpha and beta: float32 after the sum; beta * C is rounded, alpha * sum is fused onto it "
    "(CUTLASS's linear combination). Tensor scales are multiplied into alpha. The result is "
    "rounded "
    "again to f16 where the model gives f16.\n\n"
    "Which of these a library chooses for a shape (cuBLASLt's heuristics, split-K, 2-SM kernels) "
    "is "
    "not known here; they are explicit so that nobody has to guess silently. Sparsity, `.ws`, "
    "`cta_group::2` and negate bits are not modelled.\n\n"
    "The software models are definitions: `exact` adds everything exactly and rounds once; "
    "`fp32.fma` chains float32 fused multiply-adds; `fp32.pairwise` rounds products to float32 and "
    "adds them in a tree whose left side is the largest power of two below its size; `bf16.fma` "
    "rounds the dequantized operands to bfloat16 and chains.\n";

constexpr std::string_view evidence =
    "\n## What the models rest on\n\n"
    "- **recorded**: outputs that other people recorded on the chip and published "
    "(north-numerical-computing/MATLAB-tensor-core@b12b5a7, `model_validation/`: B200 and H100; "
    "3000 rows of each set) "
    "agree with the model in every bit. 250 rows of each set (of fp8 with f16 results 50) are in "
    "`datasets/vectors/recorded`. "
    "The "
    "program that recorded them issued `mma.sync` and `wmma`. The values are of narrow range: no "
    "NaN, "
    "Inf or subnormals, so corners of these rows are published, not recorded.\n"
    "- **published**: MMA-Sim (arXiv:2511.10909, peichenxie/MMA-Sim@0a5ce40) has this model and "
    "lists the instruction as tested on the chip; its authors report about 10^6 random comparisons "
    "an "
    "instruction. Vectors in `datasets/vectors/mma` were computed with MMA-Sim's model: that they "
    "agree "
    "says "
    "that we implement the same model, not that the chip does it.\n"
    "- **extrapolated**: the same model for operands that its authors do not list as tested.\n"
    "- **definition**: not a model of hardware.\n\n"
    "We have measured nothing on such a chip ourselves.\n\n";

constexpr std::string_view unknown =
    "\n## What is not known\n\n"
    "- The sign of an exact zero, and of a negative sum that rounds to zero. Published code gives "
    "+0 "
    "and -0, an older version of it +0 for both. Fields `zero` and `underflow`.\n"
    "- Where fp6 and fp4 subnormals align in `kind::f8f6f4` and `mxf8f6f4`: the least exponent is "
    "taken. Field `subnormals`.\n"
    "- The floor. -133 is in two independent models (MMA-Sim's, and the MATLAB models of "
    "arXiv:2512.07004); -139 of the 4-bit kinds has one source; for f16 accumulators MMA-Sim has "
    "-22 "
    "where the MATLAB models have -21. Products of f16 and fp8 without scales never get as small "
    "as "
    "-133, so that it shows only in bf16, tf32 and scaled operands; -22 shows in f16 and e5m2. "
    "Field `exponent_floor`.\n"
    "- fp8 `mma.sync` on B200 and H100 is what a compiler makes of it: ptxas 13.0 widens the "
    "operands to f16, from the lower and from the upper half of each register, and makes two "
    "instructions for f16 and an addition of c (`f16-halves`; `sm90.mma.fp8.halves`). Recordings "
    "with f16 results agree; those with float32 results hardly tell on B200, and those of H100 are "
    "of another kind that did not add c (`sm90.mma.fp8`): which code ran there is not published.\n"
    "- tcgen05 without accumulation is taken to be the same as an accumulator of +0.\n"
    "- CDNA4 is not modelled by anyone we know.\n";

std::string_view intake_word(const accumulator& m) {
    return word_of(gemm::intake_words, m.enters).name;
}

std::string models() {
    std::string out =
        "| model | instruction | operands | scales | shape | operands enter as | L | F | F2 | "
        "floor | "
        "conversion | c | evidence | what exactly |\n"
        "|---|---|---|---|---|---|---:|---:|---:|---:|---|---|---|---|\n";
    for (const accumulator& m : gemm::accumulators()) {
        out += fmt::format(
            "| **{}** | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            plain(m.name), m.instruction.empty() ? "-" : plain(m.instruction), operands_text(m),
            scales_text(m), word_of(gemm::algorithm_words, m.how).name, intake_word(m),
            field_text(m, "fused_length"), field_text(m, "fraction_bits"),
            field_text(m, "wide_fraction_bits"), field_text(m, "exponent_floor"),
            word_of(gemm::conversion_words, m.convert).name, field_text(m, "c"), evidence_text(m),
            plain(m.remark));
    }
    return out;
}

std::string operands() {
    std::string out =
        "\n## Operands\n\n| format | bits | exponent | mantissa | bias | least exponent | specials "
        "|\n"
        "|---|---:|---:|---:|---:|---:|---|\n";
    for (const gemm::operand_format& f : gemm::operand_formats) {
        std::string_view specials = "none";
        if (f.special == gemm::operand_specials::fn) specials = "all-ones magnitude is NaN";
        if (f.special == gemm::operand_specials::ieee) specials = "Inf and NaN";
        if (f.special == gemm::operand_specials::fnuz) specials = "the code of -0 is NaN";
        out += fmt::format("| {} | {} | {} | {} | {} | {} | {}{} |\n", f.name, f.code_bits(),
                           f.exponent_bits, f.mantissa_bits, f.bias, f.least_exponent(), specials,
                           f.dropped_bits == 0
                               ? ""
                               : fmt::format("; the {} low bits of a code are dropped first, so "
                                             "that a NaN with its payload there becomes Inf",
                                             f.dropped_bits));
    }
    out +=
        "\nScales: E8M0 per 32 or 16 elements, UE4M3 per 16 (its sign bit is ignored). A "
        "block-scaled "
        "kind reads operands without scales as scaled by 1.\n";
    return out;
}

std::string keys() {
    std::string out =
        "\n## Fields\n\n`NAME:key=value,...` changes these:\n\n| key | values | meaning "
        "|\n|---|---|---|\n";
    for (const gemm::accumulator_key& k : gemm::accumulator_keys()) {
        out += fmt::format("| `{}` | {} | {} |\n", k.name, plain(k.values), plain(k.summary));
    }
    return out;
}

}  // namespace

std::string accumulator_page() {
    return fmt::format("{}# Emulated matrix products\n\n{}{}{}{}{}{}{}{}", made_by, introduction,
                       evidence, models(), operands(), step, arrangement, keys(), unknown);
}

}  // namespace mx::app
