// SPDX-License-Identifier: Apache-2.0
// Exact numbers: rationals in definitions, integer multiples of a small unit in sums.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>

#include <cstdint>

namespace mx::oracle {

using rational = boost::multiprecision::cpp_rational;

/// In-place integers of up to 1024 bits. A sum of squares of the largest quantities of a block, in
/// squared ticks, needs less than 700 bits.
using integer = boost::multiprecision::number<
    boost::multiprecision::cpp_int_backend<1024, 1024, boost::multiprecision::signed_magnitude,
                                           boost::multiprecision::unchecked, void>,
    boost::multiprecision::et_off>;

/// The unit ("tick") is 2^tick_exponent. Every float32 is a multiple of 2^-149, every binary16 of
/// 2^-24, and the smallest scale times the smallest element quantum is 2^-149 * 2^-9 * 2^-16. So
/// all quantities of a block, and halves of them, are integers in ticks.
inline constexpr int tick_exponent = -180;

/// 2^e for any e.
rational power_of_two(int e);

/// 2^e in ticks, e >= tick_exponent.
integer ticks_of_power(int e);

/// The finite float32 `x` in ticks; exact.
integer ticks_of(float x);

/// The value of `ticks` ticks.
rational value_of_ticks(const integer& ticks);

/// The finite float32 `x`; exact.
rational exact(float x);

/// floor(log2(a/b)) for a, b > 0: the largest k with 2^k * b <= a.
int floor_log2(const integer& a, const integer& b);

/// ceil(log2(a/b)) for a, b > 0: the smallest k with 2^k * b >= a.
int ceil_log2(const integer& a, const integer& b);

/// floor(log2(a/b) + 1/2) for a, b > 0: the largest k with 2^(k - 1/2) * b <= a.
int nearest_log2(const integer& a, const integer& b);

/// `ticks` rounded to the nearest multiple of 2^least_exponent with at most `precision` significant
/// bits, ties to the even significand. Exponents are unbounded above.
integer nearest_even(const integer& ticks, int precision, int least_exponent);

/// The float32 nearest to `ticks` (ties to even; Inf from 2^128 - 2^103 on). A zero result has the
/// sign of `ticks`, or `negative_zero` if `ticks` is zero.
float nearest_f32(const integer& ticks, bool negative_zero);

/// The double nearest to n * 2^exponent (ties to even), which must be in the range of normal
/// doubles.
double nearest_f64(const integer& n, int exponent);

/// The binary16 bits nearest to `x` (ties to even), saturated to +-65504; zeros keep the sign of x.
std::uint16_t nearest_half_saturated(float x);

/// The value of finite binary16 bits.
float value_of_half(std::uint16_t bits);

// Floating-point arithmetic from its definition, the exact result rounded once, for dialects that
// are defined by their arithmetic. Rounding never uses the machine's floating-point unit.

/// A binary floating-point format no wider than float32; its values are held in floats.
struct float_kind {
    int precision;       ///< significant bits
    int least_exponent;  ///< the smallest positive value is 2^least_exponent
    int end_exponent;    ///< what rounds to 2^end_exponent or more is infinite
};

inline constexpr float_kind f32{24, -149, 128};
inline constexpr float_kind bf16{8, -133, 128};

/// numerator/denominator (numerator >= 0, denominator > 0) to nearest, ties to even; `negative` is
/// the sign of the result.
float nearest(const float_kind& kind, const integer& numerator, const integer& denominator,
              bool negative);

/// IEEE 754 operations, to nearest, ties to even, including NaN and infinities. Operands must be
/// values of the format.
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
