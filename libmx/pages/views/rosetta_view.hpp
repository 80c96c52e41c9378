// SPDX-License-Identifier: Apache-2.0
// The output of `mx rosetta`: recipes that agree as one line, triangular matrices of shares,
// verdicts.
#pragma once

#include <vector>

#include "libmx/report/document.hpp"
#include "libmx/studies/rosetta/rosetta.hpp"
#include "libmx/studies/rosetta/scale_origin.hpp"

namespace mx::pages {

/// The comparison over all tensors.
std::vector<report::section> comparison_sections(const rosetta::rosetta_result& result,
                                                 const std::vector<codec::recipe>& recipes);

/// Evidence on the origin of coded tensors: one section per element format and block shape, over
/// all tensors that have them.
std::vector<report::section> origin_sections(const std::vector<rosetta::origin_result>& results);

}  // namespace mx::pages
