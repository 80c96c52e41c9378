// SPDX-License-Identifier: Apache-2.0
// Floating-point arithmetic from its definition, the exact result rounded once, for dialects that
// are defined by the arithmetic they run on. No operation of the machine rounds anything here.
#pragma once

#include "libmx/oracle/number.hpp"

namespace mx::oracle {

/// A binary floating-point format as wide as float32 or narrower, whose values are held in floats.
struct float_kind {
    int precision;       ///< significant bits
    int least_exponent;  ///< the smallest positive value is 2^least_exponent
    int end_exponent;    ///< what rounds to 2^end_exponent or more is infinite
};

inline constexpr float_kind f32{24, -149, 128};
inline constexpr float_kind bf16{8, -133, 128};

/// numerator/denominator (neither negative, denominator > 0) to nearest, ties to even; `negative`
/// is the sign of the result.
float nearest(const float_kind& kind, const integer& numerator, const integer& denominator,
              bool negative);

/// IEEE 754 operations: to nearest, ties to even; NaN and infinities as there. Operands are values
/// of the format.
float add(const float_kind& kind, float a, float b);
float subtract(const float_kind& kind, float a, float b);
float multiply(const float_kind& kind, float a, float b);
float divide(const float_kind& kind, float a, float b);

/// `x` rounded to the format.
float to(const float_kind& kind, float x);

/// 2^e for any e: zero below the format's range, infinite above.
float power_of_two_in(const float_kind& kind, int e);

/// log2(x) correctly rounded to the format, x >= 0: -Inf of zero, Inf of Inf, NaN of NaN.
float log2_in(const float_kind& kind, float x);

}  // namespace mx::oracle
