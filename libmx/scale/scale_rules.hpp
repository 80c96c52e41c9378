// SPDX-License-Identifier: Apache-2.0
// THE LIST of scale rules: from the block maximum to the shared scale.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "libmx/base/named.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/scale/rule_step.hpp"

namespace mx::scale {

/// Which power of two counts as the top of an integer format, on the k/2^(n-2) grid (design:
/// `int_emax`). Yang et al. do not say which they use, and it decides which rule wins.
enum class int_emax : std::uint8_t {
    zero,     ///< 0, the OCP reading: the integer bit has weight 1
    log2max,  ///< log2 of the largest value, a real number
    one,      ///< 1, the power of two above the largest value
};

/// What rules use of an element format.
struct element_facts {
    int emax;  ///< exponent of the specification; of an integer format as int_emax says
    int mantissa_bits;
    std::uint32_t max_mantissa;  ///< float32 mantissa field of the largest element
    int max_exponent;            ///< exponent of the largest element
    bool real_emax;              ///< subtract log2(max) instead of emax (int_emax=log2max)
};

constexpr element_facts facts_of(const format::element_format& f, int_emax choice) {
    const bool integer = !f.floating();
    return {integer && choice == int_emax::one ? 1 : f.emax(), f.mantissa_bits,
            f.max_f32_mantissa(), f.emax(), integer && choice == int_emax::log2max};
}

/// Rules that other code tells apart, because a dialect computes them in its own way or because
/// they are more than a step.
enum class rule_id : std::uint8_t {
    other,
    floor,
    ceil,
    even,
    rceil,
    nearest,
    enhanced,
    ceil_div_max,
    floor_bump,
    stochastic,
    two_level,
    single_level,
    amax,
    amax_pow2,
    search,               ///< of power-of-two scales
    search_two_level,     ///< of numbers under a tensor scale
    search_single_level,  ///< of numbers alone
};

/// Whether a rule tries codes on the block instead of using its maximum (search_scale.hpp).
constexpr bool is_search(rule_id id) { return id >= rule_id::search; }

/// Whether a rule's block scales are relative to a scale of the whole tensor.
constexpr bool has_tensor_scale(rule_id id) {
    return id == rule_id::two_level || id == rule_id::search_two_level;
}

struct scale_rule {
    std::string_view name;
    std::string_view scale_format;  ///< the scale formats whose codes it chooses, separated by ' '
    std::string_view definition;    ///< one line, for reports
    std::string_view source;
    /// Of rules of powers of two: the rule under an element format. Of `search` that of floor, from
    /// whose code its reach counts.
    rule_step (*step)(const element_facts&) = nullptr;
    rule_id id = rule_id::other;
};

namespace steps {

constexpr rule_step floor(const element_facts& f) {
    if (f.real_emax) return {.emax = f.max_exponent + 1, .from = f.max_mantissa};
    return {.emax = f.emax};
}

constexpr rule_step rceil(const element_facts& f) {
    return {.emax = f.max_exponent, .from = f.max_mantissa + 1};
}

// The largest value counts as having a significand of ones: 480 in E4M3.
constexpr rule_step all_ones(const element_facts& f) {
    return {.emax = f.max_exponent, .from = one_binade - (one_binade >> f.mantissa_bits) + 1};
}

// Rounding carries into the next binade from `carry` on: the candidate below is all ones, hence
// odd, and the tie goes up. A carry to 2^128 gives NaN. Of integers the n-2 fraction bits count as
// the precision, which nothing published defines.
constexpr rule_step even(const element_facts& f) {
    const int dropped = 23 - f.mantissa_bits;
    const std::uint32_t half = 1u << (dropped - 1);
    const std::uint32_t carry = one_binade - half;
    const std::uint32_t nan_from = base::f32_infinity - half;
    if (!f.real_emax) return {f.emax, carry, nan_from};
    if (f.max_mantissa == 0) return {f.max_exponent, carry, nan_from};
    // Where amax rounds to the largest value, which has the element's precision.
    const bool odd = (((f.max_mantissa | one_binade) >> dropped) & 1u) != 0;
    return {f.max_exponent + 1, f.max_mantissa - half + (odd ? 1u : 0u), nan_from};
}

}  // namespace steps

inline constexpr std::array scale_rules{
    scale_rule{"floor", "e8m0", "2^(floor(log2 amax) - emax)", "OCP MX 1.0 section 6.3",
               steps::floor, rule_id::floor},
    scale_rule{"ceil", "e8m0", "2^(ceil(log2 amax) - emax)", "Yang et al. eq. 3",
               [](const element_facts& f) {
                   return f.real_emax ? steps::rceil(f) : rule_step{.emax = f.emax, .from = 1};
               },
               rule_id::ceil},
    scale_rule{"even", "e8m0",
               "2^(floor(log2 rtne(amax)) - emax), amax rounded to the element's precision",
               "Yang et al. eq. 4, torchao EVEN", steps::even, rule_id::even},
    scale_rule{"rceil", "e8m0", "2^ceil(log2(amax / max))", "NVIDIA, torchao RCEIL", steps::rceil,
               rule_id::rceil},
    scale_rule{"nearest", "e8m0", "2^(floor(log2 amax + 1/2) - emax)", "FBGEMM",
               [](const element_facts& f) {
                   constexpr std::uint32_t sqrt2 = 11863284;  // rounded up
                   return rule_step{.emax = f.emax, .from = sqrt2 - one_binade};
               },
               rule_id::nearest},
    scale_rule{"enhanced", "e8m0",
               "2^ceil(log2(amax / ((2 - 2^-m) 2^emax))): E4M3 counts as reaching 480", "amd/Quark",
               steps::all_ones, rule_id::enhanced},
    scale_rule{"ceil-div-max", "e8m0",
               "2^ceil(log2(amax / Qmax)), Qmax the all-ones element: equals enhanced", "TetraJet",
               steps::all_ones, rule_id::ceil_div_max},
    // As described: the code of the paper takes another maximum (dialect systems-scaling). 1.75 is
    // for E4M3, E5M2 and E3M2, where the rule equals rceil.
    scale_rule{"floor-bump", "e8m0", "floor, one higher when amax > 1.75 * 2^floor(log2 amax)",
               "arXiv 2506.20752",
               [](const element_facts& f) {
                   return rule_step{.emax = f.emax, .from = one_binade / 4 * 3 + 1};
               },
               rule_id::floor_bump},
    scale_rule{"stochastic", "e8m0",
               "floor after 23 - m random bits were added to the mantissa of amax", "FBGEMM",
               [](const element_facts& f) {
                   return rule_step{.emax = f.emax, .drawn_bits = 23 - f.mantissa_bits};
               },
               rule_id::stochastic},
    scale_rule{"two-level", "ue4m3 ue5m3 ue5m3_inf",
               "block scale rtne(amax / (max g)) under an outer scale g", "NVFP4", nullptr,
               rule_id::two_level},
    scale_rule{"single-level", "ue4m3 ue5m3 ue5m3_inf",
               "block scale rtne(amax / max), no outer scale", "AMDFP4; NVFP4 of torchao, ggml",
               nullptr, rule_id::single_level},
    scale_rule{"amax", "f32", "amax / max in float32",
               "FP8 block scaling (DeepSeek-V3), Transformer Engine", nullptr, rule_id::amax},
    scale_rule{"amax-pow2", "f32", "amax / max, up to a power of two",
               "Transformer Engine (force_pow_2_scales)", steps::rceil, rule_id::amax_pow2},
    scale_rule{"search", "e8m0",
               "the scale with the least error of the block, the larger of equals",
               "definition; llama.cpp, auto-round and ModelOpt search in parts", steps::floor,
               rule_id::search},
    scale_rule{"search", "ue4m3 ue5m3 ue5m3_inf",
               "the block scale with the least error under a tensor scale g, the larger of equals",
               "definition; after sgl-project/sglang#27246", nullptr, rule_id::search_two_level},
    scale_rule{"search-single-level", "ue4m3 ue5m3 ue5m3_inf",
               "the block scale with the least error, the larger of equals, no tensor scale",
               "definition", nullptr, rule_id::search_single_level},
};

/// The integers of a rule under an element format; of a rule without `step`, those of a rule that
/// gives the exponent of amax.
constexpr rule_step step_under(const scale_rule& rule, const format::element_format& f,
                               int_emax choice) {
    return rule.step == nullptr ? rule_step{} : rule.step(facts_of(f, choice));
}

/// Whether a rule uses random bits.
constexpr bool is_random(const scale_rule& rule) {
    return step_under(rule, format::element_formats.front(), int_emax::zero).drawn_bits != 0;
}

/// The row named `name`, the first if there are two; or nullptr.
constexpr const scale_rule* find_scale_rule(std::string_view name) {
    return base::find_named(scale_rules, name);
}

/// The row named `name` for a scale format; if there is none, as above.
constexpr const scale_rule* find_scale_rule(std::string_view name, std::string_view scale_format) {
    for (const scale_rule& rule : scale_rules) {
        if (rule.name != name) continue;
        if (rule.scale_format.find(scale_format) != std::string_view::npos) return &rule;
    }
    return find_scale_rule(name);
}

}  // namespace mx::scale
