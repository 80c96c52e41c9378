// SPDX-License-Identifier: Apache-2.0
// The step of the 4-bit block-scaled kinds: groups of products are added exactly, and only the
// groups are aligned, by their scales alone.
#pragma once

#include <cstdint>

#include "libmx/gemm/terms.hpp"

namespace mx::gemm {

/// The exact sum of a group's products, as a multiple of 2^(least exponents - fraction bits) of the
/// two formats, and whether any of them is not zero: a group that cancels still raises the
/// alignment.
struct group_sum {
    std::int64_t sum = 0;
    bool live = false;
};
MX_HD inline group_sum add_group(const factor* a, const factor* b, int length, int least_exponent,
                                 bool& minus_zeros) {
    group_sum g;
    for (int k = 0; k < length; ++k) {
        const std::int64_t p = product_of(a[k], b[k]);
        if (p == 0) {
            minus_zeros = minus_zeros && a[k].negative != b[k].negative;
            continue;
        }
        g.live = true;
        g.sum += p * (std::int64_t{1} << (exponent_of(a[k], b[k]) - least_exponent));
    }
    return g;
}

/// The accumulator `c` after groups whose sums are `sum_of(g)`, asked for twice; `minus_zeros` is
/// then whether every product is -0.
template <typename Sums>
MX_HD inline std::uint32_t step_of_groups(const step_rule& r, int groups, int least_exponent,
                                          const scale_factor* sa, const scale_factor* sb,
                                          std::uint32_t c, bool& minus_zeros, Sums sum_of) {
    const factor accumulated = unpack_accumulator(r.convert, c);
    special_terms special;
    special.add(accumulated);
    for (int g = 0; g < groups; ++g) special.nan = special.nan || sa[g].nan || sb[g].nan;
    if (special.any()) return special.result(r.convert);

    int top = r.exponent_floor;
    if (accumulated.significand != 0 && accumulated.exponent > top) top = accumulated.exponent;
    for (int g = 0; g < groups; ++g) {
        const bool dot = sum_of(g).live;
        const int e = int{sa[g].exponent} + int{sb[g].exponent};
        const bool live = dot && sa[g].significand != 0 && sb[g].significand != 0;
        if (live && e > top) top = e;
        minus_zeros = minus_zeros && !dot;
    }
    minus_zeros = minus_zeros && accumulated.significand == 0 && accumulated.negative;
    const int unit = top - r.fraction_bits;
    std::int64_t sum =
        shifted_toward_zero(accumulated.significand,
                            accumulated.exponent - accumulator_fraction_bits(r.convert) - unit);
    for (int g = 0; g < groups; ++g) {
        const std::int64_t term = sum_of(g).sum * sa[g].significand * sb[g].significand;
        if (term == 0) continue;
        const int lowest =
            int{sa[g].exponent} + int{sb[g].exponent} + least_exponent - r.product_fraction_bits;
        sum += shifted_toward_zero(term, lowest - unit);
    }
    return convert_sum(r, sum, unit, minus_zeros);
}

/// A step of L products in groups; sa[g] and sb[g] are the scales of group g. Elements have no
/// NaN and no Inf, and their exponents take no part in the alignment. `least_exponent` is the sum
/// of the two formats' least exponents.
MX_HD inline std::uint32_t grouped_step(const step_rule& r, int least_exponent, const factor* a,
                                        const factor* b, const scale_factor* sa,
                                        const scale_factor* sb, std::uint32_t c) {
    bool minus_zeros = true;
    return step_of_groups(
        r, r.length / r.group_length, least_exponent, sa, sb, c, minus_zeros, [&](int g) {
            const int at = g * r.group_length;
            return add_group(a + at, b + at, r.group_length, least_exponent, minus_zeros);
        });
}

}  // namespace mx::gemm
