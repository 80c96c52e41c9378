// SPDX-License-Identifier: Apache-2.0
// The page of a review, as `mx report` and the option --html of the commands that measure make it.
#pragma once

#include <span>

#include "apps/mx/cli.hpp"
#include "apps/mx/outputs.hpp"
#include "libmx/pages/review.hpp"

namespace mx::app {

struct review_page_options {
    double min_sqnr_db = pages::default_min_sqnr_db;
    bool sha256 = false;  ///< of the inputs, also without a page
};

/// --min-sqnr.
void declare_min_sqnr(parser& cmd, double& db);
/// --min-sqnr and --sha256 of a command that measures.
void declare_page(parser& cmd, review_page_options& o);

/// The page, with its head.
report::document review_page(std::span<const pages::result_set> sets, double min_sqnr_db);

/// Writes a document of `results`; what --html names becomes the page of a review of them.
void finish_with_page(outputs& to, const report::document& d,
                      const std::vector<analysis::result>& results, const review_page_options& o,
                      bool quiet);

}  // namespace mx::app
