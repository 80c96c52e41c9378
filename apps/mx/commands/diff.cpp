// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "apps/mx/fail_above.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/pages/views/diff_view.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/diff/diff.hpp"

namespace mx::app {
namespace {

// Without --recipe: under floor, both formats have a clamp zone.
constexpr std::array diff_recipes{"mxfp8:scale=floor", "mxfp4:scale=floor"};

struct diff_options {
    input_options in;
    output_options out;
    run_options run;
    role_options roles;
    std::vector<std::string> recipes;
    std::vector<std::string> labels;
    std::vector<std::string> fail_above;
    bool as_given = false;
    bool all = false;
};

report::list finding_list(const diff::diff_result& d, const diff::dump_labels& labels) {
    report::list list;
    for (const diff::drift_finding& f : d.findings) {
        const bool known = f.forecast.has_value();
        list.emplace_back(
            report::record{{"tensor", f.tensor},
                           {"recipe", f.recipe},
                           {"blocks", integer(f.blocks)},
                           {"clamp_zone_blocks", to_list(f.in_zone)},
                           {"direction", text(f.falling ? "falling" : "rising")},
                           {"clamp_zone_distance", to_list(f.distance, real)},
                           {"extrapolated_arrival", known ? real(f.forecast->at) : undefined()},
                           {"extrapolation_r2", known ? real(f.forecast->r2) : undefined()},
                           {"finding", diff::sentence_of(f, labels)}});
    }
    return list;
}

// The dumps in the order in which they are compared. A shell puts step1000 before step200, which
// makes a collapse look like a recovery; but two dumps that are named are in the order meant.
std::vector<std::string> ordered(const diff_options& o, const std::vector<std::string>& given) {
    if (o.as_given || (given.size() == 2 && given == o.in.files)) return given;
    std::vector<std::string> paths = diff::by_number(given);
    if (paths != given && !o.labels.empty()) {
        refuse(
            "--labels: the dumps are not in the order of their numbers ({}); name them "
            "in that order, or keep this one with --as-given",
            fmt::join(diff::label_dumps(given, {}).text, ", "));
    }
    return paths;
}

// The sentence for a limit that is exceeded or that nothing was held against; else empty.
std::string failure_of(const report::record_list& results, const fail_limit& limit) {
    const limit_check check = check_limit(results, limit);
    if (!check.any) {
        return fmt::format("--fail-above {} has nothing to check: no tensor of these dumps has it",
                           limit.text);
    }
    if (!check.worst) return {};
    const report::record& r = *check.worst;
    return fmt::format("{} under {}, {} to {}: {} {}, more than --fail-above {}",
                       report::text_of(r, "tensor"), report::text_of(r, "recipe"),
                       report::text_of(r, "label_a"), report::text_of(r, "label_b"), limit.figure,
                       report::significant_text(check.value, 4), limit.text);
}

int run_diff(const diff_options& o) {
    std::vector<fail_limit> limits;
    for (const std::string& text : o.fail_above) limits.push_back(parse_fail_limit(text));
    diff::diff_request request;
    const std::vector<std::string> given = io::matched_paths(o.in.files);
    request.paths = ordered(o, given);
    request.labels = diff::label_dumps(request.paths, o.labels);
    request.recipes = recipes_of(o.recipes, diff_recipes);
    request.roles = finder_of(o.roles);
    request.norm_bias = o.roles.norm_bias;
    const engine::run_control control = control_of(o.run, request.recipes);
    outputs to(o.out, o.in.files);
    // Each input is a model of its own, be it one file or many.
    std::vector<engine::model> models;
    std::vector<const io::reader*> dumps;
    report::list inputs;
    for (const std::string& path : request.paths) {
        models.emplace_back(std::vector{path}, o.in.open, o.in.views);
        require_distinct(paths_of(models.back()), to.paths());
        dumps.push_back(&models.back().reader());
        for (report::value& file : input_list(models.back())) inputs.push_back(std::move(file));
    }
    const std::vector<engine::tensor_ref> chosen =
        with_roles(engine::select(dumps, o.in.globs), o.roles, request.roles);
    diff::diff_result result = diff::diff(dumps, chosen, request, control);

    std::vector<std::string> failures;
    for (const fail_limit& limit : limits) {
        const std::string failure = failure_of(result.results, limit);
        if (!failure.empty()) failures.push_back(failure);
    }
    report::document d;
    const bool reordered = request.paths != given;
    d.sections = pages::diff_sections(result, request.labels, o.all);
    d.sections.insert(
        d.sections.begin(),
        pages::order_section(request.labels, reordered ? diff::label_dumps(given, {}).text
                                                       : std::vector<std::string>()));
    d.head = pages::document_head("mx.diff/1");
    d.head.emplace_back("inputs", std::move(inputs));
    const std::vector<std::string>& labels = request.labels.text;
    d.head.emplace_back("labels", report::list(labels.begin(), labels.end()));
    d.head.emplace_back("steps", to_list(request.labels.steps));
    d.head.emplace_back("reordered", reordered);
    d.head.emplace_back("identical", result.identical);
    d.tail.emplace_back("series", report::list(result.series.begin(), result.series.end()));
    d.tail.emplace_back("findings", finding_list(result, request.labels));
    d.tail.emplace_back("summary", report::list(result.summary.begin(), result.summary.end()));
    d.tail.emplace_back("left_out", skipped_list(result.left_out));
    d.results = std::move(result.results);
    finish_with_page(to, d, o.run.quiet);
    for (const std::string& failure : failures) remark(failure);
    return failures.empty() ? exit_code::fine : exit_code::difference;
}

}  // namespace

runner declare_diff(parser& cmd) {
    const auto o = std::make_shared<diff_options>();
    declare_inputs(cmd, o->in);
    declare_roles(cmd, o->roles);
    cmd.group("Comparison");
    cmd.add_option("-r,--recipe RECIPE", o->recipes,
                   "what codes and scales are of, e.g. mxfp4:scale=even; repeatable");
    cmd.add_option("--labels LABEL,...", o->labels,
                   "what the dumps are called, in their order; growing whole numbers are steps")
        ->delimiter(',');
    cmd.add_flag("--as-given", o->as_given,
                 "compare the dumps in the order given, not in that of the numbers in their names");
    cmd.add_option("--fail-above FIGURE=LIMIT", o->fail_above,
                   "exit with 1 when this figure of any tensor is above LIMIT (nrmse=0.01, "
                   "codes_moved=5%), or when no tensor has it; repeatable");
    cmd.add_flag("--all", o->all, "show every tensor, in the order of the first dump");
    declare_outputs(cmd, o->out);
    declare_run(cmd, o->run);
    cmd.description(
        "Compares dumps of one model, each with the next: steps of a training, or an original and "
        "what became of it. Says how far values moved (nrmse), how many blocks got another scale, "
        "how many elements another code, also where the scale stayed, and with three dumps or more "
        "how many flipped back; and which norm gains are on their way to where the recipe clamps. "
        "Tensors are matched by name; dtypes may differ. Three dumps or more, and those that a "
        "quoted pattern names, are put in the order of the numbers in their names (step200 before "
        "step1000) where they differ in nothing else. Without --recipe: mxfp8 and mxfp4 with the "
        "scale rule floor.");
    cmd.examples(
        "mx diff step100.safetensors step200.safetensors\n"
        "mx diff step*.safetensors --role norm --json drift.json\n"
        "mx diff model.safetensors quantized.safetensors --recipe mxfp4\n"
        "mx diff a.npz b.npz c.npz --labels 0,500,1000\n"
        "mx diff model.safetensors new.safetensors --fail-above nrmse=0.01 --quiet\n");
    return [o] { return run_diff(*o); };
}

}  // namespace mx::app
