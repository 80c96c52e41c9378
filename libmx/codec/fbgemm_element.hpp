// SPDX-License-Identifier: Apache-2.0
// The element conversion of FBGEMM's CPU reference for MX4, step by step in its integer types
// (pytorch/FBGEMM@71d6f8b, py_quantize_mx4). It rounds half away from zero, with three quirks: in
// E3M0 the binade below the smallest value flushes to zero, since the test for a carry is that of
// one mantissa bit; shifts of 32 and more, which tiny values need, keep their low five bits (what
// x86 does; undefined in C), so that a few of them become 0.5 or 2; and exponents live in 8 bits.
#pragma once

#include <cstdint>

#include "libmx/base/bits.hpp"
#include "libmx/format/element_params.hpp"

namespace mx::codec {

/// The code of the float32 bits `y`, any value, in E2M1 or E3M0.
MX_HD inline std::uint32_t fbgemm_code(const format::element_params& f, std::uint32_t y) {
    const int exponent_bits = f.bits - 1 - f.mantissa_bits;
    const int kept = f.mantissa_bits + 1;  // with the implicit one
    const int bias = 1 - f.emin;
    const auto field = static_cast<int>(y >> 23 & 0xffu);
    const bool subnormal = field == 0;
    auto exponent = static_cast<std::int8_t>(field - 127 + bias);
    auto below = static_cast<std::int8_t>(exponent <= 0 ? 1 - exponent : 0);
    if (below > 24) below = 24;

    const std::uint32_t trailing = y & base::f32_mantissa_mask;
    const std::uint32_t significand = subnormal ? trailing : trailing + 0x00800000u;
    const int shift = (subnormal ? 23 : 24) + below - kept - 1;
    auto mantissa = static_cast<std::int8_t>(significand >> (shift & 31));
    mantissa = static_cast<std::int8_t>(static_cast<std::int8_t>(mantissa + 1) >> 1);

    const bool carry = mantissa > (1 << kept) - 1;
    if (carry && !subnormal) mantissa = static_cast<std::int8_t>(mantissa >> 1);
    if (exponent <= 0 && mantissa == 2) exponent = 1;
    int fraction = mantissa & ((1 << (kept - 1)) - 1);
    const auto raised = static_cast<std::int8_t>(exponent + (carry ? 1 : 0));
    const int largest = (1 << exponent_bits) - 1;
    if (raised > largest) fraction = 1;
    const int clamped = raised < 0 ? 0 : raised > largest ? largest : raised;
    const auto code = static_cast<std::uint32_t>(clamped << (kept - 1) | fraction);
    return code | (y >> 31) << (f.bits - 1);
}

}  // namespace mx::codec
