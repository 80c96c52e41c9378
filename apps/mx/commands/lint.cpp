// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <tuple>

#include "apps/mx/options.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/documents/lint.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/lint/fix.hpp"
#include "libmx/lint/lint.hpp"

namespace mx::app {
namespace {

struct lint_command {
    lint::lint_options how;
    std::string file;
    std::string junit;
    std::string annotations;
    output_options out;
    std::string fixed;  // the folder of --fix
    bool fix = false, all = false, quiet = false;
};

// A line for the findings of a rule with the same outcome, on stderr if results are on stdout.
void report_repairs(const lint_command& o, const std::vector<lint::repair>& all, bool on_stdout) {
    std::map<std::tuple<bool, std::string_view, std::string>, std::vector<const lint::repair*>>
        same;
    std::size_t done = 0;
    for (const lint::repair& r : all) {
        same[{!r.done, r.of.rule, r.how}].push_back(&r);
        done += r.done ? 1 : 0;
    }
    std::string text =
        fmt::format("{}: {} of {} findings repaired\n", base::printable(o.fixed), done, all.size());
    for (const auto& [outcome, of] : same) {
        text +=
            fmt::format("{} {} {}{}: {}\n",
                        std::get<0>(outcome) ? "not repaired:" : "repaired:", std::get<1>(outcome),
                        base::printable(of.front()->of.tensor),
                        of.size() > 1 ? fmt::format(" and {} more", of.size() - 1) : "",
                        base::printable(std::get<2>(outcome)));
    }
    std::fputs(text.c_str(), on_stdout ? stdout : stderr);
}

int run_lint(const lint_command& o) {
    if (!o.annotations.empty()) {
        require_one_of("--annotations", "kind", o.annotations, {"github"});
    }
    if (o.fix == o.fixed.empty()) {
        refuse(o.fix ? "--fix: name the new folder with -o" : "-o: only with --fix");
    }
    std::vector<std::string> more;
    for (const std::string& path : {o.junit, o.fixed}) {
        if (!path.empty()) more.push_back(path);
    }
    outputs to(o.out, {o.file}, more);
    std::optional<io::output_file> junit;
    if (!o.junit.empty()) junit.emplace(o.junit);
    if (o.fix) {
        const auto repairs = lint::fix(o.file, o.how, o.fixed, &interrupted());
        const bool results = std::ranges::find(o.out.paths, "-") != o.out.paths.end();
        if (!o.quiet) report_repairs(o, repairs, !results);
    }
    const std::string& file = o.fix ? o.fixed : o.file;
    const lint::lint_result result = lint::lint(file, o.how);
    const std::vector<lint::finding>& findings = result.findings;
    if (junit) {
        junit->append(pages::junit(
            "mx lint", file, documents::lint_cases(file, o.how, findings, lint::severity::error)));
        junit->commit();
    }
    write_with_page(to, documents::lint_document(file, o.how, result, o.all), o.quiet);
    if (!o.annotations.empty()) {
        // On stderr: GitHub reads both streams, and stdout may be JSON.
        for (const lint::severity level : {lint::severity::error, lint::severity::warning}) {
            for (const std::string& line : pages::annotations(
                     "mx lint", documents::lint_cases(file, o.how, findings, level))) {
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
                 "read all scales and tensors: the rule 'value', and tied tensors byte by byte");
    cmd.add_option("--original FILE", o->how.original,
                   "the model before quantization, a file or folder: the rule 'convention'")
        ->file_name();
    cmd.group("Repair");
    cmd.add_flag("--fix", o->fix,
                 "write a copy with what can be repaired without changing a value: the index, and "
                 "tensor scales of partners; then check the copy");
    cmd.add_option("-o,--output FOLDER", o->fixed, "the new folder of --fix")->file_name();
    declare_outputs(cmd, o->out);
    cmd.add_option("--junit FILE", o->junit, "JUnit XML: a test case per rule")->file_name();
    cmd.add_option("--annotations KIND", o->annotations,
                   "github: a line '::error file=...' on stderr per rule that found errors, and "
                   "'::warning' for warnings");
    cmd.add_flag("--all", o->all, "every finding in the table, not the first 10 of each rule");
    declare_quiet(cmd, o->quiet);
    std::string names;
    for (const lint::rule_row& r : lint::rules) {
        names += fmt::format("{}{} ({})", names.empty() ? "" : "; ", r.name, r.meaning);
    }
    cmd.description(
        "Checks what a quantized checkpoint promises to an engine: that every quantized tensor has "
        "its scales, that partners agree, that configuration, index and files agree. Reads headers "
        "and scales only, of long arrays of scales a part, unless --values asks for all, and opens "
        "what other commands refuse. Exits with 1 if an error is found; warnings alone give 0. "
        "With "
        "--fix, results are those of the copy, after a line for each finding that says what was "
        "changed or why nothing was. The rules are: " +
        names + ".");
    cmd.examples(
        "mx lint model/\n"
        "mx lint model/ --rules missing-scale,fused-scales\n"
        "mx lint model/ --original model-bf16/\n"
        "mx lint model/ --values --ignore 'default-scale:*experts*'\n"
        "mx lint model/ --fix -o repaired/\n"
        "mx lint model/ --json findings.json --junit lint.xml --annotations github\n");
    return [o] { return run_lint(*o); };
}

}  // namespace mx::app
