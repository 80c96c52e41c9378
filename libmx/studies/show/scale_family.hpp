// SPDX-License-Identifier: Apache-2.0
// Recipes that differ only in how the scale of a block is chosen.
#pragma once

#include <string>
#include <vector>

#include "libmx/codec/recipe.hpp"

namespace mx::show {

/// `r` first, then `r` with every other scale rule that its dialect has for its scale format, in
/// the order of scale::scale_rules, and with four-over-six if NVFP4 takes it. Of rules that give
/// the same scales, only one is included. Excludes systems-scaling's floor-bump, whose scales
/// differ within a block, unless it is the rule of `r`.
std::vector<codec::recipe> scale_family(const codec::recipe& r);

/// What distinguishes the members of a group: "even", "two-level", "four_over_six=mse".
std::string rule_text(const codec::recipe& r);

}  // namespace mx::show
