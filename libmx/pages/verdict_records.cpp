// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/verdict_records.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "libmx/policy/commands.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

using policy::class_judgement;
using policy::class_recipe;
using policy::decision;
using policy::judged_model;

constexpr std::string_view verdicts = "safe|needs evaluation|no";

constexpr std::array limit_members = std::to_array<report::declared<policy::reached_limit>>({
    {"figure", "string", "", [](auto& l) { return l.of->name; }},
    {"value", "number", "", [](auto& l) { return l.value; }},
    {"limit", "number", "", [](auto& l) { return l.limit; }},
    {"verdict", verdicts, "", [](auto& l) { return policy::to_string(l.is); }},
});
constexpr std::string_view limit_reached =
    "the limit of the policy that the figure reaches; null: none";
report::value reached(const std::optional<policy::reached_limit>& limit) {
    return limit ? report::value(report::written(limit_members, *limit)) : report::value();
}

report::value names_of(const judged_model& m, const std::vector<std::size_t>& tensors) {
    return report::to_list(tensors, [&](std::size_t t) { return tensor_name(m, t); });
}

struct shown_candidate {
    const judged_model& m;
    const class_recipe& r;
};
constexpr std::array candidate_members =
    std::to_array<report::declared<shown_candidate>>(
        {
            {"recipe", "string", "", [](auto& c) { return c.r.recipe; }},
            {"verdict", verdicts, "", [](auto& c) { return policy::to_string(c.r.is); }},
            {"on_target", "string", "native, emulated or absent",
             [](auto& c) { return policy::to_string(c.r.on_target); }},
            {"bits_per_element", "number", "", [](auto& c) { return c.r.bits; }},
            {"sqnr_db", "number?", "of the class (dB)",
             [](auto& c) { return report::finite_or_null(c.r.sqnr_db); }},
            {"normal_sqnr_db", "number?", "on normal data (dB)",
             [](auto& c) { return report::finite_or_null(c.r.normal_db); }},
            {"bytes", "count", "", [](auto& c) { return c.r.bytes; }},
            {"elements", "count", "", [](auto& c) { return c.r.elements; }},
            {"ruled_out_elements", "count", "of tensors that a limit rules out",
             [](auto& c) { return c.r.vetoed_elements; }},
            {"ruled_out", "[string]", "these tensors",
             [](auto& c) { return names_of(c.m, c.r.vetoed); }},
            {"doubtful", "[string]", "tensors that need evaluation",
             [](auto& c) { return names_of(c.m, c.r.doubtful); }},
            {"dominant", "string?", "the tensor that makes up most of the class's error",
             [](auto& c) {
                 return c.r.dominant ? report::value(tensor_name(c.m, *c.r.dominant))
                                     : report::value();
             }},
            {"reason", "string", "", [](auto& c) { return c.r.reason; }},
            {"scored", "string", "what metrics of a task say; empty: none was given",
             [](auto& c) { return c.r.scored; }},
        });

struct shown_class {
    const judged_model& m;
    const class_judgement& of;

    report::value candidate(const std::optional<class_recipe>& r) const {
        return r ? report::value(report::written(candidate_members, {m, *r})) : report::value();
    }
    report::list candidates(const std::vector<class_recipe>& all) const {
        return report::to_list(all, [&](const class_recipe& r) {
            return report::written(candidate_members, {m, r});
        });
    }
    report::value recipe() const {
        if (const class_recipe* chosen = of.recommended()) return chosen->recipe;
        return of.undecided ? report::value() : std::string(policy::keep_choice);
    }
};
constexpr std::array class_members = std::to_array<report::declared<shown_class>>({
    {"role", "string", "", [](auto& c) { return c.of.role; }},
    {"already_quantized", "boolean",
     "stored in fewer bits than the policy's quantized_bits: they are kept",
     [](auto& c) { return c.of.quantized; }},
    {"tensors", "count", "", [](auto& c) { return c.of.operands.size(); }},
    {"elements", "count", "", [](auto& c) { return c.of.elements; }},
    {"stored_bytes", "count", "", [](auto& c) { return c.of.bytes; }},
    {"recipe", "string?", "a recipe, or keep; null: undecided", [](auto& c) { return c.recipe(); }},
    {"reason", "string", "", [](auto& c) { return c.of.reason; }},
    {"candidates", "[#candidate]", "", [](auto& c) { return c.candidates(c.of.candidates); }},
    {"best_of_4_bits", "#candidate?", "", [](auto& c) { return c.candidate(c.of.four); }},
    {"best_of_6_bits", "#candidate?", "", [](auto& c) { return c.candidate(c.of.six); }},
    {"best_of_8_bits", "#candidate?", "", [](auto& c) { return c.candidate(c.of.eight); }},
    {"baselines", "[#candidate]", "", [](auto& c) { return c.candidates(c.of.baselines); }},
});

