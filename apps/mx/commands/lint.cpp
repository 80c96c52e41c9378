// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "apps/mx/manual.hpp"
#include "apps/mx/options.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/lint/lint.hpp"
#include "libmx/pages/views/ci.hpp"
#include "libmx/report/cells.hpp"

namespace mx::app {
namespace {

constexpr std::size_t lines_of_case = 5;
constexpr std::size_t shown_of_rule = 10;

struct lint_command {
    lint::lint_options how;
    std::string file;
    std::string junit;
    std::string annotations;
    output_options out;
    bool all = false, quiet = false;
};

std::string_view level_name(lint::severity s) {
    return s == lint::severity::error ? "error" : "warning";
}

constexpr std::array finding_members = std::to_array<report::declared<lint::finding>>({
    {"rule", "string", "as in the member rules", [](auto& f) { return std::string(f.rule); }},
    {"severity", "error|warning", "an error decides the exit code",
     [](auto& f) { return std::string(level_name(f.level)); }},
    {"tensor", "string", "or the file, or the module, that is at fault",
     [](auto& f) { return f.tensor; }},
    {"message", "string", "what is wrong", [](auto& f) { return f.message; }},
    {"found", "string", "the numbers or names behind it", [](auto& f) { return f.found; }},
    {"effect", "string", "what it does to the model", [](auto& f) { return f.effect; }},
    {"repair", "string", "what to do", [](auto& f) { return f.repair; }},
});

struct checked_rule {
    const lint::rule_row* rule;
    std::uint64_t errors, warnings;
};
constexpr std::array checked_members = std::to_array<report::declared<checked_rule>>({
    {"rule", "string", "its name", [](auto& r) { return std::string(r.rule->name); }},
    {"meaning", "string", "what it finds", [](auto& r) { return std::string(r.rule->meaning); }},
    {"errors", "count", "found", [](auto& r) { return r.errors; }},
    {"warnings", "count", "found", [](auto& r) { return r.warnings; }},
});

// The rules that were applied, with what they found.
std::vector<checked_rule> checked_by(const lint::lint_options& how,
                                     const std::vector<lint::finding>& findings) {
    std::vector<checked_rule> checked;
    for (const lint::rule_row& r : lint::rules) {
        if (r.needs_values && !how.values) continue;
        if (!how.rules.empty() && std::ranges::find(how.rules, r.name) == how.rules.end()) continue;
        checked_rule c{&r, 0, 0};
        for (const lint::finding& f : findings) {
            if (f.rule == r.name) ++(f.level == lint::severity::error ? c.errors : c.warnings);
        }
        checked.push_back(c);
    }
    return checked;
}

// "- fused-scales: model.layers.1.self_attn.k_proj and 2 more: ..."
report::section verdict_of(const std::vector<lint::finding>& findings,
                           const std::vector<checked_rule>& checked) {
    report::section s{.heading = "Verdict"};
    std::uint64_t errors = 0, warnings = 0;
    for (const checked_rule& c : checked) {
        errors += c.errors;
        warnings += c.warnings;
    }
    if (findings.empty()) {
        s.notes = {fmt::format("No finding by {} rules.", checked.size())};
        return s;
    }
    const std::string all = errors == 0 ? "" : report::plural(errors, "error");
    s.notes = {fmt::format("{}{}{}.", all, errors > 0 && warnings > 0 ? " and " : "",
                           warnings == 0 ? "" : report::plural(warnings, "warning"))};
    const lint::finding* before = nullptr;
    for (const lint::finding& f : findings) {
        if (before != nullptr && before->rule == f.rule && before->level == f.level) continue;
        before = &f;
        const auto same = std::ranges::count_if(findings, [&](const lint::finding& other) {
            return other.rule == f.rule && other.level == f.level;
        });
        s.notes.push_back(
            fmt::format("- {}: {}{} {}{}. Effect: {}.", f.rule, f.tensor,
                        same > 1 ? fmt::format(" (and {} more)", same - 1) : std::string(),
                        f.message, f.found.empty() ? std::string() : ": " + f.found, f.effect));
    }
    return s;
}

report::document document_of(const lint_command& o, const std::vector<lint::finding>& findings,
                             const std::vector<checked_rule>& checked) {
    report::document d;
    d.head = pages::document_head("mx.lint/1");
    d.head.emplace_back("checkpoint", o.file);
    report::list rules;
    for (const checked_rule& c : checked) rules.push_back(report::written(checked_members, c));
    d.head.emplace_back("rules", std::move(rules));
    for (const lint::finding& f : findings) {
        d.results.push_back(report::written(finding_members, f));
    }
    d.sections.push_back(verdict_of(findings, checked));
    if (findings.empty()) return d;
    report::section table{.heading = "Findings",
                          .columns = {{"rule", "rule"},
                                      {"severity", "severity"},
                                      {"found", "found"},
                                      {"repair", "repair"}},
                          .group_field = "tensor"};
    std::map<std::pair<std::string_view, lint::severity>, std::size_t> of_rule;
    std::size_t more = 0;
    for (const lint::finding& f : findings) {
        if (!o.all && ++of_rule[{f.rule, f.level}] > shown_of_rule) {
            ++more;
            continue;
        }
        table.rows.push_back(report::written(finding_members, f));
    }
    if (more > 0) table.notes.push_back(fmt::format("and {} more (--all: every one)", more));
    d.sections.push_back(std::move(table));
    return d;
}

// A check per rule; warnings alone do not fail one, and are annotated in a case of their own.
std::vector<pages::ci_case> cases_of(const lint_command& o,
                                     const std::vector<lint::finding>& findings,
                                     const std::vector<checked_rule>& checked,
                                     lint::severity level) {
    std::vector<pages::ci_case> cases;
    for (const checked_rule& rule : checked) {
        pages::ci_case c;
        c.name = rule.rule->name;
        const std::uint64_t count = level == lint::severity::error ? rule.errors : rule.warnings;
        c.holds = count == 0;
        c.type = level_name(level);
        c.level = level_name(level);
        c.problem = fmt::format("{}: {} found", rule.rule->meaning, count);
        c.at = o.file;
        for (const lint::finding& f : findings) {
            if (f.rule != c.name || f.level != level || c.lines.size() == lines_of_case) continue;
            c.lines.push_back(fmt::format("{} {}: {}; {}", f.tensor, f.message, f.found, f.effect));
        }
        cases.push_back(std::move(c));
    }
    return cases;
}

int run_lint(const lint_command& o) {
    if (!o.annotations.empty()) {
        require_one_of("--annotations", "kind", o.annotations, {"github"});
    }
    outputs to(o.out, {o.file},
               o.junit.empty() ? std::vector<std::string>() : std::vector{o.junit});
    std::optional<io::output_file> junit;
    if (!o.junit.empty()) junit.emplace(o.junit);
    const std::vector<lint::finding> findings = lint::lint(o.file, o.how);
    const std::vector<checked_rule> checked = checked_by(o.how, findings);
    if (junit) {
        junit->append(
            pages::junit("mx lint", o.file, cases_of(o, findings, checked, lint::severity::error)));
        junit->commit();
    }
    to.finish(document_of(o, findings, checked), o.quiet);
    if (!o.annotations.empty()) {
        // On stderr: GitHub reads both streams, and stdout may be JSON.
        for (const lint::severity level : {lint::severity::error, lint::severity::warning}) {
            for (const std::string& line :
                 pages::annotations("mx lint", cases_of(o, findings, checked, level))) {
                std::fputs((line + "\n").c_str(), stderr);
            }
        }
    }
    const bool failed =
        std::ranges::find(findings, lint::severity::error, &lint::finding::level) != findings.end();
    return failed ? exit_code::difference : exit_code::fine;
}

}  // namespace

report::document_schema lint_schema() {
    return report::document_schema("mx.lint/1", "mx lint",
                                   "What a quantized checkpoint states wrongly or lacks.")
        .member({"checkpoint", "string", "the file or folder, as given"})
        .member({"rules", "[#rule]", "the rules that were applied, in the order of the table"})
        .member({"results", "[#finding]", "a finding each; errors first"})
        .define("rule", checked_members)
        .define("finding", finding_members);
}

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
