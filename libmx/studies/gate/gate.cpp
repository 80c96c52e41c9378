// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/gate/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/policy/recipe_verdicts.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::gate {
namespace {

// The members of a result that rules need besides their figures.
constexpr std::array<std::string_view, 6> needed{"file", "file_b", "tensor",
                                                 "role", "recipe", "elements"};

// The file of a result: the later one of two dumps.
std::string file_of(const report::record& r) {
    const std::string file = report::text_of(r, "file");
    return file.empty() ? report::text_of(r, "file_b") : file;
}

// There are no figures of a tensor without elements.
bool is_empty(const report::record& r) { return report::number_of(r, "elements") == 0.0; }

// The option of mx analyze that measures the figure of a rule.
std::string_view option_for(metrics::when collected) {
    switch (collected) {
        case metrics::when::decompose:
            return " with --decompose";
        case metrics::when::histograms:
            return " with --histograms";
        case metrics::when::regret:
            return " with --regret";
        case metrics::when::always:
            break;
    }
    return "";
}

[[noreturn]] void refuse_metric(const analysis::gate_rule& rule,
                                const std::set<std::string>& members) {
    std::vector<std::string_view> known;
    for (const metrics::metric& m : metrics::all()) known.push_back(m.name);
    for (const std::string& m : members) known.emplace_back(m);
    base::refuse("rule '{}': no result has a '{}'; did you mean '{}'?", base::printable(rule.text),
                 rule.metric, base::nearest(rule.metric, known));
}

// Why a rule applies to no record.
std::string nothing_to_check(const analysis::gate_rule& rule, bool any_totals) {
    switch (rule.subject) {
        case analysis::rule_subject::role:
            return fmt::format("no tensor has the role {}", rule.subject_text);
        case analysis::rule_subject::names: {
            if (rule.subject_text.find_first_of("*?[") != std::string::npos) {
                return fmt::format("no tensor's name matches {}", rule.subject_text);
            }
            std::vector<std::string_view> names;
            for (const engine::role_row& r : engine::roles()) names.push_back(r.name);
            return fmt::format(
                "no tensor is called '{}', and it is not a role (did you mean '{}'?)",
                rule.subject_text, base::nearest(rule.subject_text, names));
        }
        case analysis::rule_subject::totals:
            return any_totals ? "there is no result to check"
                              : "the results have no summary; mx analyze writes one";
        case analysis::rule_subject::everything:
            break;
    }
    return "there is no result to check";
}

// Checks the rules on record after record.
class referee {
  public:
    referee(const std::vector<analysis::gate_rule>& rules, gate_verdict& verdict)
        : rules_(rules), verdict_(verdict), absent_(rules.size()) {
        verdict.rules.resize(rules.size());
    }

    // Returns whether the rule applies to the record.
    bool see(std::size_t rule, const report::record& r) {
        rule_verdict& v = verdict_.rules[rule];
        const analysis::finding f = analysis::judge(rules_[rule], r);
        if (f.is == analysis::finding::outcome::no_number) {
            base::refuse("rule '{}': {} is not a number", base::printable(rules_[rule].text),
                         rules_[rule].metric);
        }
        if (f.is == analysis::finding::outcome::absent) {
            ++absent_[rule];
            return false;
        }
        ++v.checked;
        if (f.is == analysis::finding::outcome::holds) return true;
        ++v.broken;
        if (f.is == analysis::finding::outcome::undefined) ++v.undefined;
        verdict_.breaches.push_back({rule, file_of(r), report::text_of(r, "tensor"),
                                     report::text_of(r, "recipe"), f.figure});
        return true;
    }

