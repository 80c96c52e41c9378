// SPDX-License-Identifier: Apache-2.0
// The page for a design review: which recipe each class of tensors should have, why, at what cost
// and risk, and what would change that.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libmx/pages/verdict.hpp"
#include "libmx/pages/views/result_set.hpp"
#include "libmx/policy/judged_model.hpp"
#include "libmx/report/document.hpp"
#include "libmx/studies/show/tensor_view.hpp"

namespace mx::pages {

struct review_options {
    policy::basis judged_by;
    /// The program that makes the page: "mx 0.1.0, gcc 12.2.0, Release".
    std::string made_by;
    /// Files whose SHA-256 results do not record, and which it was taken of for the page.
    std::vector<std::string> digested = {};
};

struct review {
    /// Only the sections of the verdict, as shown in a terminal.
    std::vector<report::section> first_screen;
    std::string summary;  ///< the verdict in one line; empty without tensors
    /// The page, schema mx.report/3. Its results are the decisions, one per tensor; the caller adds
    /// schema and tool before the head. Empty unless requested.
    report::document page;
    /// The tensors whose blocks the page can show, worst first, and their position among its
    /// sections: see add_blocks.
    std::vector<harmed_tensor> worst;
    std::size_t worst_at = 0;
};

/// Judges the sets together: for a tensor under a recipe the first result counts. The same sets
/// give the same page. Throws base::error (input) for documents of other schemas.
review make_review(std::span<const result_set> sets, const review_options& options,
                   bool with_page = true);

/// The schema mx.report/3.
report::document_schema report_schema();

/// Adds the blocks of the tensors `r.worst`, which the results do not contain, to the page.
void add_blocks(review& r, std::span<const show::tensor_view> views);

}  // namespace mx::pages
