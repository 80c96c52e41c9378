// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/gate.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/documents/inputs.hpp"
#include "libmx/pages/views/document_page.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/policy/judged_inputs.hpp"
#include "libmx/report/cells.hpp"

namespace mx::documents {
namespace {

// A rule about the policy has no comparison of its own.
report::value symbol_of(const analysis::gate_rule& rule) {
    return rule.compare == nullptr ? pages::undefined() : pages::text(rule.compare->symbol);
}
report::value limit_of(const analysis::gate_rule& rule) {
    return rule.compare == nullptr ? pages::undefined() : pages::real(rule.limit);
}

constexpr std::string_view comparisons = "<|<=|>|>=|==|!=?";

struct judged_rule {
    const analysis::gate_rule& rule;
    const gate::rule_verdict& found;
};
constexpr std::array gate_rule_members = std::to_array<report::declared<judged_rule>>({
    {"rule", "string", "as given", [](auto& r) { return r.rule.text; }},
    {"class", "string?", "a role, a name, or summary; null: every result",
     [](auto& r) { return pages::text_or_null(r.rule.subject_text); }},
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
     [](auto& r) { return pages::text_or_null(r.found.problem); }},
});

struct ruled_breach {
    const analysis::gate_rule& rule;
    const gate::breach& of;
};
constexpr std::array breach_members = std::to_array<report::declared<ruled_breach>>({
    {"rule", "string", "", [](auto& b) { return b.rule.text; }},
    {"file", "string?", "null: a summary", [](auto& b) { return pages::text_or_null(b.of.file); }},
    {"tensor", "string?", "null: a summary",
     [](auto& b) { return pages::text_or_null(b.of.tensor); }},
    {"recipe", "string", "", [](auto& b) { return b.of.recipe; }},
    {"metric", "string", "",
     [](auto& b) { return pages::text(b.of.reached ? b.of.reached->of->name : b.rule.metric); }},
    {"value", "number?", "null: undefined", [](auto& b) { return report::to_value(b.of.figure); }},
    {"finding", "string", "the value, or why the policy says no",
     [](auto& b) { return gate::finding_of(b.of); }},
    {"comparison", comparisons, "",
     [](auto& b) { return b.of.reached ? pages::text("<") : symbol_of(b.rule); }},
    {"limit", "number?", "",
     [](auto& b) { return b.of.reached ? pages::real(b.of.reached->limit) : limit_of(b.rule); }},
});

constexpr std::array gate_head_members = std::to_array<report::declared<gate::gate_verdict>>({
    {"holds", "boolean", "every rule holds", [](auto& v) { return v.holds(); }},
    {"records", "count", "results that were read", [](auto& v) { return v.records; }},
    {"tensors", "count", "", [](auto& v) { return v.tensors; }},
    {"recipes", "count", "", [](auto& v) { return v.recipes; }},
});

report::list listed_rules(const std::vector<analysis::gate_rule>& rules,
                          const gate::gate_verdict& verdict) {
    report::list list;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        list.emplace_back(report::written(gate_rule_members, {rules[i], verdict.rules[i]}));
    }
    return list;
}

// The records that rules were checked against: "22 of 94 results and 1 total".
std::string scope_of(const gate::gate_verdict& verdict) {
    const std::string all = report::plural(verdict.records, "result");
    std::string totals = report::plural(verdict.totals, "total");
    if (verdict.checked == 0 && verdict.totals > 0) return totals;
    const std::string results =
        verdict.checked == verdict.records
            ? all
            : fmt::format("{} of {}", report::grouped(static_cast<long>(verdict.checked)), all);
    return verdict.totals == 0 ? results : fmt::format("{} and {}", results, totals);
}

report::notes verdict_of(const std::vector<analysis::gate_rule>& rules,
                         const gate::gate_verdict& verdict) {
    std::size_t failed = 0;
    report::notes why;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        if (verdict.rules[i].holds()) continue;
        ++failed;
        why.push_back(report::item(
            fmt::format("{}: {}.", rules[i].text, gate::problem_of(verdict.rules[i]))));
    }
    if (failed == 0) {
        return {fmt::format("PASSED: {} {} over {}.", report::plural(rules.size(), "rule"),
                            rules.size() == 1 ? "holds" : "hold", scope_of(verdict))};
    }
    why.insert(why.begin(),
               fmt::format("FAILED: {} of {}.", failed, report::plural(rules.size(), "rule")));
    return why;
}

report::document document_of(const gated& g) {
    report::document d;
    d.head = pages::document_head("mx.gate/1");
    d.head.emplace_back("inputs", results_list(g.inputs.files));
    report::append(d.head, gate_head_members, g.verdict);
    d.head.emplace_back("rules", listed_rules(g.rules, g.verdict));
    for (const gate::breach& b : g.verdict.breaches) {
        d.results.push_back(report::written(breach_members, {g.rules[b.rule], b}));
    }
    return d;
}

std::vector<analysis::gate_rule> rules_of(const gate_options& o) {
    std::vector<analysis::gate_rule> rules;
    for (const std::string& text : o.rules) rules.push_back(analysis::parse_gate_rule(text));
    for (const std::string& path : o.rule_files) {
        for (analysis::gate_rule& rule : analysis::read_gate_rules(path)) {
            rules.push_back(std::move(rule));
        }
    }
    if (rules.empty()) {
        base::refuse("gate: no rule; give --rule 'clamp_rate<0.001' or --rules FILE");
    }
    return rules;
}

}  // namespace

gated gate(const gate_options& o,
           const std::function<gate::gate_inputs(const std::vector<analysis::gate_rule>&)>& open) {
    gated g;
    g.rules = rules_of(o);
    const analysis::recipe_filter recipes(o.recipes);
    const policy::basis by = basis_of(o.judging);
    g.inputs = open(g.rules);
    std::optional<policy::judged_model> judged;
    if (gate::asks_policy(g.rules)) judged = policy::judge_inputs(g.inputs.files, by);
    g.verdict = gate::apply_gate(g.rules, g.inputs, recipes, judged ? &*judged : nullptr);
    g.document = document_of(g);
    pages::finish_document(g.document, verdict_of(g.rules, g.verdict), {.top = o.top});
    return g;
}

report::document_schema gate_schema() {
    return report::document_schema("mx.gate/1", "mx gate",
                                   "Rules that results must keep, and the results that break them.")
        .member({"verdict", "[string]", "what the command says, a sentence each"})
        .member({"inputs", "[@common#input]", "files that were read, in the order given"})
        .members(gate_head_members)
        .member({"rules", "[#rule]", "a rule each, in the order given"})
        .member({"results", "[#breach]", "a result that breaks a rule each"})
        .define("rule", gate_rule_members)
        .define("breach", breach_members);
}

}  // namespace mx::documents