    // Checks a rule about the policy on every operand that it applies to.
    void see_policy(std::size_t rule, const policy::judged_model& m,
                    const analysis::recipe_filter& recipes) {
        policy::recipe_verdicts verdicts(m);
        for (const policy::class_judgement& c : m.says.classes) {
            const auto* chosen = c.recommended();
            for (std::size_t k = 0; k < c.operands.size(); ++k) {
                const std::size_t i = c.operands[k];
                const policy::measured_tensor& t = m.tensors[i];
                const policy::decision& d = m.says.decisions[i];
                const report::record r{{"tensor", t.name}, {"role", t.role}};
                if (!d.whole_blocks || !analysis::concerns(rules_[rule], r)) continue;
                if (!recipes.takes_all()) {
                    for (std::size_t x = 0; x < m.table.recipes.size(); ++x) {
                        const std::string& recipe = m.table.recipes[x].name;
                        if (!recipes.takes(recipe)) continue;
                        const auto v = verdicts.of(i, x);
                        if (v) see_verdict(rule, t, recipe, v->is, v->why);
                    }
                } else if (d.undecided) {
                    ++verdict_.rules[rule].checked;
                    ++verdict_.rules[rule].broken;
                    ++verdict_.rules[rule].undefined;
                    verdict_.breaches.push_back({rule, t.file, t.name, {}, {}, d.reason});
                } else if (d.quantized) {
                    ++verdict_.rules[rule].checked;  // kept as stored, which loses nothing
                } else if (chosen != nullptr) {
                    const policy::trial& tried = chosen->trials[k];
                    see_verdict(rule, t, m.table.recipes[*tried.column].name, tried.is,
                                tried.worst);
                }
            }
        }
    }

    void finish(const gate_inputs& inputs, bool any_totals) {
        for (std::size_t i = 0; i < rules_.size(); ++i) {
            rule_verdict& v = verdict_.rules[i];
            const std::string metric(analysis::first_member(rules_[i].metric));
            if (absent_[i] > 0) {
                const metrics::metric* known = metrics::find(metric);
                if (v.checked == 0 && known == nullptr && !inputs.members.contains(metric) &&
                    rules_[i].subject != analysis::rule_subject::totals) {
                    refuse_metric(rules_[i], inputs.members);
                }
                v.problem = fmt::format("{} of {} results have no {}", absent_[i],
                                        absent_[i] + v.checked, rules_[i].metric);
                if (known != nullptr && known->collected != metrics::when::always) {
                    v.problem += fmt::format("; write them{}", option_for(known->collected));
                }
            } else if (v.checked == 0) {
                v.problem = rules_[i].compare == nullptr
                                ? "the policy has no recipe to hold against a tensor"
                                : nothing_to_check(rules_[i], any_totals);
            }
        }
        std::ranges::stable_sort(verdict_.breaches, [&](const breach& a, const breach& b) {
            if (a.rule != b.rule) return a.rule < b.rule;
            return distance(a) > distance(b);
        });
    }

  private:
    void see_verdict(std::size_t rule, const policy::measured_tensor& t, const std::string& recipe,
                     policy::verdict is, const std::optional<policy::reached_limit>& why) {
        ++verdict_.rules[rule].checked;
        if (is != policy::verdict::no) return;
        ++verdict_.rules[rule].broken;
        breach b{rule, t.file, t.name, recipe, {}, "the scores of the task rule it out", why};
        if (why) {
            b.figure = why->value;
            b.why = policy::describe(*why);
        }
        verdict_.breaches.push_back(std::move(b));
    }

    double distance(const breach& b) const {
        if (!b.figure) return std::numeric_limits<double>::infinity();
        // Limits of different figures are comparable only relative to themselves.
        if (b.reached) return *b.figure / b.reached->limit;
        return std::abs(*b.figure - rules_[b.rule].limit);
    }

    const std::vector<analysis::gate_rule>& rules_;
    gate_verdict& verdict_;
    std::vector<std::uint64_t> absent_;  // records without the figure, by rule
};

}  // namespace

bool asks_policy(const std::vector<analysis::gate_rule>& rules) {
    return std::ranges::any_of(rules, [](const auto& r) { return r.compare == nullptr; });
}

bool gate_verdict::holds() const {
    return std::ranges::all_of(rules, [](const rule_verdict& v) { return v.holds(); });
}

