// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/four_over_six.hpp"

#include <algorithm>
#include <cmath>

#include "libmx/base/exact_sum.hpp"
#include "libmx/quantize/fractional_kernel.hpp"

namespace mx::quantize {
namespace {

// Calls visit(d - x) for every element. d has at most 34 bits and lies near x, so the difference is
// exact (to nearest; other roundings of elements far below the scale round it once).
template <typename Visit>
void for_each_error(const block_params& p, std::span<const float> x, const block_place& place,
                    const fractional_scale& scale, Visit&& visit) {
    const fractional_encoder encoder(p, scale, place);
    int position = 0;
    for (const float v : x) {
        visit(encoder.encode(v, position++).value - static_cast<double>(v));
    }
}

double measure(const block_params& p, std::span<const float> x, const block_place& place,
               const fractional_scale& scale) {
    double total = 0;
    for_each_error(p, x, place, scale, [&](double e) {
        if (p.select == four_over_six::mse) total += e * e;
        if (p.select == four_over_six::mae) total += std::abs(e);
        if (p.select == four_over_six::abs_max) total = std::max(total, std::abs(e));
    });
    return total;
}

void add_exactly(const block_params& p, std::span<const float> x, const block_place& place,
                 const fractional_scale& scale, double sign, base::exact_sum& sum) {
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

}  // namespace

fractional_scale select_scale(const block_params& p, std::span<const float> x,
                              const block_place& place, const fractional_scale& six,
                              const fractional_scale& four) {
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
    return difference.value() < 0 ? four : six;
}

}  // namespace mx::quantize
