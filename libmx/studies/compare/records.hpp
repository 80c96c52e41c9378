// SPDX-License-Identifier: Apache-2.0
// A comparison as members of its JSON document.
#pragma once

#include "libmx/report/record.hpp"
#include "libmx/studies/compare/comparison.hpp"

namespace mx::compare {

/// A standing as a record: recipe, ratio with interval, wins, SQNR, bits, rates.
report::record standing_record(const sweep_plan& plan, const standing& s);

/// baseline, ranking, pareto, best_by_bits, roles, series, disagreement, phase (null without a
/// sweep of phases), left_out.
report::record comparison_members(const sweep_plan& plan, const comparison& c);

}  // namespace mx::compare