struct shown_risk {
    const judged_model& m;
    const policy::risk& r;
};
constexpr std::array risk_members = std::to_array<report::declared<shown_risk>>({
    {"tensor", "string", "", [](auto& x) { return tensor_name(x.m, x.r.tensor); }},
    {"recipe", "string", "", [](auto& x) { return x.r.recipe; }},
    {"recommended", "boolean", "the recipe is recommended for the tensor's class",
     [](auto& x) { return x.r.recommended; }},
    {"verdict", verdicts, "", [](auto& x) { return policy::to_string(x.r.is); }},
    {"error_over_normal", "amount?",
     "squared error relative to that of normal data under the recipe; null: infinite",
     [](auto& x) { return report::finite_or_null(x.r.over_normal); }},
    {"error_of_energy", "amount", "squared error relative to the tensor's sum of squares",
     [](auto& x) { return x.r.energy; }},
    {"underflow_rate", "@members#underflow_rate", "", [](auto& x) { return x.r.underflow; }},
    {"normal_underflow_rate", "share", "underflow_rate of normal data under the recipe",
     [](auto& x) { return x.r.normal_underflow; }},
    {"limit_reached", "#limit?", limit_reached, [](auto& x) { return reached(x.r.why); }},
    {"remedy", "string", "what fixes it; empty where nothing measured does",
     [](auto& x) { return x.r.remedy; }},
});

struct shown_missing {
    const judged_model& m;
    const policy::missing_recipes& w;
};
constexpr std::array missing_members = std::to_array<report::declared<shown_missing>>({
    {"recipes", "[string]", "", [](auto& x) { return report::to_list(x.w.recipes); }},
    {"tensors", "[string]", "patterns; empty: all",
     [](auto& x) { return report::to_list(x.w.tensors); }},
    {"needed", "boolean", "a class is undecided without it", [](auto& x) { return x.w.needed; }},
    {"command", "string?", "that measures it; null: the results do not state what measured them",
     [](auto& x) {
         std::string text = policy::command_of(x.w, x.m.options);
         return text.empty() ? report::value() : report::value(std::move(text));
     }},
});

constexpr std::array totals_members = std::to_array<report::declared<judged_model>>({
    {"tensors", "count", "", [](auto& m) { return m.tensors.size(); }},
    {"elements", "count", "", [](auto& m) { return m.says.totals.elements; }},
    {"operand_elements", "count", "of operands of products",
     [](auto& m) { return m.says.totals.operand_elements; }},
    {"stored_bytes", "count", "", [](auto& m) { return m.says.totals.stored; }},
    {"bytes", "count", "as recommended", [](auto& m) { return m.says.totals.recommended; }},
    {"kept_bytes", "count", "of tensors that keep their stored precision",
     [](auto& m) { return m.says.totals.kept; }},
    {"undecided_bytes", "count", "", [](auto& m) { return m.says.totals.undecided; }},
    {"not_counted_bytes", "count",
     "stored bytes that the other members leave out: state of an optimizer and, in a dump of a "
     "training step, what is no operand of a product",
     [](auto& m) { return m.says.totals.not_counted; }},
    {"ratio", "amount", "stored_bytes over bytes", [](auto& m) { return m.says.totals.ratio(); }},
});

struct shown_verdict {
    const judged_model& m;
    const verdict_context& c;
};
constexpr std::array
    tail_members =
        std::to_array<report::declared<shown_verdict>>(
            {
                {"summary", "string", "one line", [](auto& v) { return verdict_line(v.m); }},
                {"confidence", "string",
                 "what the verdicts rest on: tensor error only, or metrics of a task",
                 [](auto& v) { return v.m.says.confidence; }},
                {"unused_scores", "[string]", "recipes of --eval that are no candidates",
                 [](auto& v) { return report::value(report::to_list(v.m.says.unused_scores)); }},
                {"warnings", "[string]", "",
                 [](auto& v) { return report::to_list(verdict_warnings(v.m, v.c)); }},
                {"totals", "#totals", "",
                 [](auto& v) { return report::written(totals_members, v.m); }},
                {"classes",
                 "[#class]", "operands of one role each, those that are quantized already apart",
                 [](auto& v) {
                     return report::to_list(v.m.says.classes, [&](const class_judgement& k) {
                         return report::written(class_members, {v.m, k});
                     });
                 }},
                {"risks", "[#risk]",
                 "operands that reach a limit under a recipe, or have 1.122 times the squared "
                 "error of normal "
                 "data or more; worst first",
                 [](auto& v) {
                     report::list risks;
                     for (const policy::risk& r : v.m.says.risks) {
                         if (r.noted()) risks.emplace_back(report::written(risk_members, {v.m, r}));
                     }
                     return risks;
                 }},
                {"missing", "[#missing]", "what was not measured and the policy needs",
                 [](auto& v) {
                     return report::to_list(v.m.says.missing,
                                            [&](const policy::missing_recipes& w) {
                                                return report::written(missing_members, {v.m, w});
                                            });
                 }},
            });

