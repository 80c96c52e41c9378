// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/gate.hpp"

#include <optional>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/pages/document_parts.hpp"
#include "libmx/pages/views/gate_view.hpp"
#include "libmx/policy/judged_inputs.hpp"

namespace mx::documents {
namespace {

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
    g.document = pages::gate_document(g.rules, g.inputs, g.verdict, o.top);
    pages::add_verdict(g.document);
    return g;
}

}  // namespace mx::documents
