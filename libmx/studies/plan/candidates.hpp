// SPDX-License-Identifier: Apache-2.0
// The choices of a plan: per tensor the measured recipes, with bits and error.
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
    /// The policy's verdict on it for this tensor: safe or needs evaluation.
    policy::verdict is = policy::verdict::evaluate;
};

struct plan_tensor {
    std::shared_ptr<const analysis::tensor_identity> of;
    std::uint64_t elements = 0;
    double signal = 0;  ///< sum of squares of the elements that the errors are over
    std::vector<plan_option> options;
    std::string reason;  ///< why it keeps its precision, or why the policy's recipe is not its own
    std::optional<std::size_t> shares = {};  ///< index of the tensor whose storage is its own too
};

/// Tensors that get the same recipe.
struct plan_group {
    std::string name;
    std::vector<std::size_t> tensors;  ///< indices into candidates::tensors
};

/// A tensor that keeps its stored precision because it is not an operand of a product.
struct kept_tensor {
    std::shared_ptr<const analysis::tensor_identity> of;
    std::uint64_t elements = 0;
    std::optional<std::uint64_t> bits;  ///< none where its dtype is unknown
    std::string reason;
};

/// A tensor, or one of its recipes, that a plan cannot choose, with the reason.
struct left_out_choice {
    std::string tensor;
    std::string recipe;  ///< empty: the tensor as a whole
    std::string reason;
};

struct candidates {
    /// In the order of the results, then `stored` if it is a choice.
    std::vector<analysis::named_recipe> recipes;
    /// By recipe: that of the inputs of the layers, or none, mixed. Empty if only tensors were
    /// measured.
    std::vector<std::string> inputs;
    std::vector<plan_tensor> tensors;  ///< those that are chosen for
    std::vector<kept_tensor> kept;
    std::vector<left_out_choice> left_out;
    std::uint64_t forbidden = 0;     ///< choices that a rule forbids
    std::uint64_t vetoed = 0;        ///< choices that the policy rules out on their tensor
    std::vector<plan_group> groups;  ///< every tensor is in one, many alone
    /// That recipe as a choice for a tensor; nullptr if it is none.
    const plan_option* option_of(std::size_t tensor, std::uint32_t recipe) const;
    /// The recipes that are a choice for all tensors of a group, with the sums of bits and errors,
    /// in the order of the first tensor.
    std::vector<plan_option> options_of(const plan_group& g) const;
    std::uint64_t elements() const;
    double signal() const;
};

struct candidate_request {
    std::vector<std::string> globs;          ///< tensors whose name matches; none: every tensor
    std::vector<analysis::gate_rule> rules;  ///< choices that break one are forbidden
    std::vector<std::string> recipes;        ///< as --recipe; none: those that the policy names
    std::vector<std::string> groups;         ///< as in analysis::group_tensors
    bool separate = false;                   ///< parts of a fused matrix may differ
    bool keep = false;                       ///< offer `stored` too
    bool follow = false;  ///< what the policy recommends is each tensor's only choice
};

/// The members of results that plans read.
report::read_options plan_members();

/// Gathers the choices of one model from any number of results files; `judged` is their judgement.
/// Tensors that the policy keeps are kept regardless of rules. Others may have the recipes that the
/// policy names for their role (with request.recipes: any) unless it rules them out on the tensor;
/// if it rules out all of them, only stored_choice remains. Leaves out choices without a measured
/// error, choices that poison elements that another choice does not, and tensors without a choice.
/// Tensors of a fused matrix (engine::fused_name), of one of request.groups and of one storage are
/// a group; with request.follow only the last. In a group without a recipe that is a choice for all
/// its tensors, only stored_choice remains. Throws base::error: usage if a tensor is in two files,
/// a rule leaves a tensor or a group no choice, the policy is undecided (with request.follow), or
/// nothing can be planned; input if two results of the same tensor and recipe differ, or a result
/// has impossible figures.
candidates gather_candidates(const std::vector<analysis::results_input>& inputs,
                             const candidate_request& request, const policy::judged_model& judged);

}  // namespace mx::plan
