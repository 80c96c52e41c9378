// SPDX-License-Identifier: Apache-2.0
// One step of any model that has steps, for host and device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libmx/gemm/operand.hpp"
#include "libmx/gemm/terms.hpp"
#include "libmx/gemm/unpacked_operand.hpp"

namespace mx::gemm {

// One fused step in integers: every product and the accumulator are shifted to the largest exponent
// among them, truncated there, added exactly and converted once. The model is the fused dot product
// of MMA-Sim (arXiv:2511.10909); the parameters are the rows of accumulators.cpp.

/// L products and the accumulator `c` (bits as r.convert gives them). Power-of-two block scales are
/// part of the factors' exponents. 2^(F+2) bounds a term, so L terms fit 64 bits up to F = 48 and
/// L = 1024 (validate() in accumulators.hpp). a[k] and b[k] are factors.
template <typename Row>
MX_HD inline std::uint32_t fused_step(const step_rule& r, const Row& a, const Row& b,
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

// A step of the 4-bit block-scaled kinds: the products of a group are added exactly; groups are
// aligned by their scales alone.

/// The exact sum of a group's products, as a multiple of 2^(smallest exponents - fraction bits) of
/// the two formats, and whether any of them is not zero: a group that cancels still raises the
/// alignment exponent.
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

/// The accumulator `c` after groups with the sums `sum_of(g)`, which is called twice; `minus_zeros`
/// then tells whether every product is -0.
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

/// A step of L products in groups; sa[g] and sb[g] are the scales of group g. Elements are never
/// NaN or Inf, and their exponents do not affect the alignment. `least_exponent` is the sum of the
/// two formats' smallest exponents.
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

// The steps of CDNA3: products are aligned among themselves and then with the accumulator, with
// intermediate roundings toward minus infinity. The models are TR-FDPA and GTR-FDPA of MMA-Sim
// (arXiv:2511.10909).

/// Products truncated F bits below the largest exponent among them: sum * 2^(exponent - F).
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

/// Special cases determined by the codes; with `overflows`, a product of 2^128 or more is Inf.
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

/// The sum of the products plus the accumulator: below the larger exponent, the sum is kept to
/// F2 + 1 bits and the accumulator to F bits; the result is kept to F2 bits below its own exponent.
/// All are rounded down; then the result is converted. `far`: an accumulator more than F + 1 below
/// the larger exponent is dropped.
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

/// CDNA3 fp8: even and odd k are summed separately; their sums are added and rounded down.
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

/// Parameters common to all steps of a product.
struct step_kind {
    algorithm how;
    step_rule rule;
    int least_exponent;             ///< see grouped_step
    int element_fraction_bits = 0;  ///< of products of elements, scales left out
};

inline step_kind kind_of(const operand& a, const operand& b, const accumulator& m) {
    step_kind k{m.how, rule_of(m, fraction_bits_of(a) + fraction_bits_of(b)),
                a.format->least_exponent() + b.format->least_exponent(),
                a.format->mantissa_bits + b.format->mantissa_bits};
    // Normalized subnormals have exponents down to that of the lowest bit.
    if (m.subnormals == subnormal_alignment::leading_bit) {
        k.least_exponent -= a.format->mantissa_bits + b.format->mantissa_bits;
    }
    return k;
}

/// Number of scales of one operand per step; 0 if they are part of the factors.
MX_HD inline std::size_t groups_of(const step_kind& s) {
    return s.how == algorithm::grouped
               ? static_cast<std::size_t>(s.rule.length / s.rule.group_length)
               : 0;
}

/// The accumulator after a step with rule.length factors and groups_of scales of each operand.
MX_HD inline std::uint32_t one_step(const step_kind& s, const factor* a, const factor* b,
                                    const scale_factor* sa, const scale_factor* sb,
                                    std::uint32_t c) {
    if (s.how == algorithm::grouped) return grouped_step(s.rule, s.least_exponent, a, b, sa, sb, c);
    if (s.how == algorithm::two_sided) return two_sided_step(s.rule, a, b, c);
    if (s.how == algorithm::interleaved) return interleaved_step(s.rule, a, b, c);
    return fused_step(s.rule, a, b, c);
}

}  // namespace mx::gemm
