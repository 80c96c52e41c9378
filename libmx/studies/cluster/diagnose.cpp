// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/cluster/diagnose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <iterator>
#include <memory>
#include <tuple>
#include <utility>

#include "libmx/engine/sweep.hpp"
#include "libmx/report/members.hpp"

namespace mx::cluster {
namespace {

constexpr std::array words{defect_description{"saturates", "saturate"},
                           defect_description{"dies", "die"},
                           defect_description{"collapses", "collapse"}};
static_assert(words.size() == defect_count);

std::string_view verdict(defect a) { return description_of(a).one; }
constexpr std::string_view verdicts = "saturates|dies|collapses";

constexpr std::array block_members = std::to_array<report::declared<bad_block>>({
    {"block", "count", "index in the tensor's grid of blocks", [](auto& b) { return b.index; }},
    {"verdict", verdicts, "", [](auto& b) { return verdict(b.what); }},
    {"min", "amount", "least |x| over x != 0", [](auto& b) { return b.least; }},
    {"max", "amount", "largest |x|", [](auto& b) { return b.largest; }},
    {"becomes", "amount?", "the magnitude that all its elements get; null with an offset",
     [](auto& b) { return b.becomes; }},
    {"gain", "number", "sum(x d) / sum(x^2) of the block", [](auto& b) { return b.gain; }},
});

struct tried_remedy {
    const measured_remedy& m;
    defect what;

    // The defect that most blocks have under the remedy, of the others; none: fewer than
    // danger_share have any.
    std::optional<defect> other() const {
        std::optional<defect> most;
        for (std::size_t a = 0; a < defect_count; ++a) {
            const double share = m.defective_share[a];
            if (static_cast<defect>(a) == what || !(share >= danger_share)) continue;
            if (!most || share > m.defective_share[static_cast<std::size_t>(*most)]) {
                most = static_cast<defect>(a);
            }
        }
        return most;
    }
};
constexpr std::array remedy_members =
    std::to_array<report::declared<tried_remedy>>(
        {
            {"change", "string", "what is changed: a key of the recipe, or bf16",
             [](auto& x) { return x.m.change; }},
            {"recipe", "string", "", [](auto& x) { return x.m.recipe; }},
            {"rmse", "amount?", "", [](auto& x) { return x.m.rmse; }},
            {"ailing_block_rate", "share?",
             "share of the eligible blocks that still do what the verdict says; null: bf16",
             [](auto& x) {
                 return x.m.recipe == engine::bf16_name
                            ? report::value()
                            : x.m.defective_share[static_cast<std::size_t>(x.what)];
             }},
            {"other_verdict", "string", "what 1 % or more of the blocks do instead; may be empty",
             [](auto& x) {
                 const auto other = x.other();
                 return other ? std::string(verdict(*other)) : std::string();
             }},
            {"other_block_rate", "share?", "share of these blocks; null: there is none",
             [](auto& x) {
                 const auto other = x.other();
                 return other ? report::value(x.m.defective_share[static_cast<std::size_t>(*other)])
                              : report::value();
             }},
            {"saturated_block_rate", "share?", "",
             [](auto& x) { return x.m.saturated_block_rate; }},
            {"bits_per_element", "number", "", [](auto& x) { return x.m.bits_per_element; }},
        });

struct shown_finding {
    const finding& f;
    const engine::role_finder& roles;
    const io::tensor_info& info = f.tensor.info();
    const block_survey& s = f.survey;
    const measured_remedy& chosen = f.remedies[f.chosen];
};
constexpr std::array finding_members = std::to_array<report::declared<shown_finding>>({
    {"file", "string", "", [](auto& x) { return x.info.file; }},
    {"tensor", "string", "", [](auto& x) { return x.info.name; }},
    {"role", "@members#role", "", [](auto& x) { return x.roles.role_of(x.info); }},
    {"recipe", "string", "", [](auto& x) { return codec::to_string(x.f.recipe); }},
    {"verdict", verdicts, "what most of the lost blocks do",
     [](auto& x) { return verdict(x.f.what); }},
    {"eligible_blocks", "@members#eligible_blocks",
     "blocks with two or more non-zero finite elements", [](auto& x) { return x.s.eligible; }},
    {"ailing_blocks", "count", "eligible blocks that do what the verdict says",
     [](auto& x) { return x.s.defective[static_cast<std::size_t>(x.f.what)]; }},
    {"ailing_block_rate", "share", "of the eligible blocks",
     [](auto& x) { return x.s.share(x.f.what); }},
    {"saturated_blocks", "count", "eligible blocks that saturate, with or without loss",
     [](auto& x) { return x.s.saturated; }},
    {"saturated_block_rate", "@members#saturated_block_rate", "",
     [](auto& x) { return x.s.saturated_block_rate; }},
    {"collapsed_block_rate", "@members#collapsed_block_rate", "",
     [](auto& x) { return x.s.collapsed_block_rate; }},
    {"certain_overflow_block_rate", "share?", "",
     [](auto& x) { return x.s.certain_overflow_block_rate; }},
    {"certain_saturation_block_rate", "share?", "",
     [](auto& x) { return x.s.certain_saturation_block_rate; }},
    {"clamp_zone_block_rate", "share?", "", [](auto& x) { return x.s.clamp_zone_block_rate; }},
    {"saturated_block_gain", "number?", "", [](auto& x) { return x.s.saturated_block_gain; }},
    {"spread_p50", "share?", "median of min |x != 0| / max |x| over blocks",
     [](auto& x) { return report::value_of(x.s.spread, "p50"); }},
    {"rmse", "@members#rmse", "", [](auto& x) { return x.s.rmse; }},
    {"nrmse", "@members#nrmse", "", [](auto& x) { return x.s.nrmse; }},
    {"bits_per_element", "@members#bits_per_element", "",
     [](auto& x) { return x.s.bits_per_element; }},
    {"remedy", "string", "the recommended remedy: a recipe, or bf16",
     [](auto& x) { return x.chosen.recipe; }},
    {"remedy_rmse", "amount?", "R-MSE under it", [](auto& x) { return x.chosen.rmse; }},
    {"remedies", "[#remedy]", "the remedies that were measured",
     [](auto& x) {
         return report::to_list(x.f.remedies, [&](const measured_remedy& m) {
             return report::written(remedy_members, {m, x.f.what});
         });
     }},
    {"worst_blocks", "[#bad_block]", "blocks with the largest loss",
     [](auto& x) { return report::listed(block_members, x.s.worst); }},
});

// Values of a norm.
struct counts {
    std::atomic<std::uint64_t> finite{0}, small{0}, negative{0}, zero{0};

