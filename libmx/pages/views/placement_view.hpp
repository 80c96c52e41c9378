// SPDX-License-Identifier: Apache-2.0
// The output of `mx plan --by divergence`.
#pragma once

#include "libmx/pages/document_parts.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/studies/plan/divergence.hpp"
#include "libmx/studies/plan/plan.hpp"

namespace mx::pages {

/// The document of mx.placement/1 without its tables, which placement_sections makes of it.
report::document placement_document(const plan::measured_divergences& measured,
                                    const plan::plan_goal& goal, const plan::plan& p);
report::document_schema placement_schema();

/// The verdict with the command that checks the plan, the recipes, and the places that differ.
std::vector<report::section> placement_sections(const document_parts& d);

}  // namespace mx::pages