gate_inputs open_for_gate(const std::vector<std::string>& paths,
                          const std::vector<analysis::gate_rule>& rules,
                          const analysis::results_opener& open) {
    gate_inputs inputs;
    report::read_options options;
    const bool figures = asks_policy(rules);
    options.keep = [&](std::string_view name) {
        if (inputs.members.find(std::string(name)) == inputs.members.end()) {
            inputs.members.emplace(name);
        }
        const bool histogram = name.ends_with("_histogram") || name == "block_spread";
        return (figures && !histogram) || std::ranges::find(needed, name) != needed.end() ||
               std::ranges::any_of(rules, [&](const analysis::gate_rule& r) {
                   return analysis::first_member(r.metric) == name;
               });
    };
    inputs.files = analysis::open_analyses(paths, "gate", options, "diff", open);
    return inputs;
}

gate_verdict apply_gate(const std::vector<analysis::gate_rule>& rules, const gate_inputs& inputs,
                        const analysis::recipe_filter& recipes,
                        const policy::judged_model* judged) {
    gate_verdict verdict;
    referee judges(rules, verdict);
    std::vector<std::string> all;
    std::set<std::string> seen, taken;
    std::set<std::pair<std::string, std::string>> tensors;
    bool any_totals = false;
    for (const analysis::results_input& input : inputs.files) {
        for (const report::record& r : input.content.results) {
            const std::string recipe = report::text_of(r, "recipe");
            if (seen.insert(recipe).second) all.push_back(recipe);
            if (!recipes.takes(recipe) || is_empty(r)) continue;
            ++verdict.records;
            taken.insert(recipe);
            tensors.emplace(file_of(r), report::text_of(r, "tensor"));
            bool checked = false;
            for (std::size_t i = 0; i < rules.size(); ++i) {
                if (rules[i].compare == nullptr) continue;
                if (analysis::concerns(rules[i], r)) checked = judges.see(i, r) || checked;
            }
            if (checked) ++verdict.checked;
        }
        // The totals per recipe, which mx analyze writes after its results.
        const auto* totals = report::member<report::list>(input.content.tail, "summary");
        if (totals == nullptr) continue;
        any_totals = true;
        for (const report::value& v : *totals) {
            const auto* r = std::get_if<report::record>(&v);
            if (r == nullptr || !recipes.takes(report::text_of(*r, "recipe"))) continue;
            bool checked = false;
            for (std::size_t i = 0; i < rules.size(); ++i) {
                if (rules[i].subject != analysis::rule_subject::totals) continue;
                checked = judges.see(i, *r) || checked;
            }
            if (checked) ++verdict.totals;
        }
    }
    recipes.check(all);
    for (std::size_t i = 0; i < rules.size(); ++i) {
        if (rules[i].compare == nullptr && judged != nullptr) {
            judges.see_policy(i, *judged, recipes);
            verdict.checked = std::max(verdict.checked, verdict.rules[i].checked);
        }
    }
    verdict.tensors = tensors.size();
    verdict.recipes = taken.size();
    judges.finish(inputs, any_totals);
    return verdict;
}

std::string finding_of(const breach& b) {
    if (!b.why.empty()) return b.why;
    return b.figure ? fmt::format("{:.6g}", *b.figure) : "undefined";
}

std::string problem_of(const rule_verdict& v) {
    std::string why;
    if (v.broken > 0) {
        const bool all_undefined = v.undefined == v.broken;
        why = fmt::format("{} {} of {}", all_undefined ? "undefined for" : "broken by",
                          report::grouped(static_cast<long>(v.broken)),
                          report::plural(v.checked, "result"));
        if (!all_undefined && v.undefined > 0) {
            why += fmt::format(", {} of them undefined",
                               report::grouped(static_cast<long>(v.undefined)));
        }
    }
    if (!v.problem.empty()) why += fmt::format("{}{}", why.empty() ? "" : "; ", v.problem);
    return why;
}

}  // namespace mx::gate
