// SPDX-License-Identifier: Apache-2.0
// What a plan may choose from: per tensor the recipes that were measured, with bits and error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/analysis/recipe_filter.hpp"
#include "libmx/analysis/result.hpp"
#include "libmx/analysis/results_input.hpp"
#include "libmx/analysis/rule.hpp"
#include "libmx/engine/stored_precision.hpp"
#include "libmx/policy/judged_model.hpp"

namespace mx::plan {

/// A recipe for a tensor.
struct plan_option {
    std::uint32_t recipe = 0;  ///< index into candidates::recipes
    std::uint64_t bits = 0;    ///< of the whole tensor: bits_per_element times elements
    double error = 0;          ///< sum of squared errors
    /// What the policy says of it on this tensor: safe or needs evaluation.
    policy::verdict is = policy::verdict::evaluate;
};

struct plan_tensor {
    std::shared_ptr<const analysis::tensor_identity> of;
    std::uint64_t elements = 0;
    double signal = 0;  ///< sum of squares of the elements that the errors are over
    std::vector<plan_option> options;
    std::string reason;  ///< why it keeps its precision, or why the policy's recipe is not its own
};

/// A tensor that keeps its stored precision because of what it is: no operand of a product.
struct kept_tensor {
    std::shared_ptr<const analysis::tensor_identity> of;
    std::uint64_t elements = 0;
    std::optional<std::uint64_t> bits;  ///< none where its dtype is unknown
    std::string reason;
};

/// A tensor, or one of its recipes, that a plan cannot choose, and why.
struct left_out_choice {
    std::string tensor;
    std::string recipe;  ///< empty: the tensor as a whole
    std::string reason;
};

struct candidates {
    /// In the order of the results; one called `stored` comes last.
    std::vector<analysis::named_recipe> recipes;
    std::vector<plan_tensor> tensors;  ///< those that are chosen for
    std::vector<kept_tensor> kept;
    std::vector<left_out_choice> left_out;
    std::uint64_t forbidden = 0;  ///< choices that a rule forbids
    std::uint64_t vetoed = 0;     ///< choices that the policy rules out on their tensor
    std::uint64_t elements() const;
    double signal() const;
};

struct candidate_request {
    std::vector<std::string> globs;          ///< tensors whose name matches; none: every tensor
    std::vector<analysis::gate_rule> rules;  ///< choices that break one are forbidden
    std::vector<std::string> recipes;        ///< as --recipe; none: those that the policy names
    bool keep = false;                       ///< offer `stored` too
    bool follow = false;  ///< what the policy recommends is each tensor's only choice
};

/// Which members of results are needed.
report::read_options plan_members();

/// Gathers the choices of one model from any number of files of results, of which `judged` is the
/// judgement. Tensors that the policy keeps are kept, whatever rules say; others may have the
/// recipes that it names for their role (of request.recipes: any), as long as it does not rule them
/// out on the tensor. Where it rules out all of them, stored_choice is left. Choices without a
/// measured error, and those that poison elements which another choice does not, are left out; so
/// are tensors without a choice. Throws base::error: usage when a tensor comes from two files, a
/// rule leaves a tensor nothing, the policy is undecided (with request.follow), or nothing can be
/// planned; input when two results of one tensor and recipe differ, or the figures of a result
/// cannot be.
candidates gather_candidates(const std::vector<analysis::results_input>& inputs,
                             const candidate_request& request, const policy::judged_model& judged);

}  // namespace mx::plan
