// SPDX-License-Identifier: Apache-2.0
// The output of `mx plan --by divergence`.
#pragma once

#include <vector>

#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"
#include "libmx/studies/plan/divergence.hpp"
#include "libmx/studies/plan/plan.hpp"

namespace mx::pages {

/// The document of mx.placement/1 with its verdict as the only section; placement_sections makes
/// the others of its members.
report::document placement_document(const plan::measured_divergences& measured,
                                    const plan::plan_goal& goal, const plan::plan& p);
report::document_schema placement_schema();

/// The recipes, the mixtures, and the places, of a document of mx.placement/1.
std::vector<report::section> placement_sections(const report::record& head,
                                                const report::record& tail);

}  // namespace mx::pages
