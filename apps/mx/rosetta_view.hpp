// SPDX-License-Identifier: Apache-2.0
// What `mx rosetta` shows people: recipes that agree as one line, triangles of shares, verdicts.
#pragma once

#include <vector>

#include "libmx/pipeline/rosetta.hpp"
#include "libmx/pipeline/scale_origin.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

/// The comparison over all tensors together.
std::vector<report::section> comparison_sections(const pipeline::rosetta_result& result,
                                                 const std::vector<quantize::recipe>& recipes);

/// What the bytes of one coded tensor say about their origin.
report::section origin_section(const pipeline::origin_result& result);

}  // namespace mx::app