    void add(std::span<const float> x) {
        std::uint64_t f = 0, s = 0, n = 0, z = 0;
        for (const float v : x) {
            if (!std::isfinite(v)) continue;
            ++f;
            s += std::abs(v) < 0.5f ? 1u : 0u;
            n += v < 0 ? 1u : 0u;
            z += v == 0 ? 1u : 0u;
        }
        finite += f;
        small += s;
        negative += n;
        zero += z;
    }

    bool around_zero() const {
        return 2 * small > finite && (10 * negative >= finite || zero == finite);
    }
};

// What the survey adds to a record of the analysis, before the quantiles of the spread.
constexpr std::array survey_members = std::to_array<report::declared<block_survey>>({
    {"clamp_zone_block_rate", "share?",
     "share of blocks whose maximum lies where the recipe clamps; mx cluster",
     [](auto& s) { return s.clamp_zone_block_rate; }},
    {"certain_overflow_block_rate", "share?",
     "share of eligible blocks in which every element certainly overflows; mx cluster",
     [](auto& s) { return s.certain_overflow_block_rate; }},
    {"certain_saturation_block_rate", "share?",
     "share of eligible blocks in which every element certainly saturates; mx cluster",
     [](auto& s) { return s.certain_saturation_block_rate; }},
    {"saturated_block_gain", "number?", "mean gain of the saturated blocks; mx cluster",
     [](auto& s) { return s.saturated_block_gain; }},
});
constexpr std::array spread_quantiles{"p01", "p05", "p25", "p50", "p75", "p95", "p99"};

report::record members_of(const block_survey& s) {
    report::record r = report::written(survey_members, s);
    for (const char* name : spread_quantiles) {
        r.emplace_back(fmt::format("spread_{}", name), report::value_of(s.spread, name));
    }
    return r;
}

// What surveys of its tensors say of a group under a recipe.
struct member_facts {
    std::uint64_t in_danger = 0;
    std::string most_saturated;
    std::optional<double> rate{};  // of its saturated blocks

