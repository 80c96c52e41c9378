// SPDX-License-Identifier: Apache-2.0
// What the figures of tensors do not show: blocks that are left out of them, and blocks that are
// mostly scale.
#pragma once

#include <string>
#include <vector>

#include "libmx/analysis/result.hpp"

namespace mx::pages {

/// A sentence per recipe under which tensors without NaN and Inf have poisoned elements: their
/// block maximum is so near the largest float32 that the scale overflows.
std::vector<std::string> nan_scale_notes(const std::vector<const analysis::result*>& results);

/// Says which tensors have blocks so short that scales weigh more, and what they cost; empty where
/// none has. A tensor counts under its first result.
std::string short_block_note(const std::vector<const analysis::result*>& results);

/// Both, as lines of a list.
std::vector<std::string> tensor_remarks(const std::vector<const analysis::result*>& results);

}  // namespace mx::pages
