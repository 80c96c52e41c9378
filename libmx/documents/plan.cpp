// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "libmx/base/joined.hpp"
#include "libmx/documents/inputs.hpp"
#include "libmx/pages/views/document_page.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/policy/commands.hpp"
#include "libmx/report/cells.hpp"

namespace mx::documents {
namespace {

using plan::candidates;
using plan::plan_goal;
using plan::plan_option;
using plan::plan_tensor;
using plan::plan_totals;

double per_element(std::uint64_t bits, std::uint64_t elements) {
    return static_cast<double>(bits) / static_cast<double>(elements);
}

report::value decibels(double signal, double error) {
    if (!(error > 0) || !(signal > 0)) return pages::undefined();
    return pages::real(10 * std::log10(signal / error));
}

struct totals_of_plan {
    const plan_totals& of;
    std::uint64_t elements;
};
constexpr std::array plan_totals_members = std::to_array<report::declared<totals_of_plan>>({
    {"bits", "count", "", [](auto& t) { return t.of.bits; }},
    {"bits_per_element", "number", "", [](auto& t) { return per_element(t.of.bits, t.elements); }},
    {"squared_error", "amount", "", [](auto& t) { return t.of.error; }},
    {"sqnr_db", "number?", "", [](auto& t) { return t.of.sqnr_db; }},
});
report::record totals_record(const plan_totals& t, std::uint64_t elements) {
    return report::written(plan_totals_members, {t, elements});
}

report::value error_share(double error, const plan::plan& p) {
    return p.totals.error > 0 ? pages::real(error / p.totals.error) : pages::undefined();
}

std::string decibels_text(const std::optional<double>& x) {
    return x ? report::fixed_text(*x, 2) + " dB" : "exact";
}

const plan_option& chosen(const candidates& from, const plan::plan& p, std::size_t tensor) {
    return from.tensors[tensor].options[p.chosen[tensor]];
}

struct use {
    std::uint32_t recipe = 0;
    std::uint64_t tensors = 0;
    std::uint64_t elements = 0;
    std::uint64_t bits = 0;
    double error = 0;
    double signal = 0;
};

// What each recipe was chosen for, largest number of elements first.
std::vector<use> uses_of(const candidates& from, const plan::plan& p) {
    std::vector<use> uses(from.recipes.size());
    for (std::size_t i = 0; i < from.tensors.size(); ++i) {
        const plan_option& o = chosen(from, p, i);
        use& u = uses[o.recipe];
        ++u.tensors;
        u.elements += from.tensors[i].elements;
        u.bits += o.bits;
        u.error += o.error;
        u.signal += from.tensors[i].signal;
    }
    for (std::uint32_t r = 0; r < uses.size(); ++r) uses[r].recipe = r;
    std::erase_if(uses, [](const use& u) { return u.tensors == 0; });
    std::ranges::stable_sort(uses, std::greater{}, &use::elements);
    return uses;
}

struct recipe_use {
    const candidates& from;
    const plan::plan& p;
    const use& of;
};
constexpr std::array recipe_use_members = std::to_array<report::declared<recipe_use>>({
    {"recipe", "string", "a recipe, or stored",
     [](auto& u) { return u.from.recipes[u.of.recipe].name; }},
    {"tensors", "count", "", [](auto& u) { return u.of.tensors; }},
    {"elements", "count", "", [](auto& u) { return u.of.elements; }},
    {"element_share", "share", "",
     [](auto& u) { return report::share(u.of.elements, u.from.elements()); }},
    {"bits_per_element", "number", "",
     [](auto& u) { return per_element(u.of.bits, u.of.elements); }},
    {"squared_error", "amount", "", [](auto& u) { return u.of.error; }},
    {"error_share", "share?", "", [](auto& u) { return error_share(u.of.error, u.p); }},
    {"sqnr_db", "number?", "", [](auto& u) { return decibels(u.of.signal, u.of.error); }},
});

std::vector<report::record> use_records(const candidates& from, const plan::plan& p) {
    std::vector<report::record> rows;
    for (const use& u : uses_of(from, p)) {
        rows.push_back(report::written(recipe_use_members, {from, p, u}));
    }
    return rows;
}

constexpr report::member_type uniform_recipe{"recipe", "string", ""};
constexpr report::member_type within_budget{"within", "boolean", "it is within the budget"};

std::vector<report::record> uniform_records(const candidates& from, const plan::plan& p) {
    std::vector<report::record> rows;
    for (const plan::uniform_plan& u : p.uniform) {
        report::record r{{std::string(uniform_recipe.name), from.recipes[u.recipe].name}};
        report::append(r, plan_totals_members, {u.totals, from.elements()});
        r.emplace_back(within_budget.name, u.within);
        rows.push_back(std::move(r));
    }
    return rows;
}

// Tensors that keep their stored precision because of their kind.
struct kept_totals {
    std::vector<std::string> roles;
    std::uint64_t elements = 0, bits = 0;
};

kept_totals kept_of(const candidates& from) {
    kept_totals kept;
    for (const plan::kept_tensor& t : from.kept) {
        if (std::ranges::find(kept.roles, t.of->role) == kept.roles.end()) {
            kept.roles.push_back(t.of->role);
        }
        kept.elements += t.elements;
        kept.bits += t.bits.value_or(0);
    }
    return kept;
}

constexpr std::array kept_members = std::to_array<report::declared<candidates>>({
    {"roles", "[@members#role]", "", [](auto& c) { return report::to_list(kept_of(c).roles); }},
    {"tensors", "count", "", [](auto& c) { return c.kept.size(); }},
    {"elements", "count", "", [](auto& c) { return kept_of(c).elements; }},
    {"bits", "count", "", [](auto& c) { return kept_of(c).bits; }},
});

std::string proof_sentence(const plan_goal& goal, const plan::plan& p) {
    if (p.optimal) {
        return goal.bits ? "No other choice of these recipes has less squared error within the "
                           "budget."
                         : "No other choice of these recipes has fewer bits with this SQNR.";
    }
    const double own = goal.bits ? p.totals.error : static_cast<double>(p.totals.bits);
    const double gap = own > 0 ? std::max(0.0, 1 - p.bound / own) : 0;
    return fmt::format(
        "Not proved optimal: the search was stopped. No choice {} saves more than {} of {}.",
        goal.bits ? "within the budget" : "above the floor", report::significant_text(gap, 3),
        goal.bits ? "this squared error" : "these bits");
}

// The tensors with the largest mean squares, if they have few elements but most of the sum of
// squares: they determine the SQNR of all tensors. Empty if there are none.
std::string dominance_sentence(const candidates& from) {
    constexpr double few_elements = 0.01, most_squares = 0.9;
    std::vector<const plan_tensor*> all;
    for (const plan_tensor& t : from.tensors) {
        if (t.elements > 0) all.push_back(&t);
    }
    const auto mean = [](const plan_tensor* t) {
        return t->signal / static_cast<double>(t->elements);
    };
    std::ranges::stable_sort(all, [&](const auto* a, const auto* b) { return mean(a) > mean(b); });
    const auto all_elements = static_cast<double>(from.elements());
    const double all_signal = from.signal();
    double signal = 0, elements = 0;
    for (std::size_t n = 0; n < all.size(); ++n) {
        signal += all[n]->signal;
        elements += static_cast<double>(all[n]->elements);
        if (elements > few_elements * all_elements) break;
        if (signal < most_squares * all_signal) continue;
        const std::string others = n == 0 ? "" : fmt::format(" and {} more", n);
        return fmt::format(
            "{}{} {} {} % of the sum of squares in {} % of the elements: the SQNR of all tensors "
            "says little about the others. --tensor plans some of them only.",
            all.front()->of->tensor, others, n == 0 ? "has" : "have",
            report::percent_text(signal / all_signal),
            report::percent_text(elements / all_elements));
    }
    return {};
}

std::uint64_t elements_to_evaluate(const candidates& from, const plan::plan& p) {
    std::uint64_t elements = 0;
    for (std::size_t i = 0; i < from.tensors.size(); ++i) {
        if (chosen(from, p, i).is == policy::verdict::evaluate) {
            elements += from.tensors[i].elements;
        }
    }
    return elements;
}

std::string first_sentence(const candidates& from, const plan_goal& goal, const plan::plan& p,
                           const policy::judged_model& judged) {
    const std::string aim = goal.bits      ? fmt::format("Within {} bits per element", *goal.bits)
                            : goal.sqnr_db ? fmt::format("Above {} dB", *goal.sqnr_db)
                                           : fmt::format(
                                                 "The recommendation of the policy {} "
                                                 "(target {})",
                                                 judged.by.name, judged.on->name);
    return fmt::format("{}: {:.4f} bits per element, {}.", aim,
                       per_element(p.totals.bits, from.elements()),
                       decibels_text(p.totals.sqnr_db));
}

report::notes verdict_of(const candidates& from, const plan_goal& goal, const plan::plan& p,
                         const policy::judged_model& judged) {
    report::notes notes;
    notes.push_back(first_sentence(from, goal, p, judged));
    const bool chosen_by_goal = goal.bits || goal.sqnr_db;
    if (chosen_by_goal) {
        notes.push_back(report::item(proof_sentence(goal, p)));
        if (!p.best_uniform) {
            notes.push_back(goal.bits ? report::item("No single recipe fits the budget.")
                                      : report::item("No single recipe reaches the floor."));
        } else {
            const plan::uniform_plan& u = p.uniform[*p.best_uniform];
            notes.push_back(report::item(fmt::format(
                "The best single recipe {} is {}: {:.4f} bits, {}.",
                goal.bits ? "within the budget" : "above the floor", from.recipes[u.recipe].name,
                per_element(u.totals.bits, from.elements()), decibels_text(u.totals.sqnr_db))));
        }
    }
    if (const std::uint64_t n = elements_to_evaluate(from, p); n > 0) {
        notes.push_back(report::item(fmt::format(
            "{} % of the elements are in recipes that need evaluation; the policy {} recommends "
            "these only with metrics of a task (--eval).",
            report::percent_text(static_cast<double>(n) / static_cast<double>(from.elements())),
            judged.by.name)));
    }
    if (const std::string few = dominance_sentence(from); !few.empty()) {
        notes.push_back(report::item(few));
    }
    if (const kept_totals kept = kept_of(from); !from.kept.empty()) {
        notes.push_back(report::item(fmt::format(
            "The figures of the plan leave out {} ({}) that {} the stored precision; with {}, "
            "the "
            "model takes {:.4f} bits per element, {} bytes.",
            report::plural(from.kept.size(), "tensor"), base::joined(kept.roles, ", "),
            from.kept.size() == 1 ? "keeps" : "keep", from.kept.size() == 1 ? "it" : "them",
            per_element(p.totals.bits + kept.bits, from.elements() + kept.elements),
            report::grouped(static_cast<long>((p.totals.bits + kept.bits + 7) / 8)))));
    }
    if (from.vetoed > 0) {
        notes.push_back(
            report::item(fmt::format("The policy {} rules out {} on their tensors.", judged.by.name,
                                     report::plural(from.vetoed, "choice"))));
    }
    if (from.forbidden > 0) {
        notes.push_back(report::item(
            fmt::format("Rules forbid {}.", report::plural(from.forbidden, "choice"))));
    }
    for (const policy::missing_recipes& m : judged.says.missing) {
        const std::string command = policy::command_of(m, judged.options);
        notes.push_back(report::item(fmt::format("Not measured: {}{}", fmt::join(m.recipes, ", "),
                                                 command.empty() ? "." : ". Measure it with:")));
        if (!command.empty()) notes.push_back(report::command(command));
    }
    return notes;
}

struct assigned {
    const analysis::tensor_identity& of;
    std::string_view recipe;
    std::uint64_t elements;
    const std::optional<std::uint64_t>& bits;
    double error;
    report::value sqnr_db;
    policy::verdict verdict;
    const std::string& reason;
    const std::string& group;
    const plan::plan& p;
};
constexpr std::array assigned_members = std::to_array<report::declared<assigned>>({
    {"file", "@members#file", "", [](auto& t) { return t.of.file; }},
    {"tensor", "@members#tensor", "", [](auto& t) { return t.of.tensor; }},
    {"dtype", "@members#dtype", "", [](auto& t) { return t.of.dtype; }},
    {"role", "@members#role", "", [](auto& t) { return t.of.role; }},
    {"recipe", "string", "a recipe, or stored", [](auto& t) { return t.recipe; }},
    {"elements", "count", "", [](auto& t) { return t.elements; }},
    {"bits", "count?", "", [](auto& t) { return t.bits; }},
    {"bits_per_element", "number?", "",
     [](auto&
            t) { return t.bits ? std::optional(per_element(*t.bits, t.elements)) : std::nullopt; }},
    {"squared_error", "amount", "", [](auto& t) { return t.error; }},
    {"sqnr_db", "number?", "", [](auto& t) { return t.sqnr_db; }},
    {"error_share", "share?", "", [](auto& t) { return error_share(t.error, t.p); }},
    {"verdict", "safe|needs evaluation|no", "the policy's, on the recipe",
     [](auto& t) { return policy::to_string(t.verdict); }},
    {"reason", "string?", "", [](auto& t) { return pages::text_or_null(t.reason); }},
    {"group", "string?",
     "the tensors that get the same recipe: of a fused matrix or of --group; null alone",
     [](auto& t) { return pages::text_or_null(t.group); }},
});

report::record_list assignments_of(const candidates& from, const plan::plan& p) {
    std::vector<std::string> group_of(from.tensors.size());
    for (const plan::plan_group& g : from.groups) {
        if (g.tensors.size() == 1) continue;
        for (const std::size_t t : g.tensors) group_of[t] = g.name;
    }
    report::record_list list;
    for (std::size_t i = 0; i < from.tensors.size(); ++i) {
        const plan_tensor& t = from.tensors[i];
        const plan_option& o = chosen(from, p, i);
        list.push_back(report::written(
            assigned_members, {*t.of, from.recipes[o.recipe].name, t.elements, o.bits, o.error,
                               decibels(t.signal, o.error), o.is, t.reason, group_of[i], p}));
    }
    for (const plan::kept_tensor& t : from.kept) {
        list.push_back(report::written(assigned_members, {*t.of,
                                                          engine::stored_choice,
                                                          t.elements,
                                                          t.bits,
                                                          0,
                                                          pages::undefined(),
                                                          policy::verdict::safe,
                                                          t.reason,
                                                          {},
                                                          p}));
    }
    return list;
}

constexpr std::array left_out_members = std::to_array<report::declared<plan::left_out_choice>>({
    {"tensor", "@members#tensor", "", [](auto& l) { return l.tensor; }},
    {"recipe", "string?", "null: under every recipe",
     [](auto& l) { return pages::text_or_null(l.recipe); }},
    {"reason", "string", "", [](auto& l) { return l.reason; }},
});

report::list listed(const std::vector<report::record>& records) {
    return {records.begin(), records.end()};
}

constexpr std::array plan_policy_members = std::to_array<report::declared<policy::judged_model>>({
    {"name", "string", "", [](auto& j) { return j.by.name; }},
    {"version", "string", "", [](auto& j) { return j.by.version; }},
    {"target", "string", "", [](auto& j) { return j.on->name; }},
});
constexpr std::array plan_goal_members = std::to_array<report::declared<plan_goal>>({
    {"bits_per_element", "number?", "", [](auto& g) { return g.bits; }},
    {"sqnr_db", "number?", "", [](auto& g) { return g.sqnr_db; }},
});

struct whole_plan {
    const std::vector<analysis::results_input>& inputs;
    const candidates& from;
    const plan_goal& goal;
    const plan::plan& p;
    const std::vector<analysis::gate_rule>& rules;
    const policy::judged_model& judged;
    const std::vector<report::record>&uses, &uniform, &curve;
};
constexpr std::array plan_head_members = std::to_array<report::declared<whole_plan>>({
    {"inputs", "[@common#input]", "files that were read, in the order given",
     [](auto& w) { return results_list(w.inputs); }},
    {"policy", "#policy", "by which tensors are judged",
     [](auto& w) { return report::written(plan_policy_members, w.judged); }},
    {"goal", "#goal", "what was asked for: one of the two, or neither: the policy alone",
     [](auto& w) { return report::written(plan_goal_members, w.goal); }},
    {"rules", "[string]", "that choices keep",
     [](auto& w) { return report::to_list(w.rules, [](auto& rule) { return rule.text; }); }},
    {"tensors", "count", "", [](auto& w) { return w.from.tensors.size(); }},
    {"elements", "count", "", [](auto& w) { return w.from.elements(); }},
    {"totals", "#totals", "the plan",
     [](auto& w) { return totals_record(w.p.totals, w.from.elements()); }},
    {"optimal", "boolean", "no assignment of these recipes is better",
     [](auto& w) { return w.p.optimal; }},
    {"least_squared_error", "amount", "no assignment within the bits has less",
     [](auto& w) { return report::only_if(w.goal.bits.has_value(), w.p.bound); }, false},
    {"least_bits", "amount", "no assignment within the error has fewer",
     [](auto& w) { return report::only_if(!w.goal.bits && w.goal.sqnr_db, w.p.bound); }, false},
    {"recipes", "[#recipe]", "a recipe of the plan each", [](auto& w) { return listed(w.uses); }},
    {"kept", "#kept", "tensors that keep their precision because of their role",
     [](auto& w) { return report::written(kept_members, w.from); }},
});
constexpr std::array plan_tail_members = std::to_array<report::declared<whole_plan>>({
    {"uniform", "[#uniform]", "one recipe for all tensors that do not keep their precision",
     [](auto& w) { return listed(w.uniform); }},
    {"curve", "[#totals]", "the least error by bits", [](auto& w) { return listed(w.curve); }},
    {"left_out", "[#left_out]", "choices and tensors that could not be planned",
     [](auto& w) { return report::listed(left_out_members, w.from.left_out); }},
    {"mapping", "#mapping", "the plan in the words of other tools",
     [](auto& w) { return plan::mapping_of(w.from, w.p); }},
});

}  // namespace

report::document plan_document(const std::vector<analysis::results_input>& inputs,
                               const candidates& from, const plan_goal& goal, const plan::plan& p,
                               const std::vector<analysis::gate_rule>& rules, std::size_t top,
                               const policy::judged_model& judged) {
    const std::vector<report::record> uses = use_records(from, p);
    const std::vector<report::record> uniform = uniform_records(from, p);
    std::vector<report::record> curve;
    const std::uint64_t elements = from.elements();
    for (const plan_totals& t : p.curve) curve.push_back(totals_record(t, elements));

    report::document d;
    d.head = pages::document_head("mx.plan/1");
    const whole_plan whole{inputs, from, goal, p, rules, judged, uses, uniform, curve};
    report::append(d.head, plan_head_members, whole);
    d.results = assignments_of(from, p);

    d.tail = report::written(plan_tail_members, whole);
    pages::finish_document(d, verdict_of(from, goal, p, judged), {.top = top});
    return d;
}

report::document_schema plan_schema() {
    report::document_schema schema("mx.plan/1", "mx plan",
                                   "A recipe for every tensor under a budget.");
    schema.members(plan_head_members)
        .member({"results", "[#tensor]", "a tensor each"})
        .members(plan_tail_members)
        .member({"verdict", "[string]", "what the command says, a sentence each"})
        .condition("not", {{"required", report::list{std::string("least_squared_error"),
                                                     std::string("least_bits")}}})
        .define("policy", plan_policy_members)
        .define("goal", plan_goal_members)
        .define("totals", plan_totals_members)
        .define("recipe", recipe_use_members)
        .define("kept", kept_members)
        .define("tensor", assigned_members)
        .define(
            "uniform",
            report::member_list().add(uniform_recipe).add(plan_totals_members).add(within_budget))
        .define("left_out", left_out_members);
    plan::define_mapping(schema);
    return schema;
}

}  // namespace mx::documents
