// SPDX-License-Identifier: Apache-2.0
// The main job: every metric of every tensor under every recipe, in one pass over the file.
#pragma once

#include <string>
#include <vector>

#include "libmx/analysis/distributions.hpp"
#include "libmx/analysis/result.hpp"
#include "libmx/analysis/scale_pairs.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/preparation.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/engine/skip.hpp"

namespace mx::analysis {

struct analysis_request {
    std::vector<codec::recipe> recipes;
    bool histograms = false;
    bool distributions = false;  ///< histograms of all tensors of a role and recipe together
    std::string blocks_path;     ///< "" or the HDF5 file for per-block arrays (`--blocks`)
    bool decompose = false;      ///< also the squared error by origin (metrics::when::decompose)
    engine::role_finder roles;   ///< decide the member `role` of results
    /// Added to the values of tensors whose role is norm, in float32, before anything else: 1 for
    /// models that store gamma - 1.
    float norm_bias = 0;
    /// What values are multiplied by, in float32, before a recipe's transform. One result per
    /// tensor, recipe and factor, factors innermost; with more than one each carries its index as
    /// `phase`.
    std::vector<float> factors = {1.0F};
    /// Groups of recipes (indices, a recipe in one group at most) of one block shape whose scale
    /// bytes are compared pair by pair, under the first factor.
    std::vector<std::vector<std::size_t>> scale_groups;
};

/// What happens to the values of a tensor before they are quantized to `r`.
engine::preparation preparation_of(const analysis_request& request, const io::tensor_info& info,
                                   const codec::recipe& r, float factor);

struct analysis {
    /// One per tensor, recipe and factor: tensors in file order, recipes and factors as given.
    std::vector<result> results;
    std::vector<engine::skipped_tensor> skipped;
    std::vector<scale_pairs> scale_differences;  ///< by scale group, over all tensors
    distributions sums;  ///< under the first factor; empty unless they were asked for
};

/// Runs the analysis. Output does not depend on control.threads or on what else is in the
/// request. Throws base::error.
analysis analyze(const std::vector<engine::tensor_ref>& tensors, const analysis_request& request,
                 const engine::run_control& control);

}  // namespace mx::analysis
