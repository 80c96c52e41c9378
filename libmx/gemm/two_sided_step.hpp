// SPDX-License-Identifier: Apache-2.0
// The steps of CDNA3: products are aligned among themselves and the accumulator after them, with
// roundings toward minus infinity on the way. The models are TR-FDPA and GTR-FDPA of MMA-Sim
// (arXiv:2511.10909).
#pragma once

#include <cstdint>

#include "libmx/gemm/terms.hpp"

namespace mx::gemm {

/// Products cut off F bits below the largest exponent among them: sum * 2^(exponent - F).
struct aligned_products {
    std::int64_t sum = 0;
    int exponent = no_product;
    static constexpr int no_product = -4096;  ///< below every exponent
};

/// Adds every `stride`-th of the products from `first` on.
MX_HD inline aligned_products add_products(const step_rule& r, const factor* a, const factor* b,
                                           int first, int stride) {
    aligned_products s;
    for (int k = first; k < r.length; k += stride) {
        if (a[k].significand == 0 || b[k].significand == 0) continue;
        const int e = exponent_of(a[k], b[k]);
        s.exponent = e > s.exponent ? e : s.exponent;
    }
    for (int k = first; k < r.length; k += stride) {
        const std::int64_t p = product_of(a[k], b[k]);
        if (p == 0) continue;
        const int shift =
            r.fraction_bits - r.product_fraction_bits + exponent_of(a[k], b[k]) - s.exponent;
        s.sum += shifted_toward_zero(p, shift);
    }
    return s;
}

/// What the codes decide; with `overflows`, a product of 2^128 or more is Inf.
MX_HD inline special_terms specials_of(const step_rule& r, const factor* a, const factor* b,
                                       const factor& c, bool overflows) {
    special_terms special;
    special.add(c);
    for (int k = 0; k < r.length; ++k) {
        special.add(a[k], b[k]);
        const std::int64_t p = product_of(a[k], b[k]);
        if (!overflows || p == 0) continue;
        if (a[k].what != value_class::finite || b[k].what != value_class::finite) continue;
        const auto magnitude = static_cast<std::uint64_t>(p < 0 ? -p : p);
        const int lead = floor_log2_64(magnitude) - r.product_fraction_bits;
        if (lead + exponent_of(a[k], b[k]) >= 128) special.add_infinity(p < 0);
    }
    return special;
}

/// The sum of the products and the accumulator: the one kept to F2 + 1 bits and the other to F
/// bits below the larger exponent, the result to F2 bits below its own, all rounded down; then
/// converted. `far`: an accumulator more than F + 1 below the larger exponent is left out.
MX_HD inline std::uint32_t add_accumulator(const step_rule& r, const aligned_products& s,
                                           const factor& c, bool far) {
    const int floor_or_c = c.significand == 0 ? r.exponent_floor : int{c.exponent};
    const int top = s.exponent > floor_or_c ? s.exponent : floor_or_c;
    const int wide = r.wide_fraction_bits + 1;
    std::int64_t sum = shifted_down(s.sum, s.exponent - top + wide - r.fraction_bits);
    if (!far || c.exponent >= top - r.fraction_bits - 1) {
        const std::int64_t kept =
            shifted_down(c.significand, int{c.exponent} - top + r.fraction_bits -
                                            accumulator_fraction_bits(r.convert));
        sum += kept * (std::int64_t{1} << (wide - r.fraction_bits));
    }
    int unit = top - wide;
    if (sum != 0) {
        const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
        const int e = floor_log2_64(magnitude) + unit;
        const int drop =
            (e < r.exponent_floor ? r.exponent_floor : e) - r.wide_fraction_bits - unit;
        if (drop > 0) {
            sum = shifted_down(sum, -drop);
            unit += drop;
        }
    }
    return convert_sum(r, sum, unit, false);
}

/// CDNA3 f16, bf16 and xf32.
MX_HD inline std::uint32_t two_sided_step(const step_rule& r, const factor* a, const factor* b,
                                          std::uint32_t c) {
    const factor accumulated = unpack_accumulator(r.convert, c);
    const special_terms special = specials_of(r, a, b, accumulated, true);
    if (special.any()) return special.result(r.convert);
    return add_accumulator(r, add_products(r, a, b, 0, 1), accumulated, false);
}

/// CDNA3 fp8: even and odd k are summed apart and put together rounded down.
MX_HD inline std::uint32_t interleaved_step(const step_rule& r, const factor* a, const factor* b,
                                            std::uint32_t c) {
    const factor accumulated = unpack_accumulator(r.convert, c);
    const special_terms special = specials_of(r, a, b, accumulated, false);
    if (special.any()) return special.result(r.convert);
    const aligned_products even = add_products(r, a, b, 0, 2);
    const aligned_products odd = add_products(r, a, b, 1, 2);
    aligned_products both;
    both.exponent = even.exponent > odd.exponent ? even.exponent : odd.exponent;
    both.sum = shifted_down(even.sum, even.exponent - both.exponent) +
               shifted_down(odd.sum, odd.exponent - both.exponent);
    return add_accumulator(r, both, accumulated, true);
}

}  // namespace mx::gemm
