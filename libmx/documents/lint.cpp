// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/lint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "libmx/pages/views/document_page.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"

namespace mx::documents {
namespace {

constexpr std::size_t lines_of_case = 5;

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
        if (!r.applies(how)) continue;
        if (!how.rules.empty() && std::ranges::find(how.rules, r.name) == how.rules.end()) continue;
        checked_rule c{&r, 0, 0};
        for (const lint::finding& f : findings) {
            if (f.rule == r.name) ++(f.level == lint::severity::error ? c.errors : c.warnings);
        }
        checked.push_back(c);
    }
    return checked;
}

// "fused-scales: model.layers.1.self_attn.k_proj (and 2 more): ..."
report::notes verdict_of(const lint::lint_result& result,
                         const std::vector<checked_rule>& checked) {
    const std::vector<lint::finding>& findings = result.findings;
    report::notes notes;
    std::uint64_t errors = 0, warnings = 0;
    for (const checked_rule& c : checked) {
        errors += c.errors;
        warnings += c.warnings;
    }
    const std::string all = errors == 0 ? "" : report::plural(errors, "error");
    notes.push_back(findings.empty()
                        ? fmt::format("No finding by {} rules.", checked.size())
                        : fmt::format("{}{}{}.", all, errors > 0 && warnings > 0 ? " and " : "",
                                      warnings == 0 ? "" : report::plural(warnings, "warning")));
    const lint::finding* before = nullptr;
    for (const lint::finding& f : findings) {
        if (before != nullptr && before->rule == f.rule && before->level == f.level) continue;
        before = &f;
        const auto same = std::ranges::count_if(findings, [&](const lint::finding& other) {
            return other.rule == f.rule && other.level == f.level;
        });
        notes.push_back(report::item(
            fmt::format("{}: {}{} {}{}. Effect: {}.", f.rule, f.tensor,
                        same > 1 ? fmt::format(" (and {} more)", same - 1) : std::string(),
                        f.message, f.found.empty() ? std::string() : ": " + f.found, f.effect)));
    }
    if (result.scale_bytes_read < result.scale_bytes) {
        notes.push_back(fmt::format(
            "Read: headers, and {:.1f} of {:.1f} MB of scales: the first, middle and last "
            "64 KiB of each array (--values: all).",
            static_cast<double>(result.scale_bytes_read) / 1e6,
            static_cast<double>(result.scale_bytes) / 1e6));
    }
    return notes;
}

}  // namespace

report::document lint_document(const std::string& path, const lint::lint_options& how,
                               const lint::lint_result& result, bool all) {
    const std::vector<checked_rule> checked = checked_by(how, result.findings);
    report::document d;
    d.head = pages::document_head("mx.lint/1");
    d.head.emplace_back("checkpoint", path);
    d.head.emplace_back("rules", report::listed(checked_members, checked));
    for (const lint::finding& f : result.findings) {
        d.results.push_back(report::written(finding_members, f));
    }
    d.head.emplace_back("scale_bytes", report::tally(result.scale_bytes));
    d.head.emplace_back("scale_bytes_read", report::tally(result.scale_bytes_read));
    pages::finish_document(d, verdict_of(result, checked), {.all = all});
    return d;
}

std::vector<pages::ci_case> lint_cases(const std::string& path, const lint::lint_options& how,
                                       const std::vector<lint::finding>& findings,
                                       lint::severity level) {
    std::vector<pages::ci_case> cases;
    for (const checked_rule& rule : checked_by(how, findings)) {
        pages::ci_case c;
        c.name = rule.rule->name;
        const std::uint64_t count = level == lint::severity::error ? rule.errors : rule.warnings;
        c.holds = count == 0;
        c.type = level_name(level);
        c.level = level_name(level);
        c.problem = fmt::format("{}: {} found", rule.rule->meaning, count);
        c.at = path;
        for (const lint::finding& f : findings) {
            if (f.rule != c.name || f.level != level || c.lines.size() == lines_of_case) continue;
            c.lines.push_back(fmt::format("{} {}: {}; {}", f.tensor, f.message, f.found, f.effect));
        }
        cases.push_back(std::move(c));
    }
    return cases;
}

report::document_schema lint_schema() {
    return report::document_schema("mx.lint/1", "mx lint",
                                   "What a quantized checkpoint states wrongly or lacks.")
        .member({"checkpoint", "string", "the file or folder, as given"})
        .member({"rules", "[#rule]", "the rules that were applied, in the order of the table"})
        .member({"scale_bytes", "count", "of all arrays of scales"})
        .member({"scale_bytes_read", "count", "fewer where arrays are long; all with --values"})
        .member({"results", "[#finding]", "a finding each; errors first"})
        .member({"verdict", "[string]", "what the command says, a sentence each"})
        .define("rule", checked_members)
        .define("finding", finding_members);
}

}  // namespace mx::documents
