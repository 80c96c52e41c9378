// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/gate_ci.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/pages/views/ci_output.hpp"
#include "libmx/pages/views/gate_view.hpp"

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
        lines.push_back(base::printable(fmt::format("{}{}: {}", name, under, gate_finding(b))));
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
        c.in_file = !rules[i].file.empty();
        c.file = rules[i].file;
        c.line = c.in_file ? rules[i].line : 0;
        c.failed = !v.holds();
        if (!c.failed) continue;
        const auto first =
            std::find_if(verdict.breaches.begin(), verdict.breaches.end(),
                         [&](const gate::breach& b) { return b.rule == i && !b.file.empty(); });
        if (c.file.empty() && first != verdict.breaches.end()) c.file = first->file;
        if (c.file.empty()) c.file = inputs.files.front().path;
        c.kind = v.broken > 0 ? "broken" : "nothing checked";
        c.problem = gate_problem(v);
        c.found = breaches_of(verdict, i, top);
    }
    return cases;
}

}  // namespace

std::string gate_junit(const rule_list& rules, const gate::gate_inputs& inputs,
                       const gate::gate_verdict& verdict, std::size_t top) {
    std::vector<std::string> files;
    for (const analysis::results_input& input : inputs.files) files.push_back(input.path);
    return ci_junit("mx gate", fmt::format("{}", fmt::join(files, " ")),
                    cases_of(rules, inputs, verdict, top));
}

std::vector<std::string> gate_annotations(const rule_list& rules, const gate::gate_inputs& inputs,
                                          const gate::gate_verdict& verdict, std::size_t top) {
    return ci_annotations("mx gate", cases_of(rules, inputs, verdict, top));
}

}  // namespace mx::pages
