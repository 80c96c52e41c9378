// SPDX-License-Identifier: Apache-2.0
// Every metric of every tensor under every recipe, in one pass over the file.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/analysis/distributions.hpp"
#include "libmx/analysis/result_list.hpp"
#include "libmx/analysis/scale_pairs.hpp"
#include "libmx/engine/run.hpp"
#include "libmx/metrics/histograms.hpp"
#include "libmx/metrics/totals.hpp"

namespace mx::analysis {

/// One result per tensor, or group of tensors, recipe and factor, factors innermost; with more than
/// one factor each carries its index as `phase`.
struct analysis_request : engine::run_request {
    bool histograms = false;
    bool distributions = false;  ///< histograms of all tensors of a role and recipe together
    std::string blocks_path;     ///< "" or the HDF5 file for per-block arrays (`--blocks`)
    bool decompose = false;      ///< also the squared error by origin (metrics::when::decompose)
    /// Groups of recipes whose scale bytes are compared: see scale_pair_counter.
    std::vector<std::vector<std::size_t>> scale_groups;
    /// Which tensors share a result: see group_tensors. None: every tensor has its own.
    std::vector<std::string> groups;
};

struct analysis {
    /// One per tensor (or group, where its first tensor stands), recipe and factor: tensors in file
    /// order, recipes and factors as given.
    result_list results;
    std::vector<engine::skipped_tensor> skipped;
    std::vector<scale_pairs> scale_differences;  ///< by scale group, over all tensors
    distributions sums;  ///< under the first factor; empty unless they were asked for
};

/// Runs the analysis; the visitor `beside` sees the same segments. Output does not depend on
/// control.threads or on what else is in the request. Throws base::error.
analysis analyze(const std::vector<engine::tensor_ref>& tensors, const analysis_request& request,
                 const engine::run_control& control, engine::visitor* beside = nullptr);

/// A matrix of stored values in memory in C order. `data` is aligned to the element's size and has
/// rows * cols of them; the type is f32, bf16 or f16 (codec::is_stored).
struct matrix {
    tensor::dtype type = tensor::dtype::f32;
    const std::byte* data = nullptr;
    std::uint64_t rows = 0;
    std::uint64_t cols = 0;
    std::string_view name;  ///< keys the draws of stochastic rounding
    /// Of the tensor that it is a part of; without them outer scales are those of zeros.
    codec::tensor_facts facts{};
};

/// A matrix quantized under one recipe.
struct matrix_totals {
    metrics::totals totals;  ///< `distribution` points to the histograms, if there are any
    std::unique_ptr<metrics::histograms> histograms;
};

/// The totals of every recipe, in order, with the parts of the squared error if `decompose` is set:
/// `analyze` without figures, and without the pass that first finds facts of a tensor: they are
/// given.
std::vector<matrix_totals> analyze_matrix(const matrix& m, std::span<const codec::recipe> recipes,
                                          bool histograms, const engine::run_control& control,
                                          bool decompose = false);

}  // namespace mx::analysis
