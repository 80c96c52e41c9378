// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "libmx/analysis/alarms.hpp"
#include "libmx/engine/stored_precision.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/pages/words.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

// The candidate with the highest SQNR of those that `wanted` admits.
template <typename Wanted>
const candidate* best_of(const recommendation& r, const Wanted& wanted) {
    const candidate* best = nullptr;
    for (const candidate& c : r.candidates) {
        if (wanted(c) && (best == nullptr || c.sqnr_db > best->sqnr_db)) best = &c;
    }
    return best;
}

// "saturates 1 of 4 tensors", for a recipe that damages some.
std::string damage_words(const candidate& c, std::size_t tensors) {
    const bool saturates = c.saturation.tensors > 0;
    return fmt::format("{} {} of {}", saturates ? "saturates" : "collapses",
                       saturates ? c.saturation.tensors : c.collapse.tensors,
                       report::plural(tensors, "tensor"));
}

// Why nothing with fewer bits was taken.
std::string reason_for(const evidence& e, const recommendation& r, const candidate& chosen,
                       const policy& p) {
    const auto cheaper = [&](const candidate& c) { return c.bits < chosen.bits - same_bits; };
    const auto damages = [&](const candidate& c) {
        return cheaper(c) && c.sqnr_db >= p.min_sqnr_db;
    };
    if (const candidate* c = best_of(r, damages)) {
        return fmt::format("{} has fewer bits but {}", e.cell_name(c->cell),
                           damage_words(*c, r.tensors.size()));
    }
    if (const candidate* c = best_of(r, cheaper)) {
        return fmt::format("fewer bits give {} at most ({})", decibels(c->sqnr_db),
                           e.cell_name(c->cell));
    }
    return r.candidates.size() == 1 ? "the only recipe measured" : "nothing measured is smaller";
}

// Why nothing was taken at all.
std::string reason_against(const evidence& e, const recommendation& r, const policy& p) {
    const auto reaches = [&](const candidate& c) { return c.sqnr_db >= p.min_sqnr_db; };
    const auto saves = [&](const candidate& c) {
        return reaches(c) && c.bits < bf16_bits - same_bits;
    };
    if (best_of(r, reaches) != nullptr && best_of(r, saves) == nullptr) {
        return fmt::format("what reaches {:g} dB takes no fewer bits than bf16", p.min_sqnr_db);
    }
    if (const candidate* c = best_of(r, saves)) {
        return fmt::format("what reaches {:g} dB {}: {} {}", p.min_sqnr_db,
                           c->saturation.tensors > 0 ? "saturates" : "collapses",
                           e.cell_name(c->cell), damage_words(*c, r.tensors.size()));
    }
    const candidate* c = best_of(r, [](const candidate&) { return true; });
    if (std::isinf(c->sqnr_db)) return "no SQNR under any recipe";
    return fmt::format("no recipe reaches {:g} dB; the best, {}, has {}", p.min_sqnr_db,
                       e.cell_name(c->cell), decibels(c->sqnr_db));
}

std::string kept_reason(const recommendation& r) {
    return r.dtypes.empty() ? "kept as stored"
                            : fmt::format("kept as stored, {}", listed(r.dtypes));
}

void add_row(const evidence& e, const recommendation& r, const policy& p, report::section& to) {
    const candidate* c = r.chosen ? &r.candidates[*r.chosen] : nullptr;
    const report::value none;
    if (r.undecided) {
        to.add(r.role, r.tensors.size(), "undecided");
        to.rows.back().emplace_back("reason", "no tensor was measured under every recipe");
    } else if (c == nullptr) {
        to.add(r.role, r.tensors.size(), r.fallback, r.fallback_bits, bf16_bits / r.fallback_bits,
               none, none, none, none, r.kept ? kept_reason(r) : reason_against(e, r, p));
    } else {
        to.add(r.role, r.tensors.size(), name_of(e.plan, r, r.chosen), c->bits, bf16_bits / c->bits,
               finite_or_null(c->sqnr_db), c->below, c->rate("clamp_rate"),
               c->rate("underflow_rate"), reason_for(e, r, *c, p));
    }
}

// "mxfp6:scale=even for weight and embedding.", in the order of the classes; what keeps its stored
// precision comes last.
std::vector<std::string> choices(const evidence& e, const recommendations& all) {
    std::vector<std::pair<std::string, std::vector<std::string>>> by_recipe;
    for (const recommendation& r : all) {
        if (r.undecided) continue;
        const std::string recipe = name_of(e.plan, r, r.chosen);
        std::size_t i = 0;
        while (i < by_recipe.size() && by_recipe[i].first != recipe) ++i;
        if (i == by_recipe.size()) by_recipe.push_back({recipe, {}});
        by_recipe[i].second.push_back(r.role);
    }
    std::ranges::stable_partition(
        by_recipe, [](const auto& one) { return one.first != engine::stored_choice; });
    std::vector<std::string> said;
    for (const auto& [recipe, roles] : by_recipe) {
        said.push_back(
            recipe == engine::stored_choice
                ? fmt::format("No recipe for {}: keep the stored precision.", listed(roles))
                : fmt::format("{} for {}.", recipe, listed(roles)));
    }
    return said;
}

