// SPDX-License-Identifier: Apache-2.0
// Changes from dump to dump, of documents of mx diff.
#pragma once

#include <string>
#include <vector>

#include "libmx/report/document.hpp"

namespace mx::pages {

/// Consecutive dumps, from one document of mx diff, which must stay.
struct dump_series {
    std::vector<std::string> labels;
    std::vector<double> steps;  ///< by label; 0, 1, ... where they are no steps
    bool numbered = false;      ///< the labels are steps
    const report::list* series = nullptr;
    const report::list* findings = nullptr;
};
dump_series series_of(const report::record& head, const report::record& tail);

/// Figures over dumps, and norm gains that approach the clamp zone. Empty without dumps.
report::section steps_section(const std::vector<dump_series>& dumps);

}  // namespace mx::pages
