// SPDX-License-Identifier: Apache-2.0
// Checks rules against results: which hold, which are violated, and where.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "libmx/analysis/recipe_filter.hpp"
#include "libmx/analysis/results_input.hpp"
#include "libmx/analysis/rule.hpp"
#include "libmx/policy/judged_model.hpp"

namespace mx::gate {

/// A violation of a rule.
struct breach {
    std::size_t rule = 0;
    std::string file;    ///< of two dumps the second; empty for totals
    std::string tensor;  ///< empty for totals
    std::string recipe;
    std::optional<double> figure;  ///< none: undefined there
    /// For rules about the policy: the finding as a phrase, and the limit that was reached.
    std::string why = {};
    std::optional<policy::reached_limit> reached = {};
};

/// The value that violates a rule: "0.125", "undefined", "loses 96.9 % of its elements to zero
/// (limit 20 %)".
std::string finding_of(const breach& b);

/// The result of one rule.
struct rule_verdict {
    std::uint64_t checked = 0;    ///< records the rule is about
    std::uint64_t broken = 0;     ///< of these, including the undefined ones
    std::uint64_t undefined = 0;  ///< where the figure is null
    std::string problem;          ///< why the rule fails as a whole: it checks nothing
    bool holds() const { return broken == 0 && problem.empty(); }
};

/// Why a rule does not hold: "broken by 2 of 94 results".
std::string problem_of(const rule_verdict& v);

struct gate_verdict {
    std::vector<rule_verdict> rules;  ///< in the order of the rules
    std::vector<breach> breaches;     ///< by rule; undefined ones first, then the farthest
    std::uint64_t records = 0;        ///< of the recipes looked at
    std::uint64_t checked = 0;        ///< of these, those that some rule was held against
    std::uint64_t totals = 0;         ///< totals that some rule was held against
    std::uint64_t tensors = 0;
    std::uint64_t recipes = 0;
    bool holds() const;
};

/// The results files (of mx analyze, compare, cluster or diff) with the members that the rules
/// need, and the names of all members.
struct gate_inputs {
    std::vector<analysis::results_input> files;
    std::set<std::string> members;
};
gate_inputs open_for_gate(const std::vector<std::string>& paths,
                          const std::vector<analysis::gate_rule>& rules,
                          const analysis::results_opener& open = analysis::open_results);

/// Whether one of the rules refers to the policy.
bool asks_policy(const std::vector<analysis::gate_rule>& rules);

/// Applies the rules. Tensors without elements are left out. A rule about the policy holds unless
/// an operand of a product reaches a veto under the recipe that the policy chose for its class
/// (with `recipes`: under one of these), or the policy is undecided about it. `judged` is the
/// judgement of the inputs and may be null without such a rule. A rule that applies to no record,
/// or whose figure the results lack, fails. Throws base::error (usage) for a metric that neither mx
/// nor the results define, with the nearest name, and for a recipe that the results lack.
gate_verdict apply_gate(const std::vector<analysis::gate_rule>& rules, const gate_inputs& inputs,
                        const analysis::recipe_filter& recipes,
                        const policy::judged_model* judged = nullptr);

}  // namespace mx::gate
