// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>

#include "apps/mx/fail_above.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/parts.hpp"
#include "apps/mx/review_page.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/documents/diff.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::app {
namespace {

struct diff_command {
    documents::diff_options options;
    output_options out;
    run_options run;
    std::vector<std::string> fail_above;
};

// A sentence if a limit is exceeded or nothing could be checked; else empty.
std::string failure_of(const report::record_list& results, const fail_limit& limit,
                       std::string_view inputs) {
    const limit_check check = check_limit(results, limit);
    if (!check.any) {
        return fmt::format("--fail-above {} has nothing to check: no tensor of these {} has it",
                           limit.text, inputs);
    }
    if (!check.worst) return {};
    const report::record& r = *check.worst;
    return fmt::format("{} under {}, {} to {}: {} {}, more than --fail-above {}",
                       report::text_of(r, "tensor"), report::text_of(r, "recipe"),
                       report::text_of(r, "label_a"), report::text_of(r, "label_b"), limit.figure,
                       report::significant_text(check.value, 4), limit.text);
}

int run_diff(const diff_command& o) {
    check_part_outputs(o.options.parts, o.out);
    std::vector<fail_limit> limits;
    for (const std::string& text : o.fail_above) limits.push_back(parse_fail_limit(text));
    std::optional<outputs> to;
    const std::vector<std::string> paths = io::matched_paths(o.options.in.files);
    const bool results = documents::are_results(paths);
    const auto control = [&](std::span<const codec::recipe> recipes) {
        engine::run_control c = control_of(o.run, recipes);
        to.emplace(o.out, o.options.in.files);
        return c;
    };
    // Each input is a separate model, whether one file or many.
    const auto open = [&](const std::string& path,
                          const input_options& in) -> documents::opened_dump {
        const auto model =
            std::make_shared<const engine::model>(std::vector{path}, in.open, in.views);
        require_distinct(paths_of(*model), to->paths());
        return {{model, &model->reader()}, model->files()};
    };
    if (results) to.emplace(o.out, paths);
    const report::document d = results ? documents::changes(o.options, paths)
                                       : documents::diff(o.options, {control, open});
    std::vector<std::string> failures;
    // Needs all tensors, which a part does not have.
    if (!o.options.parts.shard.empty()) limits.clear();
    for (const fail_limit& limit : limits) {
        const std::string failure = failure_of(d.results, limit, results ? "results" : "dumps");
        if (!failure.empty()) failures.push_back(failure);
    }
    write_with_page(*to, d, o.run.quiet);
    for (const std::string& failure : failures) remark(failure);
    return failures.empty() ? exit_code::fine : exit_code::difference;
}

}  // namespace

runner declare_diff(parser& cmd) {
    const auto o = std::make_shared<diff_command>();
    declare_inputs(cmd, o->options.in);
    declare_roles(cmd, o->options.roles);
    cmd.group("Comparison");
    cmd.add_option(
        "-r,--recipe RECIPE", o->options.recipes,
        "recipe of the codes and scales, e.g. mxfp4:scale=even; of results files, the recipe, "
        "or a pattern of those, that is compared; repeatable");
    cmd.add_option("--labels LABEL,...", o->options.labels,
                   "labels of the dumps, in their order; increasing whole numbers are steps")
        ->delimiter(',');
    cmd.add_flag("--as-given", o->options.as_given,
                 "compare the dumps in the given order, not in that of the numbers in their names");
    cmd.add_option("--transpose-first GLOB", o->options.transposed_first,
                   "of two dumps, swap the last two axes of matching tensors of the first alone; "
                   "repeatable");
    cmd.add_option("--transpose-second GLOB", o->options.transposed_second,
                   "the same of the second alone; --transpose is for both");
    declare_groups(cmd, o->options.groups);
    cmd.group("Comparison");
    cmd.add_option("--fail-above FIGURE=LIMIT", o->fail_above,
                   "exit with 1 when this figure of any tensor is above LIMIT (nrmse=0.01, "
                   "codes_moved=5%), or when no tensor has it; repeatable");
    cmd.add_flag("--all", o->options.all, "show every tensor, in the order of the first dump");
    declare_outputs(cmd, o->out);
    declare_parts(cmd, o->options.parts, "diff", false);
    declare_run(cmd, o->run);
    cmd.description(
        "Compares dumps of one model, each with the next: steps of a training run, or an original "
        "and its quantized version. Reports how much values changed (nrmse), how many blocks have "
        "another scale, how many elements another code, also at equal scale, and with three or "
        "more dumps how many codes changed back; and which norm gains approach the clamp zone of "
        "the recipe. Tensors are matched by name; dtypes may differ. Three or more dumps, and "
        "those that a quoted pattern names, are sorted by the numbers in their names (step200 "
        "before step1000) if the names differ in nothing else. The default recipes are mxfp8 and "
        "mxfp4 with the scale rule floor. Two results files (--json of mx analyze, compare or "
        "cluster) are compared by tensor and recipe: the figures before and after, the tensors "
        "with the largest change first, and what only one file has; -r, -t and --role select.");
    cmd.examples(
        "mx diff step100.safetensors step200.safetensors\n"
        "mx diff step*.safetensors --role norm --json drift.json\n"
        "mx diff model.safetensors quantized.safetensors --recipe mxfp4\n"
        "mx diff mxfp4.safetensors bf16.safetensors --transpose-second '*_proj'\n"
        "mx diff before.json after.json --fail-above nrmse_change=0.01\n"
        "mx diff moe-100/ moe-200/ --group 'experts.*'\n"
        "mx diff a.npz b.npz c.npz --labels 0,500,1000\n"
        "mx diff model.safetensors new.safetensors --fail-above nrmse=0.01 --quiet\n");
    return [o] { return run_diff(*o); };
}

}  // namespace mx::app
