// SPDX-License-Identifier: Apache-2.0
// What the steps of all models do to their terms: look for NaN and Inf, and shift.
#pragma once

#include <cstdint>

#include "libmx/gemm/convert_sum.hpp"
#include "libmx/gemm/factor.hpp"

namespace mx::gemm {

/// What the codes alone decide, before any arithmetic.
struct special_terms {
    bool nan = false;
    bool plus_infinity = false;
    bool minus_infinity = false;

    MX_HD void add_infinity(bool negative) {
        plus_infinity = plus_infinity || !negative;
        minus_infinity = minus_infinity || negative;
    }
    /// One product.
    MX_HD void add(const factor& a, const factor& b) {
        if (a.what == value_class::finite && b.what == value_class::finite) return;
        const bool any_nan = a.what == value_class::nan || b.what == value_class::nan;
        if (any_nan || a.significand == 0 || b.significand == 0) {
            nan = true;
        } else {
            add_infinity(a.negative != b.negative);
        }
    }
    /// The accumulator.
    MX_HD void add(const factor& c) {
        if (c.what == value_class::nan) nan = true;
        if (c.what == value_class::infinite) add_infinity(c.negative);
    }
    MX_HD bool any() const { return nan || plus_infinity || minus_infinity; }
    MX_HD std::uint32_t result(conversion c) const {
        if (nan || (plus_infinity && minus_infinity)) return canonical_nan(c);
        return infinity_bits(target_of(c), minus_infinity);
    }
};

/// term * 2^shift as an integer, toward zero. Zero may be shifted by anything.
MX_HD inline std::int64_t shifted_toward_zero(std::int64_t term, int shift) {
    if (term == 0) return 0;
    if (shift >= 0) return term * (std::int64_t{1} << shift);
    if (shift < -62) return 0;
    // A negative term is raised by what the shift would take it down too far.
    const std::int64_t cut = (std::int64_t{1} << -shift) - 1;
    return (term + ((term >> 63) & cut)) >> -shift;
}

/// term * 2^shift as an integer, toward minus infinity. Zero may be shifted by anything.
MX_HD inline std::int64_t shifted_down(std::int64_t term, int shift) {
    if (term == 0) return 0;
    if (shift >= 0) return term * (std::int64_t{1} << shift);
    return term >> (shift < -63 ? 63 : -shift);
}

MX_HD inline std::int64_t product_of(const factor& a, const factor& b) {
    return std::int64_t{a.significand} * b.significand;
}
MX_HD inline int exponent_of(const factor& a, const factor& b) {
    return int{a.exponent} + int{b.exponent};
}

}  // namespace mx::gemm
