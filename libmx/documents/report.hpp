// SPDX-License-Identifier: Apache-2.0
// The page that mx report makes of results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libmx/analysis/results_input.hpp"
#include "libmx/documents/inputs.hpp"
#include "libmx/documents/judging.hpp"
#include "libmx/report/document.hpp"

namespace mx::documents {

struct report_options {
    std::vector<std::string> files;  ///< what results are called
    judging_options judging;
    digest_function
        digest;  ///< of inputs that are still there with their size; none: leaves it out
    analysis::results_opener open = analysis::open_results;
};

struct reported {
    mx::report::document screen;  ///< what a terminal shows, with the decisions for JSON
    /// What HTML and Markdown show; none: the same document.
    std::optional<mx::report::document> page;
    std::string summary;  ///< the verdict in one line; empty without tensors
};

/// What a notebook shows: the screen's sections and the first figure of the page.
std::vector<mx::report::section> beginning_of(const reported& r);

/// Throws base::error.
reported report(const report_options& o);

}  // namespace mx::documents
