// SPDX-License-Identifier: Apache-2.0
// The behaviours in which implementations of one block format differ: each an enumeration whose
// words are what the tables print. A dialect is one value of each (dialects.hpp); the kernels of
// dialect_scale.hpp and dialect_element.hpp obey them. Background: docs/design/dialects.md.
#pragma once

#include <cstdint>

namespace mx::codec {

/// How well a behaviour is known.
enum class evidence : char {
    run = 'R',          ///< seen by running the implementation; its vectors are in the tests
    transcribed = 'T',  ///< its logic transcribed into a program and run
    source = 'S',       ///< read in its source
    documents = 'D',    ///< from a specification, a paper or documentation
    choice = 'C',       ///< undefined there; what we chose
};

/// How log2 of the block maximum is formed where a rule asks for its floor or ceiling.
enum class log2_kind : std::uint8_t {
    exact,     ///< exponent bits: never misrounds
    float32,   ///< correctly rounded float32 log2: off by one next to powers of two
    bfloat16,  ///< rounded to bfloat16
};

/// What `scale=even` rounds, and where ties and carries go.
enum class even_kind : std::uint8_t {
    element,         ///< at the element's precision, ties to even; 2^128 gives NaN
    element_capped,  ///< the same, 2^128 gives the largest scale
    fbgemm,          ///< half less one is added to the bits: ties toward the smaller scale
    one_bit,         ///< at one mantissa bit for every element format
};

/// What the rules subtract from the exponent of the maximum.
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
};

/// What a NaN in the block does to its scale.
enum class nan_amax : std::uint8_t {
    nan,      ///< code 255: the block is NaN
    ignored,  ///< the maximum is that of the other elements
    zero,     ///< code 0
};

/// The scale of a block of zeros.
enum class zero_block : std::uint8_t {
    code_0,       ///< 2^-127
    tiny_amax,    ///< as if the maximum were 2^-126 (code 1 where emax is 0)
    f32_epsilon,  ///< 2^-23, and so for every scale that underflows
    as_1e_8,      ///< as if the maximum were 1e-8
};

/// What holds the scale.
enum class scale_storage : std::uint8_t {
    code,     ///< an E8M0 byte
    float32,  ///< a float32, not clamped to the range of E8M0
};

/// How an element is found.
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

/// An infinite element, where the scale does not decide.
enum class inf_element : std::uint8_t {
    saturate,  ///< the largest value of its sign
    special,   ///< NaN (E4M3) or Inf (E5M2) also when saturating; the largest value elsewhere
    keep,      ///< stays Inf in the result, which has no code for it
};

/// A NaN element, where the scale does not decide.
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

/// Which convention of two-level scaling (NVFP4) is followed.
enum class two_level_kind : std::uint8_t {
    exact,               ///< exact quotients, each rounded once
    torchao,             ///< block scales clamped to at least 2^-6
    te,                  ///< the reciprocal of the tensor scale is what is stored
    ggml,                ///< half-away block scales, no tensor scale
    modelopt,            ///< a zero block scale becomes 1
    compressed_tensors,  ///< global scale 2688/amax
    none,                ///< not offered
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

}  // namespace mx::codec
