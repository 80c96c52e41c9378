// SPDX-License-Identifier: Apache-2.0
// THE LIST of remedies: what is tried instead of a recipe under which a tensor is in danger, and
// how one of them is chosen.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "libmx/engine/stored_precision.hpp"
#include "libmx/studies/cluster/block_survey.hpp"

namespace mx::cluster {

/// A remedy for a certain recipe.
struct remedy {
    std::string change;  ///< "scale=rceil", "block=1x16"
    codec::recipe recipe;
};

/// The remedies for `r`; what its dialect does not have is tried in dialect ocp, what its formats
/// do not have is left out.
std::vector<remedy> remedies_of(const codec::recipe& r);

/// A remedy as measured on a tensor.
struct measured_remedy {
    std::string change;
    std::string recipe;  ///< canonical, or bf16_name
    report::value rmse, saturated_block_rate, bits_per_element;
    double defective_share[defect_count] = {};
};

/// The remedies for `recipe` on each of `tensors`, bf16 (bf16_name) last. Of `request`, roles and
/// norm_bias matter. Throws base::error.
std::vector<std::vector<measured_remedy>> measure_remedies(
    const std::vector<engine::tensor_ref>& tensors, const codec::recipe& recipe,
    const engine::run_request& request, const engine::run_control& control);

/// sqrt(mean((x - bf16(x))^2)) over the finite values of every tensor, to nearest even; null where
/// there are none, and where a value rounds beyond bfloat16. Norms get their bias first.
std::vector<report::value> bf16_cast_rmse(const std::vector<engine::tensor_ref>& tensors,
                                          const engine::run_request& request,
                                          const engine::run_control& control);

/// The share of defective blocks from which on a tensor is in danger, and which a remedy must stay
/// below.
inline constexpr double danger_share = 0.01;

/// The remedy to recommend for a tensor with this R-MSE: of the recipes that bring the share of
/// `what` below danger_share and have less R-MSE, the one with the fewest bits per element, of
/// those the one with the least R-MSE, of those the first. When there is none: bf16, the last.
std::size_t choose_remedy(const std::vector<measured_remedy>& measured, defect what,
                          const report::value& rmse);

}  // namespace mx::cluster
