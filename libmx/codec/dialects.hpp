// SPDX-License-Identifier: Apache-2.0
// THE LIST of dialects: whose exact behaviour a recipe follows (`dialect=`).
//
// A row states each behaviour with the evidence for it. What a dialect cannot do is not in its
// lists of rules, roundings and elements; the first rule and the first rounding are its defaults.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace mx::codec {

// The behaviours in which implementations of a block format differ: each an enumeration whose names
// appear in the tables. A dialect has one value of each (dialects.hpp), and the kernels of
// dialect_scale.hpp and convert_element.hpp implement them. Background: docs/design/dialects.md.

/// The evidence for a behaviour.
enum class evidence : char {
    run = 'R',          ///< seen by running the implementation; its vectors are in the tests
    transcribed = 'T',  ///< its logic transcribed into a program and run
    source = 'S',       ///< read in its source
    documents = 'D',    ///< from a specification, a paper or documentation
    choice = 'C',       ///< undefined there; what we chose
};

/// How log2 of the block maximum is computed if a rule needs its floor or ceiling.
enum class log2_kind : std::uint8_t {
    exact,     ///< exponent bits: never misrounds
    float32,   ///< correctly rounded float32 log2: off by one next to powers of two
    bfloat16,  ///< rounded to bfloat16
};

/// What `scale=even` rounds, and how ties and carries are handled.
enum class even_kind : std::uint8_t {
    element,         ///< at the element's precision, ties to even; 2^128 is as an Inf in the block
    element_capped,  ///< the same, 2^128 gives the largest scale
    fbgemm,          ///< half less one is added to the bits: ties toward the smaller scale
    one_bit,         ///< at one mantissa bit for every element format
};

/// The value that rules subtract from the exponent of the maximum.
enum class emax_kind : std::uint8_t {
    format,         ///< the exponent of the largest element
    exponent_bits,  ///< the number of exponent bits of the element format
};

/// How `scale=rceil` finds ceil(log2(amax / max)).
enum class rceil_kind : std::uint8_t {
    exact,       ///< by comparing mantissas
    reciprocal,  ///< float32 amax * (1/max), then the exponent rounded up
    quotient,    ///< float32 amax / max, then the exponent rounded up
    log2,        ///< ceil of the float32 log2 of the float32 quotient
};

/// The scale of a block whose maximum is infinite.
enum class inf_amax : std::uint8_t {
    nan,         ///< code 255: the block is NaN
    saturate,    ///< code 254
    clamp_252,   ///< 2^125, code 252
    keep,        ///< the scale is Inf
    zero,        ///< code 0
    finite_max,  ///< as if the maximum were the largest float32
    power_128,   ///< as if the maximum were 2^128; code 254 under rceil
};

/// The effect of a NaN in the block on its scale.
enum class nan_amax : std::uint8_t {
    nan,        ///< code 255: the block is NaN
    ignored,    ///< the maximum is that of the other elements
    zero,       ///< code 0
    nan_alone,  ///< code 255; except under rceil, finite elements have the codes of zeros
};

/// The scale of a block of zeros.
enum class zero_block : std::uint8_t {
    code_0,       ///< 2^-127
    tiny_amax,    ///< as if the maximum were 2^-126 (code 1 where emax is 0)
    f32_epsilon,  ///< 2^-23, and so for every scale that underflows
    as_1e_8,      ///< as if the maximum were 1e-8
};

/// What divides the elements of a block with scale code 0.
enum class code_0_divisor : std::uint8_t {
    scale,            ///< 2^-127
    one,              ///< 1: they are not scaled
    smallest_normal,  ///< 2^-126, the smallest normal float32; 1 under rceil
};

/// The type that stores the scale.
enum class scale_storage : std::uint8_t {
    code,     ///< an E8M0 byte
    float32,  ///< a float32, not clamped to the range of E8M0
};

/// How an element is computed.
enum class element_kind : std::uint8_t {
    exact,          ///< the rounded exact quotient
    microxcaling,   ///< float32 arithmetic: floor(|y| * 2^-e + 1/2), e from a float32 log2
    bfloat16,       ///< the same in bfloat16 arithmetic
    fraction_even,  ///< the fraction above the leading power of two to nearest even
    fbgemm,         ///< integer shifts in narrow types: quirks of E3M0 and of tiny values
};

/// The sign of a zero result.
enum class zero_sign : std::uint8_t {
    kept,         ///< that of the input
    plus,         ///< always +0
    input_minus,  ///< -0 for a zero input, the input's sign on underflow
    input_plus,   ///< +0 for a zero input, the input's sign on underflow
};

/// The result for an infinite element, unless the scale decides it.
enum class inf_element : std::uint8_t {
    saturate,  ///< the largest value of its sign
    special,   ///< NaN (E4M3) or Inf (E5M2) also when saturating; the largest value elsewhere
    keep,      ///< stays Inf in the result, which has no code for it
};

/// The result for a NaN element, unless the scale decides it.
enum class nan_element : std::uint8_t {
    nan_or_max,    ///< positive NaN code, +max where there is none
    nan_or_zero,   ///< NaN code, a zero of the opposite sign where there is none
    nan_or_inner,  ///< NaN code; elsewhere what the payload leaves (the code of 1.5)
    keep,          ///< stays NaN in the result, which has no code for it
    zero,          ///< a zero, of the sign that a zero input gets
};

