// SPDX-License-Identifier: Apache-2.0
// THE LIST of scale rules: from the block maximum to the E8M0 code of the shared scale.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "libmx/scale/rule_input.hpp"
#include "libmx/scale/rules/ceil.hpp"
#include "libmx/scale/rules/even.hpp"
#include "libmx/scale/rules/floor.hpp"
#include "libmx/scale/rules/rceil.hpp"

namespace mx::scale {

/// Identity of a rule on host and device (function pointers do not travel to a GPU).
enum class rule_id : std::uint8_t { floor, ceil, even, rceil };

struct scale_rule {
    rule_id id;
    std::string_view name;
    std::string_view definition;  ///< one line, for reports
    std::string_view source;
};

inline constexpr std::array scale_rules{
    scale_rule{rule_id::floor, "floor", "2^(floor(log2 amax) - emax)", "OCP MX 1.0 section 6.3"},
    scale_rule{rule_id::ceil, "ceil", "2^(ceil(log2 amax) - emax)", "Yang et al. eq. 3"},
    scale_rule{rule_id::even, "even",
               "2^(floor(log2 rtne(amax)) - emax), amax rounded to the element's precision",
               "Yang et al. eq. 4, torchao EVEN"},
    scale_rule{rule_id::rceil, "rceil", "2^ceil(log2(amax / max))", "NVIDIA, torchao RCEIL"},
};

/// The E8M0 code under rule `id`.
MX_HD inline int scale_code(rule_id id, const rule_input& in) {
    switch (id) {
        case rule_id::floor:
            return rules::floor(in);
        case rule_id::ceil:
            return rules::ceil(in);
        case rule_id::even:
            return rules::even(in);
        case rule_id::rceil:
            return rules::rceil(in);
    }
    return 255;
}

/// The row named `name`, or nullptr.
constexpr const scale_rule* find_scale_rule(std::string_view name) {
    for (const scale_rule& r : scale_rules) {
        if (r.name == name) return &r;
    }
    return nullptr;
}

}  // namespace mx::scale
