// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/review_page.hpp"

#include <utility>

#include "apps/mx/build_facts.hpp"

namespace mx::app {
namespace {

analysis::analysis_request& with_finder(analysis::analysis_request& request,
                                        const role_options& o) {
    request.roles = finder_of(o);
    request.norm_bias = o.norm_bias;
    return request;
}

}  // namespace

void declare_min_sqnr(parser& cmd, double& db) {
    cmd.add_option("--min-sqnr DB", db,
                   fmt::format("SQNR in dB that a class of tensors must keep for a recipe to be "
                               "recommended on the page ({:g})",
                               pages::default_min_sqnr_db))
        ->finite();
}

void declare_measured_outputs(parser& cmd, measuring_options& o) {
    declare_outputs(cmd, o.out);
    declare_min_sqnr(cmd, o.min_sqnr_db);
    cmd.add_flag("--sha256", o.sha256, "also the SHA-256 of the inputs in JSON; --html implies it");
}

report::document review_page(std::span<const pages::result_set> sets, double min_sqnr_db) {
    pages::review_options options;
    options.choice.min_sqnr_db = min_sqnr_db;
    options.made_by = fmt::format("mx {}, {}, {}", version, compiler, build_type);
    report::document page = pages::make_review(sets, options);
    report::record head = pages::document_head("mx.report/1");
    for (auto& member : page.head) head.push_back(std::move(member));
    page.head = std::move(head);
    return page;
}

measured_model::measured_model(const measuring_options& o, analysis::analysis_request& r,
                               const std::vector<std::string>& more)
    : options(o),
      request(with_finder(r, o.roles)),
      control(control_of(o.run, r.recipes)),
      to(o.out, o.in.files, more),
      model(open_inputs(o.in, to.paths())),
      tensors(with_roles(model.select(o.in.globs), o.roles, r.roles)) {
    r.distributions = r.distributions || has_page();
}

void measured_model::finish(report::document d, const std::vector<analysis::result>& results,
                            const std::vector<engine::skipped_tensor>& skipped,
                            const analysis::distributions& sums) {
    d.head = pages::document_head("mx.analysis/1");
    d.head.emplace_back("inputs", input_list(model, options.sha256 || has_page()));
    d.tail.emplace_back("skipped", skipped_list(skipped));
    if (request.distributions) d.tail.emplace_back("distributions", sums.members());
    if (!has_page()) return to.finish(d, options.run.quiet);
    const pages::result_set set{"", &d.head, &results, &d.tail};
    const report::document page = review_page({&set, 1}, options.min_sqnr_db);
    to.finish(d, options.run.quiet, {{"html", &page}});
}

}  // namespace mx::app
