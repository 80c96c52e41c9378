// SPDX-License-Identifier: Apache-2.0
// Results of a model for views and pages.
#pragma once

#include <string>
#include <vector>

#include "libmx/analysis/result_list.hpp"
#include "libmx/report/record_list.hpp"

namespace mx::pages {

/// One document (schemas mx.analysis/1 and mx.diff/1), in memory or read from JSON. Non-owning.
struct result_set {
    std::string name;  ///< of its file, for messages
    const report::record* head;
    const analysis::result_list* results;  ///< of mx.analysis/1
    const report::record* tail;
    /// The member `series` of `mx compare`, if `tail` does not hold it: see document::long_members.
    const report::record_list* series = nullptr;
};

}  // namespace mx::pages
