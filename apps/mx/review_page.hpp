// SPDX-License-Identifier: Apache-2.0
// The page of a review, as `mx report` makes it and the option --html of the commands that measure
// a model: analyze, compare and cluster. What these have in common.
#pragma once

#include <span>

#include "apps/mx/judging.hpp"
#include "apps/mx/options.hpp"
#include "libmx/analysis/analyze.hpp"
#include "libmx/pages/review.hpp"

namespace mx::app {

/// --policy, --target, --eval and --summary.
struct review_options {
    judging_options judging;
    bool summary = false;  ///< one line in place of tables
};
void declare_review(parser& cmd, review_options& o);

/// The verdict on results, and the page where it is asked for, with its head.
pages::review review_of(std::span<const pages::result_set> sets, const judging_options& o,
                        bool with_page);

/// What --summary prints, unless another output is stdout.
void print_summary(const pages::review& r, const output_options& out);

/// Options of a command that measures a model.
struct measuring_options {
    input_options in;
    output_options out;
    run_options run;
    role_options roles;
    std::vector<std::string> recipes;
    review_options review;
    bool sha256 = false;  ///< of the inputs, also without a page
};
/// The writers, --sha256, and what declare_review declares.
void declare_measured_outputs(parser& cmd, measuring_options& o);

/// A model opened to be measured: outputs first, so that a path that cannot be written ends a run
/// before it begins.
struct measured_model {
    /// Completes `request` with roles, with distributions where there is a page, and, where it has
    /// no recipe, with those that the policy judges. `more`: outputs that the command itself
    /// writes.
    measured_model(const measuring_options& o, analysis::analysis_request& request,
                   const std::vector<std::string>& more = {});

    /// Completes `d` (schema mx.analysis/1) with its head, what was skipped and the distributions,
    /// and writes it; what --html names becomes the page of a review of `results`. With
    /// `verdict_first` the sections begin with its verdict.
    void finish(report::document d, const std::vector<analysis::result>& results,
                const std::vector<engine::skipped_tensor>& skipped,
                const analysis::distributions& sums, bool verdict_first = false);

    bool has_page() const { return to.wants("html"); }

    const measuring_options& options;
    const analysis::analysis_request& request;
    outputs to;
    engine::model model;
    std::vector<engine::tensor_ref> tensors;
    engine::run_control control;
};

}  // namespace mx::app
