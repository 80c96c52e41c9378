// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/simd/element_grid.hpp"

#include "libmx/base/bits.hpp"
#include "libmx/format/scale_formats.hpp"

namespace mx::quantize::simd {
namespace {

constexpr std::uint32_t one_binade = 1u << 23;

// Every rule gives the exponent of amax, less `base`, and one more from a mantissa on.
struct step {
    int base;
    std::uint32_t from;  // one_binade: never
};

// Where rounding to the element's precision carries into the next binade. The candidate below is
// all ones, hence odd, and the tie goes up.
std::uint32_t carries_from(const scale::rule_input& in) {
    return one_binade - (1u << (22 - in.mantissa_bits));
}

// Where it reaches the mantissa `m`, which has the element's precision.
std::uint32_t rounds_to(const scale::rule_input& in, std::uint32_t m) {
    const int dropped = 23 - in.mantissa_bits;
    const std::uint32_t half = 1u << (dropped - 1);
    const bool odd = (((m | one_binade) >> dropped) & 1u) != 0;
    return m - half + (odd ? 1u : 0u);
}

step step_of(scale::rule_id id, const scale::rule_input& in) {
    using scale::rule_id;
    switch (id) {
        case rule_id::floor:
            if (in.real_emax) return {in.max_exponent + 1, in.max_mantissa};
            return {in.emax, one_binade};
        case rule_id::even:
            if (!in.real_emax) return {in.emax, carries_from(in)};
            if (in.max_mantissa == 0) return {in.max_exponent, carries_from(in)};
            return {in.max_exponent + 1, rounds_to(in, in.max_mantissa)};
        case rule_id::ceil:
            if (!in.real_emax) return {in.emax, 1};
            [[fallthrough]];
        case rule_id::rceil:
            return {in.max_exponent, in.max_mantissa + 1};
        case rule_id::nearest:  // from sqrt(2) on
            return {in.emax, 11863284u - one_binade};
        case rule_id::enhanced:
        case rule_id::ceil_div_max:
            return {in.max_exponent, (one_binade - (one_binade >> in.mantissa_bits)) + 1};
        case rule_id::floor_bump:
            return {in.emax, 0x00600001u};
        default:
            return {0, one_binade};
    }
}

// The rules that step_of states.
bool is_step(scale::rule_id id) {
    using scale::rule_id;
    switch (id) {
        case rule_id::floor:
        case rule_id::ceil:
        case rule_id::even:
        case rule_id::rceil:
        case rule_id::nearest:
        case rule_id::enhanced:
        case rule_id::ceil_div_max:
        case rule_id::floor_bump:
            return true;
        default:
            return false;
    }
}

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
    return p.plain && is_step(p.rule) && is_rounding(p.mode.how) && !p.mode.round_fraction &&
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
    const step s = step_of(p.rule, p.facts);
    g.rule_step = one_binade - s.from;
    g.rule_base = s.base;
    // Errors of the nearest roundings are exact, wherever they lie; others have 24 bits from 2^-84
    // up, in units of the scale, and should stay normal in units of x.
    g.least_code = g.rounding == rounding_kind::nearest ? 1 : 85;
    return g;
}

}  // namespace mx::quantize::simd
