// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/simd/element_grid.hpp"

#include "libmx/base/bits.hpp"
#include "libmx/scale/rule_step.hpp"

namespace mx::codec::simd {
namespace {

bool is_rounding(format::rounding how) {
    using format::rounding;
    switch (how) {
        case rounding::rtne:
        case rounding::away:
        case rounding::ties_to_zero:
        case rounding::zero:
        case rounding::up:
        case rounding::down:
        case rounding::stochastic:
            return true;
        default:
            return false;
    }
}

}  // namespace

bool takes(const block_params& p) {
    const format::element_params& f = p.element;
    const bool by_code = f.floating && f.mantissa_bits == 0 &&
                         p.mode.how == format::rounding::rtne &&
                         p.mode.ties == format::tie_rule::even;
    return p.plain && scale::is_step(p.rule) && is_rounding(p.mode.how) && !p.mode.round_fraction &&
           f.has_sign && !by_code;
}

element_grid grid_of(const block_params& p) {
    const format::element_params& f = p.element;
    element_grid g{};
    g.fixed = !f.floating;
    g.least_exponent = static_cast<std::uint32_t>(f.emin + 127) << 23;
    g.magic_step = static_cast<std::uint32_t>(23 - f.mantissa_bits) << 23;
    g.max_positive = p.value[f.max_positive];
    g.smallest_normal = f.smallest_normal != 0 ? p.value[f.smallest_normal] : 0.0f;
    g.max_negative = g.fixed ? static_cast<float>(f.max_negative) * base::exact_pow2f(f.quantum)
                             : g.max_positive;
    g.bits = f.bits;
    g.code_shift = 23 - f.mantissa_bits;
    g.code_base = static_cast<std::uint32_t>(f.emin + 126) << f.mantissa_bits;
    g.inverse_quantum = base::exact_pow2f(-f.quantum);

    constexpr float never = 2.0f;
    constexpr float half_or_more = 0x1.fffffep-2f;  // more than the float below one half
    g.threshold_positive = g.threshold_negative = never;
    using format::rounding;
    switch (p.mode.how) {
        case rounding::rtne:
            g.rounding = rounding_kind::nearest;
            break;
        case rounding::away:
            g.rounding = rounding_kind::threshold;
            g.threshold_positive = g.threshold_negative = half_or_more;
            break;
        case rounding::ties_to_zero:
            g.rounding = rounding_kind::threshold;
            g.threshold_positive = g.threshold_negative = 0.5f;
            break;
        case rounding::zero:
            g.rounding = rounding_kind::threshold;
            break;
        case rounding::up:
            g.rounding = rounding_kind::threshold;
            g.threshold_positive = 0.0f;
            break;
        case rounding::down:
            g.rounding = rounding_kind::threshold;
            g.threshold_negative = 0.0f;
            break;
        case rounding::stochastic:
            g.rounding = rounding_kind::stochastic;
            g.random_mask = ~0u << (32 - p.mode.random_bits);
            break;
        default:  // takes() says no
            break;
    }
    const scale::rule_step s = scale::step_of(p.rule, p.facts);
    g.rule_step = scale::one_binade - s.from;
    g.rule_base = s.base;
    // Errors of the nearest roundings are exact, wherever they lie; others have 24 bits from 2^-84
    // up, in units of the scale, and should stay normal in units of x.
    g.least_code = g.rounding == rounding_kind::nearest ? 1 : 85;
    return g;
}

}  // namespace mx::codec::simd
