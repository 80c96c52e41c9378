// SPDX-License-Identifier: Apache-2.0
// Fused steps whose terms are exact dot products of groups of sixteen e2m1 elements. One source,
// compiled per instruction set.
//
// Elements are integers in units of 1/2, products in units of 1/4: a group's sum is below 16 * 144
// and fits in 16 bits. Multiplied by two scales it has 20 bits, which float64 represents with any
// exponent.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/gemm/simd/grouped.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "libmx/base/bits.hpp"
#include "libmx/gemm/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET
#include "libmx/gemm/simd/step.inc"

namespace mx::gemm::simd::HWY_NAMESPACE {
namespace {

constexpr std::size_t group_length = 16;
constexpr std::size_t most_groups = 4;

// The dot products of one group.
HWY_INLINE shorts dot(const std::int16_t* a, const std::int16_t* b) {
    const short_tag d;
    shorts even = hn::Mul(hn::Set(d, a[0]), hn::LoadU(d, b));
    shorts odd = hn::Mul(hn::Set(d, a[1]), hn::LoadU(d, b + panel_lanes));
    for (std::size_t k = 2; k < group_length; k += 2) {
        even = hn::Add(even, hn::Mul(hn::Set(d, a[k]), hn::LoadU(d, b + k * panel_lanes)));
        odd = hn::Add(odd, hn::Mul(hn::Set(d, a[k + 1]), hn::LoadU(d, b + (k + 1) * panel_lanes)));
    }
    return hn::Add(even, odd);
}

// The groups of one step in a row and a vector of columns.
struct group_step {
    const panel_tile* t;
    std::size_t row, step, column, groups;

    // The largest exponent of the scales of a live group, that is one with a non-zero product.
    HWY_INLINE shorts top_exponent() const {
        const short_tag d;
        const std::uint16_t* const a_is = t->a->nonzero(row, step);
        const std::uint16_t* const b_is = t->b->nonzero(t->column_group, step) + column;
        const std::int16_t* const a_at = t->a->scale_exponents(row, step);
        const std::int16_t* const b_at = t->b->scale_exponents(t->column_group, step) + column;
        shorts top = hn::Set(d, no_exponent);
        for (std::size_t g = 0; g < groups; ++g) {
            const auto both = hn::And(hn::Set(d, static_cast<std::int16_t>(a_is[g])),
                                      hn::BitCast(d, hn::LoadU(hn::RebindToUnsigned<short_tag>(),
                                                               b_is + g * panel_lanes)));
            const auto at = hn::Add(hn::Set(d, a_at[g]), hn::LoadU(d, b_at + g * panel_lanes));
            const auto dead = hn::Eq(both, hn::Zero(d));
            top = hn::Max(top, hn::IfThenElse(dead, hn::Set(d, no_exponent), at));
        }
        return top;
    }

    // The sum of the truncated terms. `up`: biased exponents that scale quarters to terms.
    HWY_INLINE void add(ints up_lower, ints up_upper, doubles* sums) const {
        const double_tag d;
        const std::int16_t* const a = t->a->integers(row, step);
        const std::int16_t* const b = t->b->integers(t->column_group, step) + column;
        const double* const a_scale = t->a->scale_values(row, step);
        const double* const b_scale = t->b->scale_values(t->column_group, step) + column;
        const doubles power[4] = {power_of(lower_long(up_lower)), power_of(upper_long(up_lower)),
                                  power_of(lower_long(up_upper)), power_of(upper_long(up_upper))};
        for (std::size_t g = 0; g < groups; ++g) {
            const shorts p = dot(a + g * group_length, b + g * group_length * panel_lanes);
            const ints p_lower = lower(p);
            const ints p_upper = upper(p);
            const doubles quarters[4] = {lower(p_lower), upper(p_lower), lower(p_upper),
                                         upper(p_upper)};
            const doubles x = hn::Set(d, a_scale[g]);
            for (std::size_t i = 0; i < 4; ++i) {
                const doubles y = hn::LoadU(d, b_scale + g * panel_lanes + i * double_lanes);
                const doubles term = hn::Mul(quarters[i], hn::Mul(y, hn::Mul(x, power[i])));
                sums[i] = hn::Add(sums[i], hn::Trunc(term));
            }
        }
    }
};

HWY_INLINE void one_step(const vector_rule& r, float* acc, const group_step& p) {
    const panel_tile& t = *p.t;
    entering c(acc);
    if (HWY_UNLIKELY(t.a->special(p.row, p.step) || t.b->special(t.column_group, p.step))) {
        float addends[panel_lanes];
        special_addends(t, p.row, p.step, addends);
        c.add(addends + p.column);
    }
    const shorts top = p.top_exponent();
    const ints at_lower = hn::Max(r.exponent_of(c.lower), lower(top));
    const ints at_upper = hn::Max(r.exponent_of(c.upper), upper(top));
    const ints bias = hn::Set(int_tag(), r.fraction_bits - 2 + 1023);
    const doubles zero = hn::Zero(double_tag());
    doubles sums[4] = {zero, zero, zero, zero};
    p.add(hn::Sub(bias, at_lower), hn::Sub(bias, at_upper), sums);
    c.replace(finish(r, sums[0], sums[1], c.lower, at_lower),
              finish(r, sums[2], sums[3], c.upper, at_upper));
}

}  // namespace

HWY_ATTR void grouped(const panel_tile& t) {
    const vector_rule r(*t.model);
    const std::size_t groups = t.b->shape().length / group_length;
    for (std::size_t column = 0; column < panel_lanes; column += short_lanes) {
        for (std::size_t i = 0; i < t.steps.count; ++i) {
            const std::size_t step = t.steps.at(i);
            for (std::size_t row = 0; row < t.rows; ++row) {
                one_step(r, t.c + row * panel_lanes + column,
                         {&t, t.row + row, step, column, groups});
            }
        }
    }
}

}  // namespace mx::gemm::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
