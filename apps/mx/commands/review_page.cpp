// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/review_page.hpp"

#include <fmt/format.h>

#include <utility>

#include "apps/mx/build_facts.hpp"
#include "apps/mx/options.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::app {

void declare_min_sqnr(parser& cmd, double& db) {
    cmd.add_option("--min-sqnr", db,
                   fmt::format("SQNR in dB that a class of tensors must keep for a recipe to be "
                               "recommended on the page ({:g})",
                               pages::default_min_sqnr_db))
        ->finite()
        ->type_name("DB")
        ->group("Output");
}

void declare_page(parser& cmd, review_page_options& o) {
    declare_min_sqnr(cmd, o.min_sqnr_db);
    cmd.add_flag("--sha256", o.sha256, "also the SHA-256 of the inputs in JSON; --html implies it")
        ->group("Output");
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

void finish_with_page(outputs& to, const report::document& d,
                      const std::vector<analysis::result>& results, const review_page_options& o,
                      bool quiet) {
    if (!to.wants("html")) return to.finish(d, quiet);
    const pages::result_set set{"", &d.head, &results, &d.tail};
    const report::document page = review_page({&set, 1}, o.min_sqnr_db);
    to.finish(d, quiet, {{"html", &page}});
}

}  // namespace mx::app
