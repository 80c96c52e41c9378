// SPDX-License-Identifier: Apache-2.0
// The page of mx report.
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
    std::vector<std::string> files;  ///< results files
    judging_options judging;
    digest_function digest;  ///< of inputs that still exist with their size; none: no digests
    analysis::results_opener open = analysis::open_results;
};

struct reported {
    mx::report::document screen;  ///< for a terminal, with the decisions for JSON
    /// For HTML and Markdown; none: the same document.
    std::optional<mx::report::document> page;
    std::string summary;  ///< the verdict in one line; empty without tensors
};

/// The output in a notebook: the screen's sections and the first figure of the page.
std::vector<mx::report::section> beginning_of(const reported& r);

/// Throws base::error.
reported report(const report_options& o);

}  // namespace mx::documents