struct shown_decision {
    const judged_model& m;
    std::size_t tensor;
    const policy::measured_tensor& t = m.tensors[tensor];
    const decision& d = m.says.decisions[tensor];
    std::optional<analysis::result> found =
        d.column ? std::optional(m.table.of(tensor, *d.column)) : std::nullopt;

    report::value figure(double metrics::row::*of) const {
        return found ? report::to_value((*found).*of) : report::value();
    }
    std::string_view verdict() const {
        if (d.undecided) return "undecided";
        return d.recipe == policy::keep_choice ? "keep" : policy::to_string(d.is);
    }
};
constexpr std::array
    decision_members =
        std::to_array<report::declared<shown_decision>>(
            {
                {"file", "string", "", [](auto& x) { return x.t.file; }},
                {"tensor", "string", "", [](auto& x) { return x.t.name; }},
                {"role", "string", "as the policy sees it", [](auto& x) { return x.d.role; }},
                {"dtype", "string", "stored", [](auto& x) { return x.t.dtype; }},
                {"elements", "count", "", [](auto& x) { return x.t.elements; }},
                {"stored_bytes", "count", "bytes in the file; 0 if counted_with counts them",
                 [](auto& x) { return x.t.counted_bytes(); }},
                {"counted_with", "string?",
                 "the tensor with the same storage, which counts its bytes; null: none",
                 [](auto& x) {
                     return x.t.counted_with ? report::value(tensor_name(x.m, *x.t.counted_with))
                                             : report::value();
                 }},
                {"recipe", "string?",
                 "a recipe, or keep: the stored precision stays; null: undecided",
                 [](auto&
                        x) { return x.d.undecided ? report::value() : report::value(x.d.recipe); }},
                {"verdict", "safe|needs evaluation|no|keep|undecided", "",
                 [](auto& x) { return x.verdict(); }},
                {"reason", "string", "", [](auto& x) { return x.d.reason; }},
                {"bytes", "count", "under the recipe; 0 if counted_with is treated alike",
                 [](auto& x) { return x.d.bytes; }},
                {"could_save", "count",
                 "bytes that the best candidate would save where the tensor is kept",
                 [](auto& x) { return x.d.could_save; }},
                {"limit_reached", "#limit?", limit_reached,
                 [](auto& x) { return reached(x.d.veto); }},
                {"error_over_normal", "amount?",
                 "its squared error under the recipe, relative to that of normal data of the same "
                 "size; null: "
                 "nothing measured",
                 [](auto& x) {
                     return x.found ? report::finite_or_null(x.d.over_normal) : report::value();
                 }},
                {"bits_per_element", "@members#bits_per_element", "",
                 [](auto& x) { return x.figure(&metrics::row::bits_per_element); }},
                {"sqnr_db", "@members#sqnr_db", "",
                 [](auto& x) { return x.figure(&metrics::row::sqnr_db); }},
                {"clamp_rate", "@members#clamp_rate", "",
                 [](auto& x) { return x.figure(&metrics::row::clamp_rate); }},
                {"underflow_rate", "@members#underflow_rate", "",
                 [](auto& x) { return x.figure(&metrics::row::underflow_rate); }},
                {"saturated_block_rate", "@members#saturated_block_rate", "",
                 [](auto& x) { return x.figure(&metrics::row::saturated_block_rate); }},
                {"collapsed_block_rate", "@members#collapsed_block_rate", "",
                 [](auto& x) { return x.figure(&metrics::row::collapsed_block_rate); }},
            });

}  // namespace

report::record_list decision_records(const judged_model& m) {
    report::record_list list;
    for (std::size_t i = 0; i < m.tensors.size(); ++i) {
        list.push_back(report::written(decision_members, {m, i}));
    }
    return list;
}

report::record verdict_members(const judged_model& m, const verdict_context& c) {
    return report::written(tail_members, {m, c});
}

void declare_verdict(report::document_schema& to) {
    to.member({"results", "[#decision]", "a tensor each"})
        .members(tail_members)
        .define("decision", decision_members)
        .define("limit", limit_members)
        .define("totals", totals_members)
        .define("class", class_members)
        .define("candidate", candidate_members)
        .define("risk", risk_members)
        .define("missing", missing_members);
}

}  // namespace mx::pages