std::string cost_words(const recommendations& all) {
    double bits = 0, elements = 0, kept = 0;
    std::size_t tensors = 0;
    for (const recommendation& r : all) {
        if (r.undecided) continue;
        bits += bits_of(r, r.chosen) * r.elements;
        elements += r.elements;
        tensors += r.tensors.size();
        if (!r.chosen) kept += r.elements;
    }
    if (elements == 0) return {};
    const double mean = bits / elements;
    std::string text = fmt::format(
        "Cost: {:.3f} bits per element over {} elements of {}, {:.2f} times smaller than bf16",
        mean, report::grouped(report::whole(elements)), report::plural(tensors, "tensor"),
        bf16_bits / mean);
    text += kept > 0
                ? fmt::format("; {} of the elements are not quantized.", percent(kept / elements))
                : ".";
    return text;
}

// What the SQNR of a recommendation does not say.
void add_warnings(const evidence& e, const recommendations& all, std::vector<std::string>& notes) {
    for (const recommendation& r : all) {
        if (!r.chosen) continue;
        const candidate& c = r.candidates[*r.chosen];
        const double underflow = c.rate("underflow_rate").value_or(0);
        if (underflow >= noted_underflow_rate) {
            notes.push_back(fmt::format(
                "- {}: {} turns {} of the non-zero elements into zero, which SQNR hardly sees.",
                r.role, e.cell_name(c.cell), percent(underflow)));
        }
        if (c.clamping > 0) {
            notes.push_back(
                fmt::format("- {}: {} clamps {:g} % of the elements or more in {} of {}.", r.role,
                            e.cell_name(c.cell), 100 * analysis::alarming_clamp_rate, c.clamping,
                            report::plural(r.tensors.size(), "tensor")));
        }
    }
}

std::vector<report::column> columns() {
    using report::cell;
    return {{"role", "class"},
            {"tensors", "tensors", cell::integer},
            {"recipe", "recommended"},
            {"bits", "bits per\nelement", cell::fixed, 2},
            {"compression", "bf16\nratio", cell::fixed, 2},
            {"sqnr_db", "SQNR\ndB", cell::fixed, 2},
            {"below", "tensors\nbelow", cell::integer},
            {"clamp_rate", "clamp\n%", cell::share},
            {"underflow_rate", "under-\nflow %", cell::share},
            {"reason", "why"}};
}

}  // namespace

std::vector<report::section> verdict_sections(const evidence& e, const recommendations& all,
                                              const policy& p) {
    report::section words, s;
    words.heading = "Verdict";
    const std::vector<std::string> said = choices(e, all);
    if (said.empty()) words.notes.push_back("Undecided: see below.");
    for (const std::string& choice : said) words.notes.push_back("- " + choice);
    if (!said.empty()) words.notes.push_back(cost_words(all));
    add_warnings(e, all, words.notes);
    s.heading = "What to use for each class";
    s.columns = columns();
    std::int64_t left_out = 0;
    std::size_t unknown = 0;
    for (const recommendation& r : all) {
        add_row(e, r, p, s);
        left_out += r.not_everywhere;
        if (r.chosen) unknown += r.candidates[*r.chosen].collapse_unknown;
    }
    s.notes.push_back(fmt::format(
        "Recommended is the recipe with the fewest bits, of those measured, that has {:g} dB of "
        "SQNR or more over the class, each tensor divided by its RMS (an error of {:.3g} % of it "
        "at most), and neither saturates nor collapses any of its tensors; where there is none, "
        "bf16, "
        "which was not measured, or the stored precision. Norms, biases and routers always keep "
        "their stored precision: their own error does not show what they do to a model. Tensors "
        "below: whose own SQNR is below that floor. These are errors of tensors, not of what a "
        "model does with them.",
        p.min_sqnr_db, 100 * std::pow(10, -p.min_sqnr_db / 20)));
    if (unknown > 0) {
        s.notes.push_back(
            fmt::format("Collapse was not measured for {} under what is recommended: the results "
                        "lack collapsed_block_rate. Analyse again to have it judged.",
                        report::plural(unknown, "tensor")));
    }
    if (left_out > 0) {
        s.notes.push_back(
            fmt::format("{} {} measured under some of the recipes only and left out here.",
                        report::plural(left_out, "tensor"), left_out == 1 ? "was" : "were"));
    }
    if (e.skipped > 0) {
        s.notes.push_back(fmt::format(
            "The run left out {} (see 'skipped' of the results).",
            e.skipped == 1 ? "1 tensor or recipe of one"
                           : report::grouped(e.skipped) + " tensors or recipes of them"));
    }
    if (e.repeated > 0) {
        s.notes.push_back(fmt::format("{} {} in more than one document; the first counts.",
                                      report::plural(e.repeated, "result"),
                                      e.repeated == 1 ? "is" : "are"));
    }
    return {std::move(words), std::move(s)};
}

}  // namespace mx::pages
