// SPDX-License-Identifier: Apache-2.0
// The block-clustering doctor: measures tensors under recipes, names those whose blocks lose what
// told their elements apart, and measures what would mend them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/studies/cluster/findings.hpp"
#include "libmx/studies/cluster/norm_centres.hpp"

namespace mx::cluster {

/// All tensors under one recipe.
struct recipe_health {
    std::uint64_t tensors = 0;  ///< that it was measured on
    std::uint64_t judged = 0;   ///< of them, with eligible blocks
    std::uint64_t in_danger = 0;
    std::uint64_t eligible = 0, saturated = 0;  ///< blocks
    std::uint64_t saturating_tensors = 0;       ///< with a saturated block
    /// The block that comes closest to saturation in tensors that are not in danger, and its
    /// tensor.
    std::optional<near_block> nearest;
    std::string nearest_tensor;
};

/// A tensor of several blocks, not all of them zero, none with two non-zero elements.
struct unjudged_tensor {
    std::string tensor;
    std::string recipe;
};

struct cluster_report {
    std::vector<analysis::result> measured;  ///< of analyze(), with error parts
    /// Their records, and facts of blocks behind them: see the guide.
    report::record_list results;
    std::vector<engine::skipped_tensor> skipped;
    analysis::distributions sums;       ///< see analysis_request::distributions
    std::vector<finding> findings;      ///< most severe first
    std::vector<recipe_health> health;  ///< by recipe
    std::vector<unjudged_tensor> unjudged;
    norm_centres norms;
};

/// Does all of that. Tensors are read twice, in groups small enough to stay cached, and those in
/// danger again. Of `request`, recipes, roles,
/// norm_bias and distributions matter. Output does not depend on
/// threads. Throws base::error.
cluster_report examine(const std::vector<engine::tensor_ref>& tensors,
                       const analysis::analysis_request& request,
                       const engine::run_control& control);

}  // namespace mx::cluster
