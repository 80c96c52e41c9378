// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/gate_view.hpp"

#include <fmt/format.h>

#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::plural;

std::string_view words_for(const gate::rule_verdict& v) {
    return v.holds() ? "holds" : v.broken > 0 ? "broken" : "fails";
}

report::value text_or_null(const std::string& s) { return s.empty() ? undefined() : text(s); }

// A rule about the policy has no comparison of its own.
report::value symbol_of(const analysis::gate_rule& rule) {
    return rule.compare == nullptr ? undefined() : text(rule.compare->symbol);
}
report::value limit_of(const analysis::gate_rule& rule) {
    return rule.compare == nullptr ? undefined() : real(rule.limit);
}

constexpr std::string_view comparisons = "<|<=|>|>=|==|!=?";

struct judged_rule {
    const analysis::gate_rule& rule;
    const gate::rule_verdict& found;
};
constexpr std::array rule_members = std::to_array<report::declared<judged_rule>>({
    {"rule", "string", "as given", [](auto& r) { return r.rule.text; }},
    {"class", "string?", "a role, a name, or summary; null: every result",
     [](auto& r) { return text_or_null(r.rule.subject_text); }},
    {"metric", "string", "", [](auto& r) { return r.rule.metric; }},
    {"comparison", comparisons, "null: the rule policy", [](auto& r) { return symbol_of(r.rule); }},
    {"limit", "number?", "null: the rule policy", [](auto& r) { return limit_of(r.rule); }},
    {"or_null", "boolean", "an undefined figure keeps the rule",
     [](auto& r) { return r.rule.or_null; }},
    {"checked", "count", "results that it was held against",
     [](auto& r) { return r.found.checked; }},
    {"broken", "count", "", [](auto& r) { return r.found.broken; }},
    {"undefined", "count", "", [](auto& r) { return r.found.undefined; }},
    {"holds", "boolean", "", [](auto& r) { return r.found.holds(); }},
    {"problem", "string?", "why nothing was checked",
     [](auto& r) { return text_or_null(r.found.problem); }},
});

struct ruled_breach {
    const analysis::gate_rule& rule;
    const gate::breach& of;
};
constexpr std::array breach_members = std::to_array<report::declared<ruled_breach>>({
    {"rule", "string", "", [](auto& b) { return b.rule.text; }},
    {"file", "string?", "null: a summary", [](auto& b) { return text_or_null(b.of.file); }},
    {"tensor", "string?", "null: a summary", [](auto& b) { return text_or_null(b.of.tensor); }},
    {"recipe", "string", "", [](auto& b) { return b.of.recipe; }},
    {"metric", "string", "",
     [](auto& b) { return b.of.reached ? text(b.of.reached->of->name) : text(b.rule.metric); }},
    {"value", "number?", "null: undefined", [](auto& b) { return report::to_value(b.of.figure); }},
    {"comparison", comparisons, "",
     [](auto& b) { return b.of.reached ? text("<") : symbol_of(b.rule); }},
    {"limit", "number?", "",
     [](auto& b) { return b.of.reached ? real(b.of.reached->limit) : limit_of(b.rule); }},
});

constexpr std::array head_members = std::to_array<report::declared<gate::gate_verdict>>({
    {"holds", "boolean", "every rule holds", [](auto& v) { return v.holds(); }},
    {"records", "count", "results that were read", [](auto& v) { return v.records; }},
    {"tensors", "count", "", [](auto& v) { return v.tensors; }},
    {"recipes", "count", "", [](auto& v) { return v.recipes; }},
});

report::list listed_rules(const std::vector<analysis::gate_rule>& rules,
                          const gate::gate_verdict& verdict) {
    report::list list;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        list.emplace_back(report::written(rule_members, {rules[i], verdict.rules[i]}));
    }
    return list;
}

report::section rule_section(const report::list& rules, const gate::gate_verdict& verdict) {
    report::section s{
        .heading = fmt::format("{} over {} of {} and {}", plural(rules.size(), "rule"),
                               plural(verdict.records, "result"), plural(verdict.tensors, "tensor"),
                               plural(verdict.recipes, "recipe")),
        .columns = columns_of({"rule", column_of("checked", "results\nchecked", cell::integer),
                               column_of("broken", "broken\nby", cell::integer),
                               column_of("undefined", "\nundefined", cell::integer), "verdict"})};
    for (std::size_t i = 0; i < rules.size(); ++i) {
        report::record row = std::get<report::record>(rules[i]);
        row.emplace_back("verdict", text(words_for(verdict.rules[i])));
        s.rows.push_back(std::move(row));
    }
    return s;
}

