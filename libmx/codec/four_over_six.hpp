// SPDX-License-Identifier: Apache-2.0
// Four-over-six: which of two scales a block takes (mit-han-lab/fouroversix@dadfad6), for host and
// device.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "libmx/base/exact_sum.hpp"
#include "libmx/codec/fractional_element.hpp"

namespace mx::codec {

namespace fractional_steps {

// Calls visit(d - x) for every element. d has at most 34 bits and lies near x, so the difference is
// exact (to nearest; other roundings of elements far below the scale round it once).
template <typename Visit>
MX_HD inline void for_each_error(const block_params& p, std::span<const float> x,
                                 const block_place& place, const fractional_scale& scale,
                                 Visit&& visit) {
    const fractional_encoder encoder(p, scale, place);
    int position = 0;
    for (const float v : x) {
        visit(encoder.encode(v, position++).value - static_cast<double>(v));
    }
}

MX_HD_CALL inline double measure(const block_params& p, std::span<const float> x,
                                 const block_place& place, const fractional_scale& scale) {
    double total = 0;
    for_each_error(p, x, place, scale, [&](double e) {
        if (p.select == four_over_six::mse) total += e * e;
        if (p.select == four_over_six::mae) total += std::abs(e);
        if (p.select == four_over_six::abs_max) total = std::max(total, std::abs(e));
    });
    return total;
}

MX_HD_CALL inline void add_exactly(const block_params& p, std::span<const float> x,
                                   const block_place& place, const fractional_scale& scale,
                                   double sign, base::exact_sum& sum) {
    for_each_error(p, x, place, scale, [&](double e) {
        if (p.select == four_over_six::mae) {
            sum.add(sign * std::abs(e));
            return;
        }
        const double square = e * e;
        sum.add(sign * square);
        sum.add(sign * std::fma(e, e, -square));
    });
}

}  // namespace fractional_steps

/// The scale under which the block's maximum becomes 6, or the one under which it becomes 4 where
/// that makes the error of the block strictly smaller by the measure `p.select`. Errors d - x are
/// exact, and so is the comparison of their sums.
MX_HD inline fractional_scale select_scale(const block_params& p, std::span<const float> x,
                                           const block_place& place, const fractional_scale& six,
                                           const fractional_scale& four) {
    using namespace fractional_steps;
    const double error_six = measure(p, x, place, six);
    const double error_four = measure(p, x, place, four);
    if (p.select == four_over_six::abs_max) return error_four < error_six ? four : six;
    // A sum of 2^20 terms is within 2^-32 of its exact value, so only near ties need exact sums.
    if (std::abs(error_four - error_six) > 0x1p-30 * (error_four + error_six)) {
        return error_four < error_six ? four : six;
    }
    base::exact_sum difference;
    add_exactly(p, x, place, four, 1.0, difference);
    add_exactly(p, x, place, six, -1.0, difference);
    return difference.is_negative() ? four : six;
}

}  // namespace mx::codec
