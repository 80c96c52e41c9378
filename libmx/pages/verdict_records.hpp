// SPDX-License-Identifier: Apache-2.0
// The verdict as records: what mx.report/3 has of it.
#pragma once

#include "libmx/pages/verdict.hpp"
#include "libmx/report/declared.hpp"

namespace mx::pages {

/// The results, one per tensor, and the members after them.
report::record_list decision_records(const policy::judged_model& m);
report::record verdict_members(const policy::judged_model& m, const verdict_context& c);
/// Both.
void declare_verdict(report::document_schema& to);

}  // namespace mx::pages
