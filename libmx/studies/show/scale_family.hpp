// SPDX-License-Identifier: Apache-2.0
// Recipes that differ in nothing but how the scale of a block is chosen.
#pragma once

#include <string>
#include <vector>

#include "libmx/codec/recipe.hpp"

namespace mx::show {

/// `r` first, then `r` under every other scale rule that its dialect has for its scale format, in
/// the order of scale::scale_rules, and with four-over-six where NVFP4 takes it. Rules that give
/// the same scales stand once; without systems-scaling's floor-bump, whose scales differ inside a
/// block, unless it is the rule of `r`.
std::vector<codec::recipe> scale_family(const codec::recipe& r);

/// What distinguishes the members of a group: "even", "two-level", "four_over_six=mse".
std::string rule_words(const codec::recipe& r);

}  // namespace mx::show
