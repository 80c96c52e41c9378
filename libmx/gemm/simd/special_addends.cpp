// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/simd/special_addends.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libmx/gemm/factor.hpp"

namespace mx::gemm::simd {
namespace {

// Where a row of an operand begins in a step.
struct row_part {
    const operand& o;
    std::size_t row, first, last;  // k

    row_part(const operand_panel& p, std::size_t at, std::size_t step) : o(p.source()), row(at) {
        first = step * p.shape().length;
        last = std::min(first + p.shape().length, o.depth);
    }

    // A number that multiplies as the element does, as far as zeros, NaN, infinities and signs go.
    float stand_in(std::size_t k) const {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        const factor x =
            unpack(*o.format, subnormal_alignment::least_exponent, o.codes[row * o.depth + k]);
        if (x.what == value_class::nan) return std::numeric_limits<float>::quiet_NaN();
        const float magnitude = x.what == value_class::infinite ? infinity
                                : x.significand == 0            ? 0.0F
                                                                : 1.0F;
        return x.negative ? -magnitude : magnitude;
    }

    bool has_nan_scale() const {
        if (o.scaling == 0) return false;
        const std::size_t per_row = (o.depth + o.scale_block - 1) / o.scale_block;
        const std::uint8_t* const scales = o.scales.data() + row * per_row;
        for (std::size_t k = first; k < last; k += o.scale_block - k % o.scale_block) {
            if (unpack_scale(o.scaling, scales[k / o.scale_block]).nan) return true;
        }
        return false;
    }
};

float addend_of(const row_part& a, const row_part& b) {
    if (a.has_nan_scale() || b.has_nan_scale()) return std::numeric_limits<float>::quiet_NaN();
    float sum = 0;
    for (std::size_t k = a.first; k < a.last; ++k) {
        const float product = a.stand_in(k) * b.stand_in(k);
        if (!std::isfinite(product)) sum += product;
    }
    return sum;
}

}  // namespace

void special_addends(const panel_tile& t, std::size_t row, std::size_t step, float* addends) {
    const row_part a(*t.a, row, step);
    for (std::size_t lane = 0; lane < panel_lanes; ++lane) {
        const std::size_t column = t.column_group * panel_lanes + lane;
        addends[lane] =
            column < t.b->source().rows ? addend_of(a, row_part(*t.b, column, step)) : 0.0F;
    }
}

}  // namespace mx::gemm::simd