    void take(const io::tensor_info& tensor, const block_survey& s, bool danger) {
        in_danger += danger ? 1u : 0u;
        const std::optional<double> here = report::number_of(s.saturated_block_rate);
        if (!here || (rate && *rate >= *here)) return;
        most_saturated = tensor.name;
        rate = here;
    }
};
constexpr std::array fact_members = std::to_array<report::declared<member_facts>>({
    {"members_in_danger", "count", "tensors in danger; mx cluster --group",
     [](auto& f) { return f.in_danger; }},
    {"most_saturated_member", "string?",
     "the tensor with the largest share of saturated blocks, the first of equals; mx cluster "
     "--group",
     [](auto& f) { return f.rate ? report::value(f.most_saturated) : report::value(); }},
    {"most_saturated_block_rate", "share?",
     "saturated_block_rate of that tensor; mx cluster --group", [](auto& f) { return f.rate; }},
});

// The worst defect that at least danger_share of the eligible blocks have.
std::optional<defect> danger_of(const block_survey& s) {
    if (report::number_of(s.rmse) == 0.0) return std::nullopt;  // every value is kept
    for (std::size_t a = 0; a < defect_count; ++a) {
        const auto what = static_cast<defect>(a);
        if (s.defective[a] > 0 && s.share(what) >= danger_share) return what;
    }
    return std::nullopt;
}

// Orders by defect, then by the share of blocks that have it, then by nrmse.
bool more_severe(const finding& a, const finding& b) {
    const auto severity = [](const finding& f) {
        return std::tuple(-static_cast<int>(f.what), f.survey.share(f.what),
                          report::number_of(f.survey.nrmse).value_or(0));
    };
    return severity(b) < severity(a);
}

norm_centres find_norm_centres(const std::vector<engine::tensor_ref>& tensors,
                               const engine::role_finder& roles,
                               const engine::run_control& control) {
    std::vector<engine::tensor_ref> norms;
    for (const engine::tensor_ref& t : tensors) {
        if (t.info().elements != 0 && roles.role_of(t.info()) == "norm") norms.push_back(t);
    }
    std::vector<counts> found(norms.size());
    engine::sweep_values(norms, control,
                         [&](std::size_t t, const engine::loaded_panel& p) { found[t].add(p.x); });
    norm_centres centres;
    centres.norms = norms.size();
    for (std::size_t i = 0; i < norms.size(); ++i) {
        if (found[i].around_zero()) centres.around_zero.push_back(norms[i].info().name);
    }
    return centres;
}

// Takes what a survey of a tensor says. Whether the tensor is in danger.
bool note(cluster_report& to, const engine::tensor_ref& tensor, const codec::recipe& recipe,
          const block_survey& s) {
    recipe_summary& h = to.summaries[s.recipe];
    ++h.tensors;
    h.judged += s.eligible > 0 ? 1u : 0u;
    h.eligible += s.eligible;
    h.saturated += s.saturated;
    h.saturating_tensors += s.saturated > 0 ? 1u : 0u;
    if (s.eligible == 0 && s.blocks > 1 && !s.without_values) {
        to.unjudged.push_back({tensor.info().name, codec::to_string(recipe)});
    }
    if (const std::optional<defect> what = danger_of(s)) {
        ++h.in_danger;
        to.findings.push_back({tensor, recipe, *what, s, {}, 0});
        return true;
    }
    // The first of equal ones: tensors come in order.
    if (s.nearest && (!h.nearest || s.nearest->nearness > h.nearest->nearness)) {
        h.nearest = s.nearest;
        h.nearest_tensor = tensor.info().name;
    }
    return false;
}

void find_remedies(cluster_report& to, std::size_t recipe, const engine::run_request& request,
                   engine::run_control control) {
    std::vector<finding*> affected;
    std::vector<engine::tensor_ref> tensors;
    for (finding& f : to.findings) {
        if (f.survey.recipe != recipe) continue;
        affected.push_back(&f);
        tensors.push_back(f.tensor);
    }
    if (affected.empty()) return;
    control.on_progress = nullptr;
    auto measured = measure_remedies(tensors, request.recipes[recipe], request, control);
    for (std::size_t i = 0; i < affected.size(); ++i) {
        finding& f = *affected[i];
        f.remedies = std::move(measured[i]);
        f.chosen = choose_remedy(f.remedies, f.what, f.survey.rmse);
    }
}

}  // namespace

const defect_description& description_of(defect a) { return words[static_cast<std::size_t>(a)]; }

const defect_description& description_of(std::string_view one) {
    const auto at = std::ranges::find(words, one, &defect_description::one);
    return at == words.end() ? words.front() : *at;
}

report::record finding_record(const finding& f, const engine::role_finder& roles) {
    return report::written(finding_members, {f, roles});
}

void declare_survey(report::member_list& result, report::document_schema& to) {
    result.add_of_some(survey_members);
    for (const char* name : spread_quantiles) {
        result.add({result.keep(fmt::format("spread_{}", name)), "share?",
                    "quantile of min |x != 0| / max |x| over blocks; mx cluster", false});
    }
    result.add_of_some(fact_members);
    to.define("finding", finding_members)
        .define("remedy", remedy_members)
        .define("bad_block", block_members);
}

cluster_report diagnose(const std::vector<engine::tensor_ref>& tensors,
                        const analysis::analysis_request& request,
                        const engine::run_control& control) {
    cluster_report report;
    std::vector<engine::skipped_tensor> left_out;  // the analysis reports them as well
    const std::vector<engine::tensor_ref> numeric = engine::numeric_only(tensors, left_out);
    report.summaries.resize(request.recipes.size());
    analysis::analysis_request with_parts = request;
    with_parts.decompose = true;
    const auto added = std::make_shared<report::record_list>();
    std::vector<std::size_t> group_of;  // by tensor
    std::vector<member_facts> facts;    // by group and recipe
    const std::size_t recipes = request.recipes.size();
    const auto take = [&](const block_survey& s) {
        const engine::tensor_ref& tensor = numeric[s.tensor];
        const bool danger = note(report, tensor, request.recipes[s.recipe], s);
        if (group_of.empty()) {
            added->push_back(members_of(s));
        } else {
            facts[group_of[s.tensor] * recipes + s.recipe].take(tensor.info(), s, danger);
        }
    };
    std::optional<block_surveyor> surveyor;
    if (request.groups.empty()) {
        surveyor.emplace(with_parts, take);
    } else {
        analysis::grouping groups = analysis::group_tensors(numeric, request.groups, request.roles);
        group_of = groups.group_of;
        facts.resize(groups.groups.size() * recipes);
        surveyor.emplace(with_parts, take, std::move(groups));
    }
    analysis::analysis a = analysis::analyze(tensors, with_parts, control, &*surveyor);
    report.skipped = std::move(a.skipped);
    report.sums = std::move(a.sums);
    if (!group_of.empty()) {
        for (const block_survey& s : surveyor->take_groups()) {
            report::record r = members_of(s);
            report::append(r, fact_members, facts[s.tensor * recipes + s.recipe]);
            added->push_back(r);
        }
    }
    report.measured = std::move(a.results);
    report.results = {added->size(), [measured = report.measured, added](std::size_t index) {
                          report::record r = analysis::record_of(measured[index]);
                          std::ranges::move((*added)[index], std::back_inserter(r));
                          return r;
                      }};
    // A part leaves this to the whole, which knows all of every tensor.
    if (request.partial && !request.partial->merges) return report;
    for (std::size_t r = 0; r < request.recipes.size(); ++r) {
        find_remedies(report, r, request, control);
    }
    std::ranges::stable_sort(report.findings, more_severe);
    report.norms = find_norm_centres(numeric, request.roles, control);
    return report;
}

}  // namespace mx::cluster
