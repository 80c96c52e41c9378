// SPDX-License-Identifier: Apache-2.0
// Documents of measurements of a model, schema mx.analysis/1: shared by analyze, compare and
// cluster.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/documents/inputs.hpp"
#include "libmx/documents/judging.hpp"
#include "libmx/documents/parts.hpp"
#include "libmx/pages/review.hpp"

namespace mx::documents {

struct measuring_options {
    input_options in;
    role_options roles;
    /// None: those that the policy judges, and more for some studies.
    std::vector<std::string> recipes;
    /// Which tensors share a record (analysis::group_tensors); none: each has its own. Of analyze
    /// and compare.
    std::vector<std::string> groups;
    judging_options judging;
    bool page = false;       ///< make the page of a review, and measure its contents
    bool summary = false;    ///< the verdict in one line was requested
    digest_function digest;  ///< none: inputs are listed without SHA-256
    part_options parts;
};

/// The source of tensors and threads: called in this order, after the options were checked.
struct run_environment {
    std::function<opened_tensors()> open;
    std::function<engine::run_control(std::span<const codec::recipe>)> control;
};

/// A document, and the verdict on its results if the document begins with it or it was requested.
struct measured {
    report::document document;
    pages::review review;
};

/// Opened tensors and their request.
struct measuring_session {
    /// Completes `request` with roles, with distributions for a page, and, if it has no recipe,
    /// with those that the policy judges; with `baselines`, also with those of today's inference.
    measuring_session(const char* command, const measuring_options& o,
                      analysis::analysis_request& request, const run_environment& environment,
                      bool baselines = false);

    /// Whether only a part is measured: sections and statements about all tensors are left out.
    bool is_part() const { return documents::is_part(request.partial); }

    using view_function = std::function<std::vector<report::section>(const pages::result_set&)>;
    /// Completes `d` with its head, what was skipped and the distributions, and then with the
    /// sections of `view`. With `verdict_first` the sections begin with the verdict.
    measured finish(report::document d, const analysis::result_list& results,
                    const std::vector<engine::skipped_tensor>& skipped,
                    const analysis::distributions& sums, bool verdict_first,
                    const view_function& view = {}) const;

    const char* command;  ///< "analyze": of the document's head
    const measuring_options& options;
    const analysis::analysis_request& request;
    opened_tensors opened;
    engine::run_control control;

  private:
    report::record head() const;
};

/// The verdict on results, and the page on request, with its head. `digested`: as in
/// pages::review_options.
pages::review review_of(std::span<const pages::result_set> sets, const judging_options& o,
                        bool with_page, std::vector<std::string> digested = {});

}  // namespace mx::documents
