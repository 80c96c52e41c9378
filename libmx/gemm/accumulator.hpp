// SPDX-License-Identifier: Apache-2.0
// The fields that define a matrix unit's sum. All properties of a model are here.
#pragma once

#include <cstdint>
#include <string_view>

namespace mx::gemm {

/// The structure of the sum. A model with a fused length chains steps: the result of each is the
/// accumulator of the next. Without one, a single step takes all of k.
enum class algorithm : std::uint8_t {
    exact,        ///< all of it exactly, rounded once
    fma_chain,    ///< float32 fused multiply-adds in k order
    pairwise,     ///< float32 products, added in a balanced tree of fixed shape
    fused,        ///< fused steps: terms aligned to the largest exponent, truncated, added exactly
    grouped,      ///< fused steps whose terms are exact dot products of groups (4-bit kinds)
    two_sided,    ///< CDNA3: products aligned among themselves, the accumulator after them
    interleaved,  ///< CDNA3 fp8: two_sided, with even and odd k apart
};

/// Whether models of this kind align and truncate, in steps of a fused length.
constexpr bool has_steps(algorithm how) {
    return how != algorithm::exact && how != algorithm::fma_chain && how != algorithm::pairwise;
}

/// How the exact sum of a step is converted to the next accumulator.
enum class conversion : std::uint8_t { rz_fp32, rz_e8m13, rne_fp16, rne_fp32 };

/// The sign of a zero sum, and of a negative sum that rounds to zero.
enum class zero_sign : std::uint8_t { plus, kept };

/// The alignment exponent of a subnormal operand: its format's smallest exponent, or that of its
/// leading bit.
enum class subnormal_alignment : std::uint8_t { least_exponent, leading_bit };

/// How the accumulator enters the sum.
enum class entry : std::uint8_t {
    term,        ///< as one more term of the fused step
    afterwards,  ///< the instruction runs with c = 0; c is added in c's format, to nearest even
    ignored,     ///< not at all (recordings that did not add it)
};

/// Conversion of operands before multiplication.
enum class intake : std::uint8_t {
    codes,     ///< nothing: significands and exponents of the codes
    float32,   ///< dequantized to float32
    bfloat16,  ///< dequantized, and rounded to bfloat16 (to nearest even)
    halves,    ///< fp8 widened to f16; an instruction is two steps (multiply.cpp)
};

/// The steps of one instruction.
constexpr int steps_at_once(intake enters) { return enters == intake::halves ? 2 : 1; }

/// The operands that a model takes, as bits of a set.
enum operand_set : std::uint32_t {
    takes_f32 = 1u << 0,  ///< dequantized values as float32
    takes_tf32 = 1u << 1,
    takes_bf16 = 1u << 2,
    takes_f16 = 1u << 3,
    takes_fp8 = 1u << 4,   ///< e4m3, e5m2, mixed
    takes_fp6 = 1u << 5,   ///< e3m2, e2m3
    takes_fp4 = 1u << 6,   ///< e2m1
    takes_fnuz = 1u << 7,  ///< CDNA3's fp8 (no -0, one NaN)
};
inline constexpr std::uint32_t takes_everything = 0xffu;

/// The block scales that a model takes, as bits of a set; 0: none.
enum scale_set : std::uint32_t {
    scales_e8m0_32 = 1u << 0,
    scales_e8m0_16 = 1u << 1,
    scales_ue4m3_16 = 1u << 2,
};
inline constexpr std::uint32_t scales_everything = 0x7u;

/// The source of a row (docs/design/gemm.md).
enum class evidence : std::uint8_t {
    definition,    ///< not a model of hardware
    recorded,      ///< outputs recorded on the chip agree bit for bit
    published,     ///< a published model that its authors compared with the chip
    extrapolated,  ///< that model applied to what its authors did not compare
};

/// One accumulator model.
struct accumulator {
    std::string_view name;         ///< "sm100.mxf8f6f4": the chip comes first
    std::string_view instruction;  ///< "tcgen05.mma kind::mxf8f6f4"; empty for software
    algorithm how = algorithm::fused;
    intake enters = intake::codes;
    std::uint32_t operands = 0;  ///< operand_set
    std::uint32_t scales = 0;    ///< scale_set
    int fused_length = 0;        ///< L: products per step
    int group_length = 0;        ///< products per exact group (grouped)
    int fraction_bits = 0;       ///< F: kept below the alignment exponent
    int wide_fraction_bits = 0;  ///< F2: kept of the sum with the accumulator (two_sided)
    int exponent_floor = 0;      ///< the least alignment exponent
    conversion convert = conversion::rz_fp32;
    subnormal_alignment subnormals = subnormal_alignment::least_exponent;
    zero_sign zero = zero_sign::plus;       ///< of an exact zero
    zero_sign underflow = zero_sign::kept;  ///< of a sum that rounds to zero
    entry c = entry::term;
    int promote_every = 0;  ///< after so many k the sum is added to a float32 sum; 0: never
    evidence known_from = evidence::published;
    /// The operands (operand_set) that `known_from` covers; others are extrapolated.
    std::uint32_t compared = takes_everything;
    bool mixed_compared = true;  ///< whether it is about pairs of two formats as well
    std::string_view remark;     ///< what exactly the evidence is
};

}  // namespace mx::gemm