/// How stochastic rounding uses its k random bits.
enum class stochastic_kind : std::uint8_t {
    canonical,       ///< up iff floor(delta * 2^k) + r >= 2^k
    rounded_delta,   ///< the same with delta rounded to k bits first
    add_then_round,  ///< 23 - m random bits added to the mantissa, then rounded half away: biased
    none,            ///< not offered
};

/// The convention of two-level scaling (NVFP4).
enum class two_level_kind : std::uint8_t {
    exact,               ///< exact quotients, each rounded once
    torchao,             ///< block scales clamped to at least 2^-6
    torchao_divides,     ///< the same; x is divided by the product of the scales
    te,                  ///< the reciprocal of the tensor scale is what is stored
    ggml,                ///< half-away block scales, no tensor scale
    modelopt,            ///< a zero block scale becomes 1
    compressed_tensors,  ///< global scale 2688/amax
    none,                ///< not offered
    quark,               ///< no outer scale; 2^-23 for a zero, NaN gives 98304
    alto,                ///< block scales clamped to the smallest value, or to 2^-6 in E4M3
};

/// The E8M0 conversion of a float32 (conversions without a block).
enum class e8m0_cast : std::uint8_t {
    up,          ///< to the next power of two up, saturating at 254, Inf included
    up_inf_nan,  ///< the same, Inf gives 255
    up_nan,      ///< up; beyond 2^127 gives 255
    nearest,     ///< of positive numbers to the nearest power of two, halfway up; others to NaN
    none,        ///< not offered
};

/// The integer minimum under `int_min` unless the recipe says otherwise.
enum class int_range : std::uint8_t {
    ocp,        ///< full for int8, symmetric for other integers
    symmetric,  ///< -(2^(n-1)-1) for all
};

/// A behaviour and its evidence.
template <typename T>
struct known {
    T value;
    evidence mark;
};

enum class dialect_id : std::uint8_t {
    ocp,
    microxcaling,
    microxcaling_bf16,
    microxcaling_native,
    torchao,
    torchao_0_18,
    torchao_0_15,
    te,
    nvidia,
    fbgemm,
    ggml,
    modelopt,
    quark,
    compressed_tensors,
    tetrajet,
    amd_hip,
    systems_scaling,
    gfloat,
    ml_dtypes,
    cutlass,
    alto,
};

/// One row for each version whose bits are known: the newest has the implementation's name, older
/// ones NAME@VERSION, where VERSION is the release that was run.
struct dialect {
    dialect_id id;
    std::string_view name;
    std::string_view summary;
    std::string_view source;  ///< owner/name@commit, or the document
    std::string_view
        version{};  ///< the release that was looked at, "" where only a commit is known
    std::string_view verified_by;  ///< what was run against vectors, and what was only read
    bool blocks;                   ///< false: conversions of single values only
    std::string_view rules;        ///< scale rules it has, separated by spaces, default first
    std::string_view roundings;    ///< element roundings it has, default first
    std::string_view elements;     ///< element formats it has; empty: all
    std::string_view two_level_roundings{};   ///< with number scales, where they differ
    std::string_view float_scales = "ue4m3";  ///< scale formats of two-level and single-level

    known<log2_kind> log2;
    known<even_kind> even;
    known<emax_kind> emax;
    known<rceil_kind> rceil;
    known<inf_amax> inf;
    known<nan_amax> nan;
    known<zero_block> zero;
    known<scale_storage> storage;
    known<element_kind> arithmetic;
    known<zero_sign> sign_of_zero;
    known<inf_element> inf_value;
    known<nan_element> nan_value;
    known<stochastic_kind> stochastic;
    known<int_range> integers;
    known<two_level_kind> two_level;
    known<e8m0_cast> e8m0;
    /// The largest E4M3 value: 448 (0x7E), or 480 when the NaN code is a number.
    known<bool> e4m3_reaches_480;
    /// A finite value beyond the largest one becomes NaN in E4M3 even when saturating.
    known<bool> e4m3_overflow_is_nan;
    /// A scale code out of range keeps its low byte (a cast that is undefined in C; observed on
    /// x86).
    known<bool> low_byte_of_code;
    known<code_0_divisor> at_code_0;
    /// Random bits of stochastic rounding unless the recipe says otherwise; 0: 23 - m.
    known<int> random_bits;
};

/// Every dialect, ocp first.
std::span<const dialect> dialects();

/// The row of `id`.
const dialect& row_of(dialect_id id);

/// The row named `name`, or nullptr. NAME@VERSION also accepts the full release number or, for the
/// newest row, its commit.
const dialect* find_dialect(std::string_view name);

/// The name without a version: that of the newest row.
std::string_view family_of(const dialect& d);

/// Whether `word` is one of the words of `list` (separated by spaces).
bool lists(std::string_view list, std::string_view word);

/// The first word of `list`.
std::string_view first_of(std::string_view list);

}  // namespace mx::codec
