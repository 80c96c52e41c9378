// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/clamp_zone.hpp"

#include <cmath>

#include "libmx/codec/block_params.hpp"

namespace mx::codec {

double clamp_zone::share() const { return empty() ? 0.0 : std::log2(to / from); }

double clamp_zone::clamped_share() const { return empty() ? 0.0 : std::log2(to / clamps_from); }

clamp_zone clamp_zone_of(const recipe& r) {
    const block_params p = params_of(r);
    clamp_zone zone;
    double clamps = 0;
    if (!r.scale_format->power_of_two() || scale::is_search(r.rule->id)) return zone;
    constexpr std::uint32_t steps = 1u << 14;
    for (std::uint32_t i = 0; i < steps; ++i) {
        // One ulp above the grid point represents the open interval up to the next one.
        const std::uint32_t bits = (127u << 23) | (i << 9) | 1u;
        const int exponent = scale::scale_code(p.step, bits) - format::e8m0_bias;
        const format::encoded rounded =
            format::encode_magnitude(p.element, p.mode, bits, exponent, 0);
        if (!rounded.beyond_max) continue;
        const double low = 1.0 + i / static_cast<double>(steps);
        if (zone.empty()) zone.from = low;
        if (rounded.unbounded > rounded.magnitude && clamps == 0) clamps = low;
        zone.to = 1.0 + (i + 1) / static_cast<double>(steps);
    }
    zone.clamps_from = clamps == 0 ? zone.to : clamps;
    return zone;
}

}  // namespace mx::codec
