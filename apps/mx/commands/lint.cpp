// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <optional>

#include "apps/mx/options.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/lint/lint.hpp"
#include "libmx/pages/views/lint_view.hpp"

namespace mx::app {
namespace {

struct lint_command {
    lint::lint_options how;
    std::string file;
    std::string junit;
    std::string annotations;
    output_options out;
    bool all = false, quiet = false;
};

int run_lint(const lint_command& o) {
    if (!o.annotations.empty()) {
        require_one_of("--annotations", "kind", o.annotations, {"github"});
    }
    outputs to(o.out, {o.file},
               o.junit.empty() ? std::vector<std::string>() : std::vector{o.junit});
    std::optional<io::output_file> junit;
    if (!o.junit.empty()) junit.emplace(o.junit);
    const std::vector<lint::finding> findings = lint::lint(o.file, o.how);
    if (junit) {
        junit->append(pages::junit(
            "mx lint", o.file, pages::lint_cases(o.file, o.how, findings, lint::severity::error)));
        junit->commit();
    }
    to.finish(pages::lint_document(o.file, o.how, findings, o.all), o.quiet);
    if (!o.annotations.empty()) {
        // On stderr: GitHub reads both streams, and stdout may be JSON.
        for (const lint::severity level : {lint::severity::error, lint::severity::warning}) {
            for (const std::string& line :
                 pages::annotations("mx lint", pages::lint_cases(o.file, o.how, findings, level))) {
                std::fputs((line + "\n").c_str(), stderr);
            }
        }
    }
    const bool failed =
        std::ranges::find(findings, lint::severity::error, &lint::finding::level) != findings.end();
    return failed ? exit_code::difference : exit_code::fine;
}

}  // namespace

runner declare_lint(parser& cmd) {
    const auto o = std::make_shared<lint_command>();
    cmd.group("Input");
    cmd.add_option("CHECKPOINT", o->file,
                   "a folder with config.json, an index, or a file; a shard stands for its folder")
        ->required();
    cmd.group("Rules");
    cmd.add_option("--rules RULE", o->how.rules,
                   "only these rules, separated by commas; default: all")
        ->delimiter(',');
    cmd.add_option("--ignore RULE", o->how.ignore,
                   "leave out what a rule finds, or as RULE:GLOB what it finds of tensors that "
                   "match (*, ?, [set]); repeatable");
    cmd.add_flag("--values", o->how.values,
                 "read all tensors, too: the rule 'value', and tied tensors byte by byte");
    declare_outputs(cmd, o->out);
    cmd.add_option("--junit FILE", o->junit, "JUnit XML: a test case per rule")->file_name();
    cmd.add_option("--annotations KIND", o->annotations,
                   "github: a line '::error file=...' on stderr per rule that found errors, and "
                   "'::warning' for warnings");
    cmd.group("Output");
    cmd.add_flag("--all", o->all, "every finding in the table, not the first 10 of each rule");
    cmd.add_flag("-q,--quiet", o->quiet, "no table, only the exit code");
    std::string names;
    for (const lint::rule_row& r : lint::rules) {
        names += fmt::format("{}{} ({})", names.empty() ? "" : "; ", r.name, r.meaning);
    }
    cmd.description(
        "Checks what a quantized checkpoint promises to an engine: that every quantized tensor has "
        "its scales, that partners agree, that configuration, index and files agree. Reads headers "
        "and scales only, unless --values asks for more, and opens what other commands refuse. "
        "Exits with 1 if an error is found; warnings alone give 0. The rules are: " +
        names + ".");
    cmd.examples(
        "mx lint model/\n"
        "mx lint model/ --rules missing-scale,fused-scales\n"
        "mx lint model/ --values --ignore 'default-scale:*experts*'\n"
        "mx lint model/ --json findings.json --junit lint.xml --annotations github\n");
    return [o] { return run_lint(*o); };
}

}  // namespace mx::app
