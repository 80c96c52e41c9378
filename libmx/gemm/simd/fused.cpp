// SPDX-License-Identifier: Apache-2.0
// Fused steps: every product is aligned to the largest exponent, truncated and added. One source,
// compiled per instruction set.
//
// A term is the product of two floating-point numbers times a power of two, truncated to an
// integer. The product does not round: significands have at most 11 bits, and exponents stay in the
// range of the type (float32 for formats of up to 16 bits except bf16, float64 for the others).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/gemm/simd/fused.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "libmx/base/bits.hpp"
#include "libmx/gemm/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET
#include "libmx/gemm/simd/step.inc"

namespace mx::gemm::simd::HWY_NAMESPACE {
namespace {

// The inputs of a step at the columns of one vector.
struct step_place {
    const panel_tile* t;
    std::size_t row, step, column;  // column: within the group
    std::size_t length;

    HWY_INLINE bool special() const {
        return t->a->special(row, step) || t->b->special(t->column_group, step);
    }
};

// The largest sum of the exponents of two non-zero elements, or one below every floor.
HWY_INLINE shorts top_exponent(const step_place& p) {
    const short_tag d;
    const std::int16_t* const a = p.t->a->exponents(p.row, p.step);
    const std::int16_t* const b = p.t->b->exponents(p.t->column_group, p.step) + p.column;
    shorts even = hn::Set(d, 2 * no_exponent);
    shorts odd = even;
    for (std::size_t k = 0; k + 1 < p.length; k += 2) {
        even = hn::Max(even, hn::Add(hn::Set(d, a[k]), hn::LoadU(d, b + k * panel_lanes)));
        odd = hn::Max(odd, hn::Add(hn::Set(d, a[k + 1]), hn::LoadU(d, b + (k + 1) * panel_lanes)));
    }
    if (p.length % 2 != 0) {
        const std::size_t k = p.length - 1;
        even = hn::Max(even, hn::Add(hn::Set(d, a[k]), hn::LoadU(d, b + k * panel_lanes)));
    }
    return hn::Max(even, odd);
}

// Sums of 32-bit terms: for F up to 25 a term is less than 2^27, so that sixteen fit.
struct narrow_sums {
    // `up` is the power of two that scales products to terms: 2^(F - alignment), without block
    // scales.
    static HWY_INLINE void add(const step_place& p, ints up_lower, ints up_upper, doubles* sums) {
        constexpr std::size_t chunk = 16;
        const float_tag d;
        const float* const a = p.t->a->narrow(p.row, p.step);
        const float* const b = p.t->b->narrow(p.t->column_group, p.step) + p.column;
        const floats scale_lower = power(up_lower);
        const floats scale_upper = power(up_upper);
        for (std::size_t first = 0; first < p.length; first += chunk) {
            const std::size_t last = std::min(first + chunk, p.length);
            ints sum_lower = hn::Zero(int_tag());
            ints sum_upper = sum_lower;
            for (std::size_t k = first; k < last; ++k) {
                const floats x = hn::Set(d, a[k]);
                const float* const y = b + k * panel_lanes;
                sum_lower = hn::Add(sum_lower,
                                    truncated(hn::Mul(hn::Mul(x, scale_lower), hn::LoadU(d, y))));
                sum_upper = hn::Add(sum_upper, truncated(hn::Mul(hn::Mul(x, scale_upper),
                                                                 hn::LoadU(d, y + float_lanes))));
            }
            sums[0] = hn::Add(sums[0], lower(sum_lower));
            sums[1] = hn::Add(sums[1], upper(sum_lower));
            sums[2] = hn::Add(sums[2], lower(sum_upper));
            sums[3] = hn::Add(sums[3], upper(sum_upper));
        }
    }

  private:
    // Products lie between 2^-48 and 2^32; terms below are zero anyway.
    static HWY_INLINE floats power(ints up) {
        const int_tag d;
        const ints n = hn::Max(hn::Set(d, -60), hn::Min(up, hn::Set(d, 80)));
        return hn::BitCast(float_tag(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(d, 127))));
    }
};

struct wide_sums {
    static HWY_INLINE void add(const step_place& p, ints up_lower, ints up_upper, doubles* sums) {
        const double_tag d;
        const double* const a = p.t->a->wide(p.row, p.step);
        const double* const b = p.t->b->wide(p.t->column_group, p.step) + p.column;
        const ints bias = hn::Set(int_tag(), 1023);
        up_lower = hn::Add(up_lower, bias);
        up_upper = hn::Add(up_upper, bias);
        const doubles scale[4] = {power_of(lower_long(up_lower)), power_of(upper_long(up_lower)),
                                  power_of(lower_long(up_upper)), power_of(upper_long(up_upper))};
        for (std::size_t k = 0; k < p.length; ++k) {
            const doubles x = hn::Set(d, a[k]);
            const double* const y = b + k * panel_lanes;
            for (std::size_t i = 0; i < 4; ++i) {
                const doubles term =
                    hn::Mul(hn::Mul(x, scale[i]), hn::LoadU(d, y + i * double_lanes));
                sums[i] = hn::Add(sums[i], hn::Trunc(term));
            }
        }
    }
};

template <class Sums>
HWY_INLINE void one_step(const vector_rule& r, float* acc, const step_place& p) {
    const panel_tile& t = *p.t;
    entering c(acc);
    if (HWY_UNLIKELY(p.special())) {
        float addends[panel_lanes];
        special_addends(t, p.row, p.step, addends);
        c.add(addends + p.column);
    }
    const shorts top = top_exponent(p);
    const shorts scales =
        hn::Add(hn::Set(short_tag(), *t.a->scale_exponents(p.row, p.step)),
                hn::LoadU(short_tag(), t.b->scale_exponents(t.column_group, p.step) + p.column));
    // E, and what it is to the elements, whose exponents the scales are not in.
    const ints scale_lower = lower(scales);
    const ints scale_upper = upper(scales);
    const ints at_lower = hn::Max(r.exponent_of(c.lower), hn::Add(lower(top), scale_lower));
    const ints at_upper = hn::Max(r.exponent_of(c.upper), hn::Add(upper(top), scale_upper));
    const ints fraction = hn::Set(int_tag(), r.fraction_bits);
    const doubles zero = hn::Zero(double_tag());
    doubles sums[4] = {zero, zero, zero, zero};
    Sums::add(p, hn::Add(hn::Sub(fraction, at_lower), scale_lower),
              hn::Add(hn::Sub(fraction, at_upper), scale_upper), sums);
    c.replace(finish(r, sums[0], sums[1], c.lower, at_lower),
              finish(r, sums[2], sums[3], c.upper, at_upper));
}

template <class Sums>
HWY_ATTR void fused(const panel_tile& t) {
    const vector_rule r(*t.model);
    const std::size_t length = t.b->shape().length;
    // Steps are the outer loop, rows the inner: what a step reads of B stays in the L1 cache for
    // all rows.
    for (std::size_t column = 0; column < panel_lanes; column += short_lanes) {
        for (std::size_t i = 0; i < t.steps.count; ++i) {
            const std::size_t step = t.steps.at(i);
            for (std::size_t row = 0; row < t.rows; ++row) {
                one_step<Sums>(r, t.c + row * panel_lanes + column,
                               {&t, t.row + row, step, column, length});
            }
        }
    }
}

}  // namespace

int lanes() { return static_cast<int>(float_lanes); }
void fused_narrow(const panel_tile& t) { fused<narrow_sums>(t); }
void fused_wide(const panel_tile& t) { fused<wide_sums>(t); }

}  // namespace mx::gemm::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
