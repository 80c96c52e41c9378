// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "apps/mx/fail_above.hpp"
#include "apps/mx/review_page.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/documents/studies.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::app {
namespace {

struct cluster_command {
    documents::cluster_options options;
    measured_outputs to;
    std::optional<double> fail_above;
};

// Whether a block of any tensor can saturate.
bool any_judged(const report::record& tail) {
    const auto* health = report::member<report::list>(tail, "health");
    return std::any_of(health->begin(), health->end(), [](const report::value& v) {
        return report::number_of(std::get<report::record>(v), "judged") != 0.0;
    });
}

// A sentence about the largest rate above `limit`, or that nothing could be checked; empty if the
// limit holds.
std::string failure_of(const report::document& d, bool groups, double limit) {
    const limit_check check = check_limit(
        d.results, {"", groups ? "most_saturated_block_rate" : "saturated_block_rate", limit});
    if (check.worst) {
        return fmt::format(
            "{} under {}: {} % of the blocks saturate, more than --fail-above {}",
            report::text_of(*check.worst, groups ? "most_saturated_member" : "tensor"),
            report::text_of(*check.worst, "recipe"), report::percent_text(check.value), limit);
    }
    return any_judged(d.tail)
               ? ""
               : "--fail-above has nothing to check: no tensor has a block that can saturate";
}

int run_cluster(cluster_command o) {
    measured_run run(o.options, o.to);
    const documents::measured found = documents::cluster(o.options, run.environment());
    const std::string failure =
        o.fail_above && o.options.parts.shard.empty()
            ? failure_of(found.document, !o.options.groups.empty(), *o.fail_above)
            : std::string();
    run.finish(found);
    if (failure.empty()) return exit_code::fine;
    remark(failure);
    return exit_code::difference;
}

}  // namespace

runner declare_cluster(parser& cmd) {
    const auto o = std::make_shared<cluster_command>();
    o->options.in.views.vectors = true;  // gains are vectors, even with additional axes of length 1
    declare_inputs(cmd, o->options.in);
    declare_roles(cmd, o->options.roles);
    cmd.group("Diagnosis");
    cmd.add_option("-r,--recipe RECIPE", o->options.recipes,
                   "recipe to quantize to (mxfp8:scale=floor, mxfp4:scale=floor and those of the "
                   "policy); repeatable");
    cmd.add_option("--fail-above RATE", o->fail_above,
                   "exit with 1 when more than this share (0 to 1) of any tensor's blocks saturate "
                   "under any of the recipes")
        ->finite()
        ->in_range(0.0, 1.0);
    cmd.add_flag("--all", o->options.all, "show every finding instead of the ten worst");
    declare_groups(cmd, o->options.groups);
    declare_measured_outputs(cmd, o->options, o->to, "cluster");
    declare_run(cmd, o->to.run);
    cmd.description(
        "Finds the tensors with blocks that lose all information: their values are so close "
        "together, and so placed in their binade, that all of them get the largest code "
        "(saturate), become zero (die) or get the same magnitude (collapse). Gives the reason and "
        "measures remedies: the scale rules rceil and floor-bump, an offset, a smaller block, "
        "bf16. A tensor with only one axis longer than 1, such as 1x512x1, is read as a vector.");
    cmd.examples(
        "mx cluster model.safetensors\n"
        "mx cluster model.safetensors --role norm --norm-bias 1\n"
        "mx cluster model.safetensors -r mxfp8:scale=floor,axis=flat --json findings.json\n"
        "mx cluster moe/ --group 'experts.*' --json findings.json\n"
        "mx cluster model.safetensors --fail-above 0.01 --quiet\n");
    return [o] { return run_cluster(*o); };
}

}  // namespace mx::app