report::section breach_section(const report::record_list& breaches,
                               const gate::gate_verdict& verdict, std::size_t top) {
    report::section s{.columns = columns_of({"tensor", "recipe", column_of("shown", "value")}),
                      .group_field = "rule"};
    bool undefined_shown = false;
    std::size_t in_rule = 0;
    for (std::size_t i = 0; i < breaches.size(); ++i) {
        const bool first = i == 0 || verdict.breaches[i].rule != verdict.breaches[i - 1].rule;
        in_rule = first ? 1 : in_rule + 1;
        if (in_rule > top) continue;
        report::record row = breaches[i];
        const gate::breach& b = verdict.breaches[i];
        undefined_shown = undefined_shown || (!b.figure && b.why.empty());
        row.emplace_back("shown", gate_finding(verdict.breaches[i]));
        if (verdict.breaches[i].tensor.empty()) show(row, "tensor", "(all tensors together)");
        s.rows.push_back(std::move(row));
    }
    s.heading = s.rows.size() == breaches.size()
                    ? fmt::format("Broken by {}", plural(breaches.size(), "result"))
                    : fmt::format("Broken by {}; the worst {} of each rule (--top)",
                                  plural(breaches.size(), "result"), top);
    if (undefined_shown) {
        s.notes.emplace_back(
            "An undefined figure breaks its rule; 'or null' after the number accepts it.");
    }
    return s;
}

// The records that rules were checked against: "22 of 94 results and 1 total".
std::string scope_of(const gate::gate_verdict& verdict) {
    const std::string all = plural(verdict.records, "result");
    std::string totals = plural(verdict.totals, "total");
    if (verdict.checked == 0 && verdict.totals > 0) return totals;
    const std::string results =
        verdict.checked == verdict.records
            ? all
            : fmt::format("{} of {}", report::grouped(static_cast<long>(verdict.checked)), all);
    return verdict.totals == 0 ? results : fmt::format("{} and {}", results, totals);
}

report::section verdict_section(const std::vector<analysis::gate_rule>& rules,
                                const gate::gate_verdict& verdict) {
    report::section s{.heading = "Verdict"};
    std::size_t failed = 0;
    std::vector<std::string> why;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        if (verdict.rules[i].holds()) continue;
        ++failed;
        why.push_back(fmt::format("- {}: {}.", rules[i].text, gate_problem(verdict.rules[i])));
    }
    if (failed == 0) {
        s.notes.push_back(fmt::format("PASSED: {} {} over {}.", plural(rules.size(), "rule"),
                                      rules.size() == 1 ? "holds" : "hold", scope_of(verdict)));
        return s;
    }
    s.notes.push_back(fmt::format("FAILED: {} of {}.", failed, plural(rules.size(), "rule")));
    s.notes.insert(s.notes.end(), why.begin(), why.end());
    return s;
}

}  // namespace

std::string gate_finding(const gate::breach& b) {
    if (!b.why.empty()) return b.why;
    return b.figure ? fmt::format("{:.6g}", *b.figure) : "undefined";
}

std::string gate_problem(const gate::rule_verdict& v) {
    std::string why;
    if (v.broken > 0) {
        const bool all_undefined = v.undefined == v.broken;
        why =
            fmt::format("{} {} of {}", all_undefined ? "undefined for" : "broken by",
                        report::grouped(static_cast<long>(v.broken)), plural(v.checked, "result"));
        if (!all_undefined && v.undefined > 0) {
            why += fmt::format(", {} of them undefined",
                               report::grouped(static_cast<long>(v.undefined)));
        }
    }
    if (!v.problem.empty()) why += fmt::format("{}{}", why.empty() ? "" : "; ", v.problem);
    return why;
}

report::list results_list(const std::vector<analysis::results_input>& inputs) {
    report::list files;
    for (const analysis::results_input& input : inputs) {
        files.emplace_back(report::record{{"path", input.path}, {"bytes", integer(input.bytes)}});
    }
    return files;
}

report::document gate_document(const std::vector<analysis::gate_rule>& rules,
                               const gate::gate_inputs& inputs, const gate::gate_verdict& verdict,
                               std::size_t top) {
    report::document d;
    d.head = document_head("mx.gate/1");
    d.head.emplace_back("inputs", results_list(inputs.files));
    report::append(d.head, head_members, verdict);
    report::list list = listed_rules(rules, verdict);
    for (const gate::breach& b : verdict.breaches) {
        d.results.push_back(report::written(breach_members, {rules[b.rule], b}));
    }
    d.sections.push_back(verdict_section(rules, verdict));
    d.sections.push_back(rule_section(list, verdict));
    if (!d.results.empty()) d.sections.push_back(breach_section(d.results, verdict, top));
    d.head.emplace_back("rules", std::move(list));
    return d;
}

report::document_schema gate_schema() {
    return report::document_schema("mx.gate/1", "mx gate",
                                   "Rules that results must keep, and the results that break them.")
        .member({"verdict", "[string]", "what the command says, a sentence each"})
        .member({"inputs", "[@common#input]", "files that were read, in the order given"})
        .members(head_members)
        .member({"rules", "[#rule]", "a rule each, in the order given"})
        .member({"results", "[#breach]", "a result that breaks a rule each"})
        .define("rule", rule_members)
        .define("breach", breach_members);
}

}  // namespace mx::pages
