// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "libmx/pages/sections.hpp"
#include "libmx/pages/words.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/compare/families.hpp"

namespace mx::pages {
namespace {

// "above 18.87, up to 31.40": the floors that lead to a rung. Each end is rounded so that it keeps
// what it says.
std::string floors(const std::vector<rung>& rungs, std::size_t i) {
    const bool last = std::isinf(rungs[i].up_to_db);
    if (i == 0) return last ? "any" : fmt::format("up to {}", met_floor(rungs[i].up_to_db));
    const std::string from = met_floor(rungs[i - 1].up_to_db);
    return last ? fmt::format("above {}", from)
                : fmt::format("above {}, up to {}", from, met_floor(rungs[i].up_to_db));
}

// The rung that the recommendation stands on.
std::size_t standing_on(const recommendation& r, const std::vector<rung>& rungs) {
    for (std::size_t i = 0; i < rungs.size(); ++i) {
        if (rungs[i].candidate == r.chosen) return i;
    }
    return rungs.size() - 1;
}

// Differences that two decimals do not show are none.
bool shows(double difference) { return std::abs(difference) >= 0.005; }

// "for 2.00 bits more", of a recipe that takes over.
std::string for_bits(double more) {
    if (!shows(more)) return "for as many bits";
    return fmt::format("for {:.2f} bits {}", std::abs(more), more < 0 ? "fewer" : "more");
}

// The ladder without rungs that two decimals do not tell from the one below.
std::vector<rung> shown_ladder(const recommendation& r) {
    std::vector<rung> shown;
    for (const rung& step : ladder(r.candidates)) {
        const bool same = !shown.empty() && !std::isinf(step.up_to_db) &&
                          met_floor(step.up_to_db) == met_floor(shown.back().up_to_db);
        if (!same) {
            shown.push_back(step);
        } else if (step.candidate == r.chosen) {
            shown.back() = step;
        }
    }
    return shown;
}

void add_rows(const evidence& e, const recommendation& r, report::section& to) {
    const std::vector<rung> rungs = shown_ladder(r);
    const std::size_t now = standing_on(r, rungs);
    for (std::size_t i = 0; i < rungs.size(); ++i) {
        const double bits = bits_of(r, rungs[i].candidate);
        to.add(r.role, floors(rungs, i), name_of(e.plan, r, rungs[i].candidate), bits,
               bf16_bits / bits, i == now ? "recommended" : "");
    }
}

// The rungs next to the recommendation: what a lower floor would save, how far it may rise.
void add_margins(const evidence& e, const recommendation& r, const policy& p,
                 std::vector<std::string>& said) {
    const std::vector<rung> rungs = shown_ladder(r);
    const std::size_t now = standing_on(r, rungs);
    if (now > 0) {
        const rung& below = rungs[now - 1];
        const double saved = bits_of(r, rungs[now].candidate) - bits_of(r, below.candidate);
        said.push_back(fmt::format(
            "{} misses the floor by {}: --min-sqnr {} would take it{}",
            name_of(e.plan, r, below.candidate),
            shows(p.min_sqnr_db - below.up_to_db)
                ? fmt::format("{:.2f} dB", p.min_sqnr_db - below.up_to_db)
                : std::string("less than 0.01 dB"),
            met_floor(below.up_to_db),
            shows(saved) ? fmt::format(" and save {:.2f} bits per element", saved) : ""));
    }
    if (!r.chosen || now + 1 == rungs.size()) return;
    const rung& here = rungs[now];
    const rung& above = rungs[now + 1];
    said.push_back(fmt::format("{} clears the floor by {}; above {} dB {} takes over, {}",
                               name_of(e.plan, r, here.candidate),
                               shows(here.up_to_db - p.min_sqnr_db)
                                   ? fmt::format("{:.2f} dB", here.up_to_db - p.min_sqnr_db)
                                   : std::string("less than 0.01 dB"),
                               met_floor(here.up_to_db), name_of(e.plan, r, above.candidate),
                               for_bits(bits_of(r, above.candidate) - bits_of(r, here.candidate))));
}

// Recipes of as many bits that do as well: the data do not choose between them.
void add_close(const evidence& e, const recommendation& r, std::vector<std::string>& said) {
    if (!r.chosen) return;
    const candidate& chosen = r.candidates[*r.chosen];
    std::vector<std::string> close;
    for (std::size_t i = 0; i < r.candidates.size(); ++i) {
        const candidate& c = r.candidates[i];
        if (i == *r.chosen || c.damages() || std::abs(c.bits - chosen.bits) > same_bits) {
            continue;
        }
        if (std::isinf(c.sqnr_db) && std::isinf(chosen.sqnr_db) && c.sqnr_db > 0) {
            close.push_back(fmt::format("{} (as exact)", e.cell_name(c.cell)));
        } else if (const double less = chosen.sqnr_db - c.sqnr_db; less < close_decibels) {
            close.push_back(fmt::format(
                "{} ({})", e.cell_name(c.cell),
                shows(less) ? fmt::format("{:.2f} dB less", less) : std::string("as good")));
        }
    }
    if (close.empty()) return;
    said.push_back(fmt::format("Of as many bits and too close to call: {}", listed(close)));
}

// What saturation and collapse rule out.
void add_damage(const evidence& e, const recommendation& r, const policy& p,
                std::vector<std::string>& said) {
    const auto otherwise = choose(r.candidates, {p.min_sqnr_db, true});
    if (!otherwise || otherwise == r.chosen) return;
    const candidate& c = r.candidates[*otherwise];
    const bool saturates = c.saturation.tensors > 0;
    const damage& d = saturates ? c.saturation : c.collapse;
    said.push_back(
        fmt::format("{} would be recommended but for {}, in {} of {} (worst {}, {} of its blocks)",
                    e.cell_name(c.cell), saturates ? "saturation" : "collapse", d.tensors,
                    report::plural(r.tensors.size(), "tensor"), e.tensor_name(*d.worst),
                    percent(d.worst_rate)));
    const codec::recipe& recipe = e.plan.cells[c.cell].recipe;
    const bool other_rules = std::ranges::any_of(r.candidates, [&](const candidate& other) {
        codec::recipe under_same_rule = e.plan.cells[other.cell].recipe;
        if (under_same_rule.rule == recipe.rule) return false;
        under_same_rule.rule = recipe.rule;
        return under_same_rule == recipe;
    });
    if (saturates && !other_rules) said.push_back(compare::measure_more(recipe));
}

}  // namespace

std::vector<report::section> changes_sections(const evidence& e, const recommendations& all,
                                              const policy& p) {
    using report::cell;
    report::section words, rungs;
    words.heading = "What would change the verdict";
    rungs.heading = "Which floor leads to which recipe";
    rungs.columns = {{"role", "class"},
                     {"floor", "floor of SQNR, dB"},
                     {"recipe", "then"},
                     {"bits", "bits per\nelement", cell::fixed, 2},
                     {"compression", "bf16\nratio", cell::fixed, 2},
                     {"now", ""}};
    for (const recommendation& r : all) {
        if (r.undecided || r.kept) continue;
        add_rows(e, r, rungs);
        std::vector<std::string> said;
        add_margins(e, r, p, said);
        add_close(e, r, said);
        add_damage(e, r, p, said);
        std::string note;
        for (const std::string& part : said) note += (note.empty() ? "" : ". ") + part;
        if (!note.empty()) words.notes.push_back(fmt::format("- {}: {}.", r.role, note));
    }
    if (rungs.rows.empty()) return {};
    return {std::move(words), std::move(rungs)};
}

}  // namespace mx::pages
