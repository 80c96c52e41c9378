// SPDX-License-Identifier: Apache-2.0
// Exact numbers of the oracle: rationals for statements, integer counts of one tiny unit where
// there is much to add.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>

#include <cstdint>

namespace mx::oracle {

using rational = boost::multiprecision::cpp_rational;

/// Integers of up to 1024 bits held in place: a sum of squares of the largest quantities of a
/// block, in squared ticks, takes less than 700.
using integer = boost::multiprecision::number<
    boost::multiprecision::cpp_int_backend<1024, 1024, boost::multiprecision::signed_magnitude,
                                           boost::multiprecision::unchecked, void>,
    boost::multiprecision::et_off>;

/// The unit ("tick") is 2^tick_exponent. Every float32 is a multiple of 2^-149, every binary16 one
/// of 2^-24, and the smallest scale times the smallest element quantum is 2^-149 * 2^-9 * 2^-16, so
/// all quantities of a block are whole numbers of ticks; the rest is room for halves of them.
inline constexpr int tick_exponent = -180;

/// 2^e, e of either sign.
rational power_of_two(int e);

/// 2^e in ticks, e >= tick_exponent.
integer ticks_of_power(int e);

/// The finite float32 `x` in ticks, exactly.
integer ticks_of(float x);

/// The value of a number of ticks.
rational value_of_ticks(const integer& ticks);

/// The finite float32 `x` exactly.
rational exact(float x);

/// floor(log2(a/b)) for a, b > 0: the largest k with 2^k * b <= a.
int floor_log2(const integer& a, const integer& b);

/// ceil(log2(a/b)) for a, b > 0: the smallest k with 2^k * b >= a.
int ceil_log2(const integer& a, const integer& b);

/// floor(log2(a/b) + 1/2) for a, b > 0: the largest k with 2^(k - 1/2) * b <= a.
int nearest_log2(const integer& a, const integer& b);

/// `ticks` rounded to the nearest number of at most `precision` significant bits that is a multiple
/// of 2^least_exponent, ties to the even significand, exponents unbounded above.
integer nearest_even(const integer& ticks, int precision, int least_exponent);

/// The float32 nearest to `ticks` (ties to even; Inf from 2^128 - 2^103 on). A zero result takes
/// the sign `negative_zero` when `ticks` is zero, and the sign of `ticks` otherwise.
float nearest_f32(const integer& ticks, bool negative_zero);

/// binary16 bits of the value nearest to `x` (ties to even), saturated to +-65504; zeros keep the
/// sign of x.
std::uint16_t nearest_half_saturated(float x);

/// The value of finite binary16 bits.
float value_of_half(std::uint16_t bits);

}  // namespace mx::oracle
