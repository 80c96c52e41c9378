// SPDX-License-Identifier: Apache-2.0
// The page of a review, as `mx report` makes it and the option --html of the commands that measure
// a model: analyze, compare and cluster. What these have in common.
#pragma once

#include <span>

#include "apps/mx/options.hpp"
#include "libmx/analysis/analyze.hpp"
#include "libmx/pages/review.hpp"

namespace mx::app {

/// --min-sqnr.
void declare_min_sqnr(parser& cmd, double& db);

/// The page, with its head.
report::document review_page(std::span<const pages::result_set> sets, double min_sqnr_db);

/// Options of a command that measures a model.
struct measuring_options {
    input_options in;
    output_options out;
    run_options run;
    role_options roles;
    std::vector<std::string> recipes;
    double min_sqnr_db = pages::default_min_sqnr_db;
    bool sha256 = false;  ///< of the inputs, also without a page
};
/// The writers, --min-sqnr and --sha256.
void declare_measured_outputs(parser& cmd, measuring_options& o);

/// A model opened to be measured: outputs first, so that a path that cannot be written ends a run
/// before it begins.
struct measured_model {
    /// Completes `request` with roles, and with distributions where there is a page. `more`:
    /// outputs that the command itself writes.
    measured_model(const measuring_options& o, analysis::analysis_request& request,
                   const std::vector<std::string>& more = {});

    /// Completes `d` (schema mx.analysis/1) with its head, what was skipped and the distributions,
    /// and writes it; what --html names becomes the page of a review of `results`.
    void finish(report::document d, const std::vector<analysis::result>& results,
                const std::vector<engine::skipped_tensor>& skipped,
                const analysis::distributions& sums);

    bool has_page() const { return to.wants("html"); }

    const measuring_options& options;
    const analysis::analysis_request& request;
    engine::run_control control;
    outputs to;
    engine::model model;
    std::vector<engine::tensor_ref> tensors;
};

}  // namespace mx::app
