// SPDX-License-Identifier: Apache-2.0
// THE LIST of accumulator fields that a spelling may change, and of the names of their policies.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "libmx/gemm/accumulator.hpp"

namespace mx::gemm {

/// A value of an enumeration, its name and its meaning.
template <typename T>
struct policy_word {
    T value;
    std::string_view name;
    std::string_view summary;
};
template <typename T>
policy_word(T, std::string_view, std::string_view) -> policy_word<T>;

inline constexpr std::array algorithm_words{
    policy_word{algorithm::exact, "exact", "everything exactly, rounded once"},
    policy_word{algorithm::fma_chain, "fma-chain", "float32 fused multiply-adds in k order"},
    policy_word{algorithm::pairwise, "pairwise", "float32 products, added in a balanced tree"},
    policy_word{algorithm::fused, "fused",
                "terms aligned to the largest exponent, truncated, added exactly"},
    policy_word{algorithm::grouped, "grouped",
                "groups of products added exactly, then fused by their scales"},
    policy_word{algorithm::two_sided, "two-sided",
                "products aligned among themselves, the accumulator after them"},
    policy_word{algorithm::interleaved, "interleaved", "two-sided, with even and odd k separate"},
};
inline constexpr std::array intake_words{
    policy_word{intake::codes, "codes", "as they are"},
    policy_word{intake::float32, "float32", "dequantized to float32"},
    policy_word{intake::bfloat16, "bfloat16", "dequantized and rounded to bfloat16"},
    policy_word{intake::halves, "f16-halves",
                "widened to f16; of every four k a step takes the first two, the next the others"},
};
inline constexpr std::array conversion_words{
    policy_word{conversion::rz_fp32, "rz-fp32", "to float32, toward zero"},
    policy_word{conversion::rz_e8m13, "rz-e8m13", "to float32 with 13 mantissa bits, toward zero"},
    policy_word{conversion::rne_fp16, "rne-fp16", "to f16, to nearest even"},
    policy_word{conversion::rne_fp32, "rne-fp32", "to float32, to nearest even"},
};
inline constexpr std::array zero_words{
    policy_word{zero_sign::plus, "plus", "+0"},
    policy_word{zero_sign::kept, "kept", "the sign of what became zero"},
};
inline constexpr std::array subnormal_words{
    policy_word{subnormal_alignment::least_exponent, "least-exponent",
                "at the format's least exponent"},
    policy_word{subnormal_alignment::leading_bit, "leading-bit", "at their leading bit"},
};
inline constexpr std::array entry_words{
    policy_word{entry::term, "term", "aligned and added with the products"},
    policy_word{entry::afterwards, "afterwards", "added to the instruction's result"},
    policy_word{entry::ignored, "ignored", "dropped"},
};
inline constexpr std::array evidence_words{
    policy_word{evidence::definition, "definition", "no model of hardware"},
    policy_word{evidence::recorded, "recorded", "outputs recorded on the chip agree bit for bit"},
    policy_word{evidence::published, "published",
                "a published model that its authors compared with the chip"},
    policy_word{evidence::extrapolated, "extrapolated",
                "that model applied to what its authors did not compare"},
};

/// A bit of operand_set: its name, and the operand formats that it comprises.
struct operand_word {
    operand_set bit;
    std::string_view name;
    std::string_view summary;
};
inline constexpr std::array operand_words{
    operand_word{takes_f32, "f32", "float32"},
    operand_word{takes_tf32, "tf32", "float32 whose 13 low bits are dropped"},
    operand_word{takes_bf16, "bf16", "bfloat16"},
    operand_word{takes_f16, "f16", "binary16"},
    operand_word{takes_fp8, "fp8", "e4m3 and e5m2"},
    operand_word{takes_fp6, "fp6", "e3m2 and e2m3"},
    operand_word{takes_fp4, "fp4", "e2m1"},
    operand_word{takes_fnuz, "fnuz8", "e4m3fnuz and e5m2fnuz"},
};

/// The row of `value` in one of the arrays above.
template <typename T, std::size_t N>
constexpr const policy_word<T>& word_of(const std::array<policy_word<T>, N>& words, T value) {
    for (const policy_word<T>& w : words) {
        if (w.value == value) return w;
    }
    return words[0];
}

/// One field that can be changed with `NAME:key=value`.
struct accumulator_key {
    std::string_view name;
    std::string_view values;   ///< what it takes, for help
    std::string_view summary;  ///< one line
    /// Whether models of this shape have the field.
    bool (*applies)(algorithm);
    void (*set)(accumulator&, std::string_view value);
    std::string (*get)(const accumulator&);
};

/// Every key in the order of the canonical spelling.
std::span<const accumulator_key> accumulator_keys();

}  // namespace mx::gemm
