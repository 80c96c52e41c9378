// SPDX-License-Identifier: Apache-2.0
// What `mx cluster` says in words.
#pragma once

#include <string>
#include <vector>

#include "libmx/studies/cluster/diagnose.hpp"

namespace mx::pages {

/// "norm.weight under mxfp8: 5 of 8 blocks saturate: every value in [0.844,1)*2^n becomes
/// 0.875*2^n, a gain of 0.93 (...); scale=rceil brings R-MSE from 0.066 to 0.011."
std::string finding_words(const cluster::finding& f, const std::string& tensor);

/// "Closest under mxfp8: block 3 of norm.weight, ..."; empty where no block was judged.
std::string nearest_words(const cluster::recipe_summary& h, const codec::recipe& r);

/// What keeps findings from being complete: norms stored as gamma - 1, tensors that could not be
/// judged or were left out.
std::vector<std::string> caveats(const cluster::cluster_report& report,
                                 const analysis::analysis_request& request);

}  // namespace mx::pages
