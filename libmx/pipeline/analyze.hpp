// SPDX-License-Identifier: Apache-2.0
// The main job: every metric of every tensor under every recipe, in one pass over the file.
#pragma once

#include <string>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/metrics/row.hpp"
#include "libmx/pipeline/control.hpp"
#include "libmx/pipeline/distributions.hpp"
#include "libmx/pipeline/model.hpp"
#include "libmx/pipeline/preparation.hpp"
#include "libmx/pipeline/roles.hpp"
#include "libmx/pipeline/scale_pairs.hpp"
#include "libmx/report/record_list.hpp"

namespace mx::pipeline {

struct analysis_request {
    std::vector<codec::recipe> recipes;
    bool histograms = false;
    bool distributions = false;  ///< histograms of all tensors of a role and recipe together
    std::string blocks_path;     ///< "" or the HDF5 file for per-block arrays (`--blocks`)
    bool decompose = false;      ///< also the squared error by origin (metrics::when::decompose)
    role_finder roles;           ///< decide the member `role` of results
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
preparation preparation_of(const analysis_request& request, const io::tensor_info& info,
                           const codec::recipe& r, float factor);

/// A tensor that was left out, and why (BOOL, complex, an axis the tensor does not have, ...).
struct skipped_tensor {
    std::string file;
    std::string tensor;
    std::string recipe;  ///< empty when skipped under every recipe
    std::string reason;
};

struct analysis {
    /// One record per tensor, recipe and factor: tensors in file order, recipes and factors as
    /// given; members are those of the JSON schema mx.analysis/1 (design, section 5) in that order.
    report::record_list results;
    std::vector<metrics::row> rows;  ///< the figures of each result
    std::vector<skipped_tensor> skipped;
    std::vector<scale_pairs> scale_differences;  ///< by scale group, over all tensors
    distributions sums;  ///< under the first factor; empty unless they were asked for
};

/// Runs the analysis. Output does not depend on control.threads or on what else is in the
/// request. Throws base::error.
analysis analyze(const std::vector<tensor_ref>& tensors, const analysis_request& request,
                 const run_control& control);

}  // namespace mx::pipeline
