// SPDX-License-Identifier: Apache-2.0
// docs/design/gemm.md, made from the list of accumulator models.
#include "apps/mx/manual.hpp"
#include "libmx/documents/accumulator_words.hpp"
#include "libmx/gemm/accumulator_keys.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/operand_formats.hpp"

namespace mx::app {
namespace {

using documents::evidence_text, documents::field_text, documents::operands_text,
    documents::scales_text;

std::string models() {
    return lines_of(gemm::accumulators(), [](const gemm::accumulator& m) {
        return fmt::format(
            "| **{}** | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            plain(m.name), m.instruction.empty() ? "-" : plain(m.instruction), operands_text(m),
            scales_text(m), word_of(gemm::algorithm_words, m.how).name,
            word_of(gemm::intake_words, m.enters).name, field_text(m, "fused_length"),
            field_text(m, "fraction_bits"), field_text(m, "wide_fraction_bits"),
            field_text(m, "exponent_floor"), word_of(gemm::conversion_words, m.convert).name,
            field_text(m, "c"), evidence_text(m), plain(m.remark));
    });
}

std::string_view specials_of(const gemm::operand_format& f) {
    switch (f.special) {
        case gemm::operand_specials::fn:
            return "all-ones magnitude is NaN";
        case gemm::operand_specials::ieee:
            return "Inf and NaN";
        case gemm::operand_specials::fnuz:
            return "the code of -0 is NaN";
        default:
            return "none";
    }
}

std::string operands() {
    return lines_of(gemm::operand_formats, [](const gemm::operand_format& f) {
        return fmt::format(
            "| {} | {} | {} | {} | {} | {} | {}{} |", f.name, f.code_bits(), f.exponent_bits,
            f.mantissa_bits, f.bias, f.least_exponent(), specials_of(f),
            f.dropped_bits == 0 ? ""
                                : fmt::format("; the {} low bits of a code are dropped first, so "
                                              "that a NaN with its payload there becomes Inf",
                                              f.dropped_bits));
    });
}

std::string keys() {
    return lines_of(gemm::accumulator_keys(), [](const gemm::accumulator_key& k) {
        return fmt::format("| `{}` | {} | {} |", k.name, plain(k.values), plain(k.summary));
    });
}

}  // namespace

std::string accumulators_page() {
    return filled(gemm_md(), fmt::arg("models", models()), fmt::arg("operands", operands()),
                  fmt::arg("keys", keys()));
}

}  // namespace mx::app
