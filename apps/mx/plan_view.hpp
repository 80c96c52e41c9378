// SPDX-License-Identifier: Apache-2.0
// What `mx plan` says.
#pragma once

#include "libmx/pipeline/plan/plan.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

/// The document of a plan made from `inputs`; its table names the `top` tensors with the largest
/// part of the error among those that got another recipe than most.
report::document plan_document(const std::vector<pipeline::results_input>& inputs,
                               const pipeline::plan::candidates& from,
                               const pipeline::plan::plan_goal& goal, const pipeline::plan::plan& p,
                               const std::vector<pipeline::gate::gate_rule>& rules,
                               std::size_t top);

}  // namespace mx::app
