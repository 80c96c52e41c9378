// SPDX-License-Identifier: Apache-2.0
// The results of mx plan as documents.
#pragma once

#include <cstddef>
#include <vector>

#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"
#include "libmx/studies/plan/divergence.hpp"
#include "libmx/studies/plan/plan.hpp"

namespace mx::documents {

/// The document of a plan made from `inputs`; `judged` is their judgement. It shows the `top`
/// tensors with the largest part of the error among those that differ from the most common recipe.
report::document plan_document(const std::vector<analysis::results_input>& inputs,
                               const plan::candidates& from, const plan::plan_goal& goal,
                               const plan::plan& p, const std::vector<analysis::gate_rule>& rules,
                               std::size_t top, const policy::judged_model& judged);
/// The schema mx.plan/1.
report::document_schema plan_schema();

/// The document of a plan by divergence.
report::document placement_document(const plan::measured_divergences& measured,
                                    const plan::plan_goal& goal, const plan::plan& p);
/// The schema mx.placement/1.
report::document_schema placement_schema();

}  // namespace mx::documents
