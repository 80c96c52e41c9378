// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/report.hpp"
#include "apps/mx/review_page.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/files/file_digest.hpp"

namespace mx::app {
namespace {

struct report_command {
    documents::report_options options;
    std::string page;
    output_options out;
    bool summary = false;
    bool quiet = false;
};

int run_report(report_command o) {
    std::string& html = o.out.path_of("html");
    if (!o.page.empty() && !html.empty()) {
        refuse("--output and --html: give one of them");
    }
    if (!o.page.empty()) html = o.page;
    outputs to(o.out, o.options.files);
    o.options.digest = [](const std::string& path) { return io::sha256_of(path, &interrupted()); };
    const documents::reported r = documents::report(o.options);
    if (!r.page) {
        to.finish(r.screen, o.quiet);
        return exit_code::fine;
    }
    to.finish(r.screen, o.quiet || o.summary, {{"html", &*r.page}, {"markdown", &*r.page}});
    if (o.summary && !o.quiet) print_summary(r.summary, o.out);
    return exit_code::fine;
}

}  // namespace

runner declare_report(parser& cmd) {
    const auto o = std::make_shared<report_command>();
    cmd.group("Input");
    cmd.add_option("RESULTS", o->options.files,
                   "results files (--json) of analyze, compare, cluster, diff, plan, gate, "
                   "layer, gemm, eval or runs")
        ->required();
    cmd.group("Output");
    cmd.add_option("-o,--output FILE", o->page, "the page, as HTML: the same as --html")
        ->file_name();
    declare_outputs(cmd, o->out);
    declare_review(cmd, o->options.judging, o->summary);
    declare_quiet(cmd, o->quiet);
    cmd.description(
        "Makes the page for a design review: what to ship for each class of tensors, what keeps "
        "its precision, the cost, the largest risks and their remedies, the confidence, and what "
        "was not measured; then the worst tensors, plots, and the provenance of all figures. The "
        "rules are those of --policy (mx explain policy): only operands of matrix products are "
        "quantized, each tensor is checked against limits, and 4 bits need the metrics of a task "
        "(--eval). Several results files are combined; if they have the same tensor under the "
        "same recipe, the first counts. mx analyze, compare and cluster make the same page with "
        "--html, and add the blocks of the worst tensors. The terminal shows the beginning of the "
        "page; JSON and CSV have the decision for every tensor.");
    cmd.examples(
        "mx report results.json -o review.html\n"
        "mx report results.json --target b200 --eval scores.json --markdown review.md\n"
        "mx report analysis.json clusters.json drift.json -o review.html --quiet\n"
        "mx report results.json --summary\n");
    return [o] { return run_report(*o); };
}

}  // namespace mx::app
