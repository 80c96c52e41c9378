// SPDX-License-Identifier: Apache-2.0
// THE LIST of scale rules: from the block maximum to the shared scale.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "libmx/base/named.hpp"
#include "libmx/scale/rule_input.hpp"
#include "libmx/scale/rules/all_ones.hpp"
#include "libmx/scale/rules/ceil.hpp"
#include "libmx/scale/rules/even.hpp"
#include "libmx/scale/rules/floor.hpp"
#include "libmx/scale/rules/floor_bump.hpp"
#include "libmx/scale/rules/nearest.hpp"
#include "libmx/scale/rules/rceil.hpp"
#include "libmx/scale/rules/stochastic.hpp"

namespace mx::scale {

/// Identity of a rule on host and device (function pointers do not travel to a GPU).
enum class rule_id : std::uint8_t {
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
MX_HD constexpr bool is_search(rule_id id) { return id >= rule_id::search; }

/// Whether a rule's block scales are relative to a scale of the whole tensor.
constexpr bool has_tensor_scale(rule_id id) {
    return id == rule_id::two_level || id == rule_id::search_two_level;
}

struct scale_rule {
    rule_id id;
    std::string_view name;
    std::string_view scale_format;  ///< the scale formats whose codes it chooses, separated by ' '
    std::string_view definition;    ///< one line, for reports
    std::string_view source;
};

inline constexpr std::array scale_rules{
    scale_rule{rule_id::floor, "floor", "e8m0", "2^(floor(log2 amax) - emax)",
               "OCP MX 1.0 section 6.3"},
    scale_rule{rule_id::ceil, "ceil", "e8m0", "2^(ceil(log2 amax) - emax)", "Yang et al. eq. 3"},
    scale_rule{rule_id::even, "even", "e8m0",
               "2^(floor(log2 rtne(amax)) - emax), amax rounded to the element's precision",
               "Yang et al. eq. 4, torchao EVEN"},
    scale_rule{rule_id::rceil, "rceil", "e8m0", "2^ceil(log2(amax / max))",
               "NVIDIA, torchao RCEIL"},
    scale_rule{rule_id::nearest, "nearest", "e8m0", "2^(floor(log2 amax + 1/2) - emax)", "FBGEMM"},
    scale_rule{rule_id::enhanced, "enhanced", "e8m0",
               "2^ceil(log2(amax / ((2 - 2^-m) 2^emax))): E4M3 counts as reaching 480",
               "amd/Quark"},
    scale_rule{rule_id::ceil_div_max, "ceil-div-max", "e8m0",
               "2^ceil(log2(amax / Qmax)), Qmax the all-ones element: equals enhanced", "TetraJet"},
    scale_rule{rule_id::floor_bump, "floor-bump", "e8m0",
               "floor, one higher when amax > 1.75 * 2^floor(log2 amax)", "arXiv 2506.20752"},
    scale_rule{rule_id::stochastic, "stochastic", "e8m0",
               "floor after 23 - m random bits were added to the mantissa of amax", "FBGEMM"},
    scale_rule{rule_id::two_level, "two-level", "ue4m3 ue5m3",
               "block scale rtne(amax / (max g)) under an outer scale g", "NVFP4"},
    scale_rule{rule_id::single_level, "single-level", "ue4m3 ue5m3",
               "block scale rtne(amax / max), no outer scale", "AMDFP4; NVFP4 of torchao, ggml"},
    scale_rule{rule_id::amax, "amax", "f32", "amax / max in float32",
               "FP8 block scaling (DeepSeek-V3), Transformer Engine"},
    scale_rule{rule_id::amax_pow2, "amax-pow2", "f32", "amax / max, up to a power of two",
               "Transformer Engine (force_pow_2_scales)"},
    scale_rule{rule_id::search, "search", "e8m0",
               "the scale with the least error of the block, the larger of equals",
               "definition; llama.cpp, auto-round and ModelOpt search in parts"},
    scale_rule{rule_id::search_two_level, "search", "ue4m3 ue5m3",
               "the block scale with the least error under a tensor scale g, the larger of equals",
               "definition; after sgl-project/sglang#27246"},
    scale_rule{rule_id::search_single_level, "search-single-level", "ue4m3 ue5m3",
               "the block scale with the least error, the larger of equals, no tensor scale",
               "definition"},
};

/// The E8M0 code under rule `id`, in exact arithmetic; 255 for rules of other scale formats. Of
/// `search` the code of floor, from which its reach counts.
MX_HD inline int scale_code(rule_id id, const rule_input& in) {
    switch (id) {
        case rule_id::floor:
        case rule_id::search:
            return rules::floor(in);
        case rule_id::ceil:
            return rules::ceil(in);
        case rule_id::even:
            return rules::even(in);
        case rule_id::rceil:
            return rules::rceil(in);
        case rule_id::nearest:
            return rules::nearest(in);
        case rule_id::enhanced:
        case rule_id::ceil_div_max:
            return rules::all_ones(in);
        case rule_id::floor_bump:
            return rules::floor_bump(in);
        case rule_id::stochastic:
            return rules::stochastic(in);
        case rule_id::two_level:
        case rule_id::single_level:
        case rule_id::amax:
        case rule_id::amax_pow2:
        case rule_id::search_two_level:
        case rule_id::search_single_level:
            break;
    }
    return 255;
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
