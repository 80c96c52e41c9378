// SPDX-License-Identifier: Apache-2.0
// The page a design review decides from: what to use for each class of tensors, why, at what cost,
// and what would change that.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libmx/analysis/result.hpp"
#include "libmx/pages/recommend.hpp"
#include "libmx/report/document.hpp"

namespace mx::pages {

/// One document (schemas mx.analysis/1 and mx.diff/1), in memory or read back from its JSON.
/// Nothing is owned.
struct result_set {
    std::string name;  ///< of its file, for messages
    const report::record* head;
    const std::vector<analysis::result>* results;  ///< of mx.analysis/1
    const report::record* tail;
};

struct review_options {
    policy choice;
    /// What makes the page: "mx 0.1.0, gcc 12.2.0, Release".
    std::string made_by;
};

/// The section that inputs are listed in.
inline constexpr const char* inputs_heading = "Inputs";

/// The page, schema mx.report/1: results are the recommendations, the tail holds the ladders of
/// what other floors would lead to; the caller puts schema and tool before the head. The same sets
/// give the same page. Throws base::error (input) for documents of other schemas.
report::document make_review(std::span<const result_set> sets, const review_options& options);

}  // namespace mx::pages
