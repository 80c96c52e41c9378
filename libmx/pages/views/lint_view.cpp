// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/lint_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "libmx/base/status.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

using lint::finding;
using lint::severity;
using report::cell;
using report::plural;

constexpr std::size_t shown_of_rule = 5;
constexpr std::size_t annotated = 10;

report::value text_or_null(const std::string& s) { return s.empty() ? undefined() : text(s); }

constexpr std::array finding_members = std::to_array<report::declared<finding>>({
    {"rule", "string", "mx lint --rules describes it", [](auto& f) { return f.rule; }},
    {"severity", "error|warning", "", [](auto& f) { return lint::to_string(f.is); }},
    {"file", "string?", "null: the checkpoint as a whole",
     [](auto& f) { return text_or_null(f.file); }},
    {"tensor", "string?", "or module; null: the checkpoint as a whole",
     [](auto& f) { return text_or_null(f.tensor); }},
    {"message", "string", "what was found", [](auto& f) { return f.message; }},
    {"effect", "string?", "what it does to the model",
     [](auto& f) { return text_or_null(f.effect); }},
    {"repair", "string?", "what to do", [](auto& f) { return text_or_null(f.repair); }},
});

struct looked_at {
    const lint::checkpoint& c;
    const lint::lint_outcome& o;
};
constexpr std::array head_members = std::to_array<report::declared<looked_at>>({
    {"files", "count", "that were opened", [](auto& l) { return l.o.files; }},
    {"tensors", "count", "a quantized one counts once", [](auto& l) { return l.o.tensors; }},
    {"quantized", "count", "tensors of codes and scales", [](auto& l) { return l.o.quantized; }},
    {"errors", "count", "", [](auto& l) { return l.o.count(severity::error); }},
    {"warnings", "count", "", [](auto& l) { return l.o.count(severity::warning); }},
    {"all_scales", "boolean", "every scale was read; else the first MiB of each array",
     [](auto& l) { return l.o.all_scales; }},
});

std::string scope_of(const lint::lint_outcome& o) {
    return fmt::format("{} in {}, {} of them quantized", plural(o.tensors, "tensor"),
                       plural(o.files, "file"), o.quantized);
}

std::string named(const finding& f) { return f.tensor.empty() ? "the checkpoint" : f.tensor; }

// "- fused-scales: 3 errors, first model.layers.0...: ..."
report::section verdict_section(const lint::lint_outcome& o) {
    report::section s{.heading = "Verdict"};
    const std::uint64_t errors = o.count(severity::error), warnings = o.count(severity::warning);
    if (errors + warnings == 0) {
        s.notes = {fmt::format("No finding: {}.", scope_of(o))};
    } else {
        s.notes = {fmt::format("{}{}{}: {}.", errors > 0 ? plural(errors, "error") : "",
                               errors > 0 && warnings > 0 ? " and " : "",
                               warnings > 0 ? plural(warnings, "warning") : "", scope_of(o))};
    }
    std::map<std::pair<severity, std::string_view>, std::vector<const finding*>> by_rule;
    std::vector<std::pair<severity, std::string_view>> order;
    for (const finding& f : o.findings) {
        std::vector<const finding*>& all = by_rule[{f.is, f.rule}];
        if (all.empty()) order.emplace_back(f.is, f.rule);
        all.push_back(&f);
    }
    for (const auto& key : order) {
        const std::vector<const finding*>& all = by_rule[key];
        const finding& f = *all.front();
        s.notes.push_back(fmt::format(
            "- {}: {}{}: {}.{}", key.second, named(f),
            all.size() > 1 ? fmt::format(" and {} more", all.size() - 1) : std::string(), f.message,
            f.effect.empty() ? std::string() : fmt::format(" Effect: {}.", f.effect)));
    }
    if (!o.all_scales) {
        s.notes.emplace_back(
            "Of long arrays of block scales the first MiB was read; --values reads all.");
    }
    return s;
}

report::section findings_section(const lint::lint_outcome& o, bool all) {
    report::section s{.heading = "Findings",
                      .columns = {{"severity", "severity"},
                                  {"tensor", "tensor", cell::name},
                                  {"message", "found", cell::text},
                                  {"repair", "repair", cell::text}},
                      .group_field = "rule"};
    std::map<std::pair<severity, std::string_view>, std::size_t> of_rule;
    std::size_t left = 0;
    for (const finding& f : o.findings) {
        if (!all && ++of_rule[{f.is, f.rule}] > shown_of_rule) {
            ++left;
            continue;
        }
        s.add_to(std::string(f.rule), std::string(lint::to_string(f.is)), named(f), f.message,
                 f.repair);
    }
    if (left > 0) s.notes.push_back(fmt::format("and {} more (--all: every one)", left));
    return s;
}

}  // namespace

report::document lint_document(const lint::checkpoint& c, const lint::lint_outcome& o, bool all) {
    report::document d;
    d.head = document_head("mx.lint/1");
    d.head.emplace_back("checkpoint", c.path);
    report::append(d.head, head_members, looked_at{c, o});
    for (const finding& f : o.findings) d.results.push_back(report::written(finding_members, f));
    d.sections.push_back(verdict_section(o));
    if (!o.findings.empty()) d.sections.push_back(findings_section(o, all));
    return d;
}

report::document_schema lint_schema() {
    return report::document_schema("mx.lint/1", "mx lint",
                                   "Contracts of a quantized checkpoint that it does not keep.")
        .member({"checkpoint", "string", "as given"})
        .members(head_members)
        .member({"results", "[#finding]", "errors first, then in the order of the rules"})
        .define("finding", finding_members);
}

std::vector<ci_case> lint_cases(const lint::checkpoint& c, const lint::lint_outcome& o) {
    std::vector<ci_case> cases;
    for (const lint::rule_row& r : lint::rules) {
        ci_case& one = cases.emplace_back();
        one.name = r.name;
        one.file = c.path;
        std::size_t errors = 0, all = 0;
        for (const finding& f : o.findings) {
            if (f.rule != r.name) continue;
            if (!f.file.empty() && all == 0) one.file = f.file;
            ++all;
            errors += f.is == severity::error ? 1u : 0u;
            if (one.found.size() < annotated) {
                one.found.push_back(base::printable(
                    fmt::format("{}: {}: {}", lint::to_string(f.is), named(f), f.message)));
            }
        }
        one.failed = errors > 0;
        one.kind = "error";
        one.problem = fmt::format("{} of {} are errors", errors, plural(all, "finding"));
    }
    return cases;
}

report::document lint_rules_document() {
    report::document d;
    d.head = document_head("mx.lint_rules/1");
    report::section s{.heading = "Rules of mx lint",
                      .columns = {{"rule", "rule"}, {"finds", "finds", cell::text}}};
    for (const lint::rule_row& r : lint::rules) s.add(std::string(r.name), std::string(r.finds));
    d.sections.push_back(std::move(s));
    return d;
}

}  // namespace mx::pages
