// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <optional>

#include "apps/mx/options.hpp"
#include "libmx/pages/views/lint_view.hpp"
#include "libmx/studies/lint/lint.hpp"

namespace mx::app {
namespace {

struct lint_command {
    std::string path;
    lint::lint_request request;
    bool rules = false, all = false;
    std::string junit, annotations;
    output_options out;
    bool quiet = false;
};

int run_lint(const lint_command& o) {
    if (o.rules) {
        outputs to(o.out, {});
        to.finish(pages::lint_rules_document(), o.quiet);
        return exit_code::fine;
    }
    if (o.path.empty()) refuse("lint: CHECKPOINT is required; see 'mx help lint'");
    if (!o.annotations.empty()) {
        require_one_of("--annotations", "kind", o.annotations, {"github"});
    }
    outputs to(o.out, {o.path},
               o.junit.empty() ? std::vector<std::string>() : std::vector{o.junit});
    std::optional<io::output_file> junit;
    if (!o.junit.empty()) junit.emplace(o.junit);
    const lint::checkpoint c = lint::open_checkpoint(o.path);
    const lint::lint_outcome found = lint::run_rules(c, o.request);
    const std::vector<pages::ci_case> cases = pages::lint_cases(c, found);
    if (junit) {
        junit->append(pages::ci_junit("mx lint", o.path, cases));
        junit->commit();
    }
    to.finish(pages::lint_document(c, found, o.all), o.quiet);
    if (!o.annotations.empty()) {
        // On stderr: GitHub reads both streams, and stdout may be JSON.
        for (const std::string& line : pages::ci_annotations("mx lint", cases)) {
            std::fputs((line + "\n").c_str(), stderr);
        }
    }
    return found.count(lint::severity::error) == 0 ? exit_code::fine : exit_code::difference;
}

}  // namespace

runner declare_lint(parser& cmd) {
    const auto o = std::make_shared<lint_command>();
    cmd.group("Input");
    cmd.add_option("CHECKPOINT", o->path,
                   "a file, a folder with its configuration, or an index NAME.index.json; at an "
                   "address, an index or a file");
    cmd.group("Rules");
    cmd.add_flag("--values", o->request.values,
                 "also read every scale and every value: NaN, Inf, zeros, identical experts");
    cmd.add_option("--ignore RULE", o->request.ignored,
                   "a rule whose findings are left out, or RULE:GLOB, of tensors that match; "
                   "repeatable");
    cmd.add_flag("--rules", o->rules, "list the rules and exit");
    declare_outputs(cmd, o->out);
    cmd.add_option("--junit FILE", o->junit, "JUnit XML: a test case per rule")->file_name();
    cmd.add_option("--annotations KIND", o->annotations,
                   "github: a line '::error file=...' on stderr per rule with errors");
    cmd.group("Output");
    cmd.add_flag("--all", o->all, "every finding in the table, not the first 5 of each rule");
    cmd.add_flag("-q,--quiet", o->quiet, "no table, only the exit code");
    cmd.description(
        "Checks what inference engines take for granted of a quantized checkpoint: scales that are "
        "there, finite and of the right shape and direction, one tensor scale for q, k and v and "
        "for gate and up, a configuration and an index that agree with the tensors. Reads headers "
        "and scales (the first MiB of each array), so that the size of the model does not matter. "
        "Exits with 1 if a finding is an error, with 0 otherwise.");
    cmd.examples(
        "mx lint model/\n"
        "mx lint model.safetensors.index.json --values\n"
        "mx lint model/ --ignore default-scale --ignore 'config:*.gate'\n"
        "mx lint model/ --json findings.json --junit lint.xml --annotations github --quiet\n");
    return [o] { return run_lint(*o); };
}

}  // namespace mx::app
