// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/document_page.hpp"

#include <algorithm>
#include <array>

#include "libmx/pages/views/changes_view.hpp"
#include "libmx/pages/views/diff_view.hpp"
#include "libmx/pages/views/eval_view.hpp"
#include "libmx/pages/views/fit_view.hpp"
#include "libmx/pages/views/gate_view.hpp"
#include "libmx/pages/views/gemm_view.hpp"
#include "libmx/pages/views/layer_view.hpp"
#include "libmx/pages/views/lint_view.hpp"
#include "libmx/pages/views/placement_view.hpp"
#include "libmx/pages/views/plan_view.hpp"
#include "libmx/pages/views/project_view.hpp"
#include "libmx/pages/views/runs_view.hpp"
#include "libmx/pages/views/study_view.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::pages {
namespace {

using report::section;
using report::text_of;

// THE LIST of views.
struct view_row {
    const char* schema;
    const char* title;  ///< of the page
    std::vector<section> (*view)(const document_parts&, const view_options&);
};
constexpr std::array view_rows{
    view_row{"mx.plan/1", "Mixed precision: a plan", plan_view},
    view_row{"mx.placement/1", "Mixed precision by divergence: a plan", placement_view},
    view_row{"mx.gate/1", "Rules checked against results", gate_view},
    view_row{"mx.diff/1", "Dumps of a model compared", diff_view},
    view_row{"mx.changes/1", "Results compared", changes_view},
    view_row{"mx.eval/1", "A model under recipes", eval_view},
    view_row{"mx.layer/1", "Products of a linear layer in training", layer_view},
    view_row{"mx.lint/1", "Findings in a quantized checkpoint", lint_view},
    view_row{"mx.gemm/1", "A matrix product as matrix units compute it", gemm_view},
    view_row{"mx.runs/1", "Training runs compared", runs_view},
    view_row{"mx.fit/1", "A scaling law", fit_view},
    view_row{"mx.project/1", "A training step, projected", project_view},
    view_row{"mx.study/1", "A study of training runs", study_view},
};

const view_row* row_of(const document_parts& d) {
    const auto at = std::ranges::find(view_rows, text_of(d.head, "schema"),
                                      [](const view_row& row) { return row.schema; });
    return at == view_rows.end() ? nullptr : &*at;
}

// The verdict, with the figures of a first section without a heading beside it, and the view.
void add_sections(report::document& d, section verdict, const document_parts& of,
                  const view_options& o) {
    std::vector<section> view = row_of(of)->view(of, o);
    if (!view.empty() && view.front().heading.empty() && !view.front().figures.empty()) {
        verdict.figures = std::move(view.front().figures);
        view.erase(view.begin());
    }
    put(d.sections, std::move(verdict));
    for (section& s : view) {
        if (s.rows.empty()) s.columns.clear();
        put(d.sections, std::move(s));
    }
}

}  // namespace

void finish_document(report::document& d, report::notes verdict, const view_options& o) {
    d.tail.emplace_back("verdict", verdict_lines(verdict));
    add_sections(d, {.heading = verdict_heading, .notes = std::move(verdict)},
                 {d.head, d.results, d.tail}, o);
}

std::optional<report::document> document_page(const document_parts& d) {
    const view_row* row = row_of(d);
    if (row == nullptr) return {};
    report::document page;
    page.title = row->title;
    page.head = d.head;
    add_sections(page, verdict_of(d.tail), d, {.page = true});
    return page;
}

report::document document_page(const report::document& d) {
    return *document_page(document_parts{d.head, d.results, d.tail});
}

}  // namespace mx::pages
