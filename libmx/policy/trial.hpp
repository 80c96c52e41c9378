// SPDX-License-Identifier: Apache-2.0
// One tensor under one recipe, judged by the limits of a policy.
#pragma once

#include <optional>
#include <vector>

#include "libmx/policy/figures.hpp"
#include "libmx/policy/policy.hpp"

namespace mx::policy {

/// A figure that reached a limit.
struct reached_limit {
    const figure* of = nullptr;
    double value = 0;
    double limit = 0;
    verdict is = verdict::no;
};

struct trial {
    std::optional<std::size_t> column;  ///< of the recipe in the table; none: not measured
    verdict is = verdict::safe;
    /// The worst limit that was reached; of equally bad ones, the first in the policy's order.
    std::optional<reached_limit> worst;
    double over_normal = 0;  ///< error_over_normal
    /// largest_share, if the error is that of this element (the setting `dominated`); else 0.
    double one_element = 0;
};

/// Judges the result of the tensor `t` in a column by `vetoes` (policy::vetoes of a role, which may
/// be one that the policy keeps, such as norms) and the setting `dominated`; `normal` is
/// figures_on_normal_data of the recipe.
trial judge_tensor(const std::vector<const rule*>& vetoes, double dominated,
                   const measured_tensor& t, std::size_t column, const analysis::result& result,
                   const metrics::row& normal);

}  // namespace mx::policy
