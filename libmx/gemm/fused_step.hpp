// SPDX-License-Identifier: Apache-2.0
// One fused step, in integers: every product and the accumulator are shifted to the largest
// exponent among them, cut off there, added exactly and converted once. The model is the fused dot
// product of MMA-Sim (arXiv:2511.10909); the parameters are the rows of accumulators.cpp.
#pragma once

#include <cstdint>

#include "libmx/gemm/terms.hpp"

namespace mx::gemm {

/// L products and the accumulator `c` (bits as r.convert gives them). Power-of-two block scales are
/// part of the factors' exponents. 2^(F+2) bounds a term, so L terms fit 64 bits up to F = 48 and
/// L = 1024 (validate() in accumulators.hpp).
MX_HD inline std::uint32_t fused_step(const step_rule& r, const factor* a, const factor* b,
                                      std::uint32_t c) {
    const factor accumulated = unpack_accumulator(r.convert, c);
    special_terms special;
    special.add(accumulated);
    int top = r.exponent_floor;
    if (accumulated.significand != 0 && accumulated.exponent > top) top = accumulated.exponent;
    bool minus_zeros = accumulated.significand == 0 && accumulated.negative;
    for (int k = 0; k < r.length; ++k) {
        special.add(a[k], b[k]);
        if (a[k].significand != 0 && b[k].significand != 0) {
            const int e = exponent_of(a[k], b[k]);
            top = e > top ? e : top;
            minus_zeros = false;
        } else {
            minus_zeros = minus_zeros && a[k].negative != b[k].negative;
        }
    }
    if (special.any()) return special.result(r.convert);
    const int unit = top - r.fraction_bits;  // every term is a multiple of 2^unit
    std::int64_t sum =
        shifted_toward_zero(accumulated.significand,
                            accumulated.exponent - accumulator_fraction_bits(r.convert) - unit);
    for (int k = 0; k < r.length; ++k) {
        const std::int64_t p = product_of(a[k], b[k]);
        if (p == 0) continue;  // its exponent may be above `top`
        const int lowest = exponent_of(a[k], b[k]) - r.product_fraction_bits;
        sum += shifted_toward_zero(p, lowest - unit);
    }
    return convert_sum(r, sum, unit, minus_zeros);
}

}  // namespace mx::gemm
