// SPDX-License-Identifier: Apache-2.0
// THE LIST of remedies: what replaces a recipe under which a tensor is in danger, and how a remedy
// is chosen.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "libmx/engine/stored_precision.hpp"
#include "libmx/studies/cluster/block_survey.hpp"

namespace mx::cluster {

/// A remedy for a recipe.
struct remedy {
    std::string change;  ///< "scale=rceil", "block=1x16"
    codec::recipe recipe;
};

/// The remedies for `r`. Those that its dialect lacks are tried in dialect ocp; those that its
/// formats lack are left out.
std::vector<remedy> remedies_of(const codec::recipe& r);

/// A remedy and its figures on a tensor.
struct measured_remedy {
    std::string change;
    std::string recipe;  ///< canonical, or bf16_name
    report::value rmse, saturated_block_rate, bits_per_element;
    double defective_share[defect_count] = {};
};

/// The remedies for `recipe` on each of `tensors`, bf16 (bf16_name) last. Reads roles and norm_bias
/// of `request`. Throws base::error.
std::vector<std::vector<measured_remedy>> measure_remedies(
    const std::vector<engine::tensor_ref>& tensors, const codec::recipe& recipe,
    const engine::run_request& request, const engine::run_control& control);

/// sqrt(mean((x - bf16(x))^2)) over the finite values of every tensor, rounded to nearest even;
/// null if a tensor has none or a value rounds beyond bfloat16. Norms have their bias added first.
std::vector<report::value> bf16_cast_rmse(const std::vector<engine::tensor_ref>& tensors,
                                          const engine::run_request& request,
                                          const engine::run_control& control);

/// A tensor is in danger from this share of defective blocks on; a remedy must stay below it.
inline constexpr double danger_share = 0.01;

/// The recommended remedy for a tensor with this R-MSE: among the recipes that bring the share of
/// `what` below danger_share and have a lower R-MSE, the one with the fewest bits per element, then
/// the lowest R-MSE, then the first. If there is none: bf16, the last.
std::size_t choose_remedy(const std::vector<measured_remedy>& measured, defect what,
                          const report::value& rmse);

}  // namespace mx::cluster
