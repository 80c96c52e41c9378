// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/gate_ci.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "libmx/pages/views/ci.hpp"

namespace mx::pages {
namespace {

using rule_list = std::vector<analysis::gate_rule>;

// The worst violations of a rule, one per line.
std::vector<std::string> breaches_of(const gate::gate_verdict& verdict, std::size_t rule,
                                     std::size_t top) {
    std::vector<std::string> lines;
    for (const gate::breach& b : verdict.breaches) {
        if (b.rule != rule || lines.size() == top) continue;
        const std::string name = b.tensor.empty() ? "all tensors together" : b.tensor;
        const std::string under = b.recipe.empty() ? "" : fmt::format(" under {}", b.recipe);
        lines.push_back(fmt::format("{}{}: {}", name, under, gate::finding_of(b)));
    }
    return lines;
}

std::vector<ci_case> cases_of(const rule_list& rules, const gate::gate_inputs& inputs,
                              const gate::gate_verdict& verdict, std::size_t top) {
    std::vector<ci_case> cases;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        const gate::rule_verdict& v = verdict.rules[i];
        ci_case& c = cases.emplace_back();
        c.name = rules[i].text;
        c.holds = v.holds();
        c.file = rules[i].file;
        c.line = rules[i].line;
        if (c.holds) continue;
        c.type = v.broken > 0 ? "broken" : "nothing checked";
        c.problem = gate::problem_of(v);
        c.lines = breaches_of(verdict, i, top);
        const auto first =
            std::find_if(verdict.breaches.begin(), verdict.breaches.end(),
                         [&](const gate::breach& b) { return b.rule == i && !b.file.empty(); });
        c.at = first == verdict.breaches.end() ? inputs.files.front().path : first->file;
    }
    return cases;
}

}  // namespace

std::string gate_junit(const rule_list& rules, const gate::gate_inputs& inputs,
                       const gate::gate_verdict& verdict, std::size_t top) {
    std::vector<std::string> files;
    for (const analysis::results_input& input : inputs.files) files.push_back(input.path);
    return junit("mx gate", fmt::format("{}", fmt::join(files, " ")),
                 cases_of(rules, inputs, verdict, top));
}

std::vector<std::string> gate_annotations(const rule_list& rules, const gate::gate_inputs& inputs,
                                          const gate::gate_verdict& verdict, std::size_t top) {
    return annotations("mx gate", cases_of(rules, inputs, verdict, top));
}

}  // namespace mx::pages
