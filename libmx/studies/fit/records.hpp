// SPDX-License-Identifier: Apache-2.0
// The records and sentences that mx study scaling-law writes.
#pragma once

#include <string>
#include <vector>

#include "libmx/report/declared.hpp"
#include "libmx/report/record.hpp"
#include "libmx/studies/fit/fit.hpp"

namespace mx::fit {

/// The runs of a group, and the law fitted to them.
struct group_fit {
    std::string group;  ///< "": all runs are one
    std::vector<run> some;
    fitted found;
};

report::record fit_record(const runs& all, const group_fit& g, const fit_request& request);
std::vector<report::record> prediction_records(const runs& all, const group_fit& g);
/// The best sizes and their losses over the range of compute of the runs, up to ten times beyond
/// it.
std::vector<report::record> frontier_records(const group_fit& g, form is);
std::vector<report::record> run_records(const runs& all, const group_fit& g);
std::vector<report::record> left_out_records(const runs& all);

/// The schema mx.fit/1.
report::document_schema fit_schema();

/// Sentences about the fit.
std::vector<std::string> fit_summary(const runs& all, const std::vector<group_fit>& groups,
                                     const fit_request& request);

}  // namespace mx::fit
