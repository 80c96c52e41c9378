// SPDX-License-Identifier: Apache-2.0
// Diagnosis of block clustering: measures tensors under recipes, finds those whose blocks lose the
// differences between their elements, and measures remedies.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/studies/cluster/remedies.hpp"

namespace mx::cluster {

/// A defect as text: "1 of 8 blocks saturates", "2 of 8 blocks saturate".
struct defect_description {
    std::string_view one, many;
};
const defect_description& description_of(defect a);
/// That of the defect whose verb is `one`; of other words, the first.
const defect_description& description_of(std::string_view one);

struct finding {
    engine::tensor_ref tensor{};
    codec::recipe recipe;
    defect what = defect::saturation;  ///< the worst of those above the limit
    block_survey survey;
    std::vector<measured_remedy> remedies;
    std::size_t chosen = 0;  ///< index of the one to recommend
};

/// The finding as an element of the JSON list `findings`.
report::record finding_record(const finding& f, const engine::role_finder& roles);
/// Defines it as #finding, and adds the members of cluster_report::results beside those of results.
void declare_survey(report::member_list& result, report::document_schema& to);

/// Counts evidence that a model stores norms as gamma - 1: their values then lie around 0 instead
/// of around 1. Uses the stored values. A norm counts as around zero if more than half of its
/// values are below 1/2 in magnitude and at least a tenth are negative (or all are zero, as before
/// training), because a gain is hardly ever negative.
struct norm_centres {
    std::size_t norms = 0;                 ///< tensors whose role is norm, with values
    std::vector<std::string> around_zero;  ///< names of those that look like gamma - 1

    /// Requires most norms: a single shift that was mistaken for a norm is no evidence.
    bool look_like_gamma_minus_one() const { return 2 * around_zero.size() > norms; }
};

/// All tensors under one recipe.
struct recipe_summary {
    std::uint64_t tensors = 0;  ///< that it was measured on
    std::uint64_t judged = 0;   ///< of them, with eligible blocks
    std::uint64_t in_danger = 0;
    std::uint64_t eligible = 0, saturated = 0;  ///< blocks
    std::uint64_t saturating_tensors = 0;       ///< with a saturated block
    /// The block closest to saturation in tensors that are not in danger, and its tensor.
    std::optional<near_block> nearest;
    std::string nearest_tensor;
};

/// A tensor of several blocks, not all zero, none with two non-zero elements.
struct unjudged_tensor {
    std::string tensor;
    std::string recipe;
};

struct cluster_report {
    analysis::result_list measured;  ///< of analyze(), with error parts
    /// Their records, with per-block figures: see the guide. Of groups if there are any; all else
    /// is about tensors.
    report::record_list results;
    std::vector<engine::skipped_tensor> skipped;
    analysis::distributions sums;           ///< see analysis_request::distributions
    std::vector<finding> findings;          ///< most severe first
    std::vector<recipe_summary> summaries;  ///< by recipe
    std::vector<unjudged_tensor> unjudged;
    norm_centres norms;
};

/// Runs the diagnosis. Tensors are read once, and those in danger again. Reads recipes, roles,
/// norm_bias, groups and distributions of `request`. Output does not depend on threads. Throws
/// base::error.
cluster_report diagnose(const std::vector<engine::tensor_ref>& tensors,
                        const analysis::analysis_request& request,
                        const engine::run_control& control);

}  // namespace mx::cluster
