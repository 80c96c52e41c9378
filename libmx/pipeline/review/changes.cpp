// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "libmx/pipeline/review/sections.hpp"
#include "libmx/pipeline/review/words.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pipeline::review {
namespace {

std::string name_of(const evidence& e, const recommendation& r, const rung& step) {
    return step.candidate ? e.cell_name(r.candidates[*step.candidate].cell) : std::string("bf16");
}

double bits_of(const recommendation& r, const rung& step) {
    return step.candidate ? r.candidates[*step.candidate].bits : bf16_bits;
}

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

void add_rows(const evidence& e, const recommendation& r, std::vector<report::record>& rows) {
    const std::vector<rung> rungs = ladder(r.candidates);
    const std::size_t now = standing_on(r, rungs);
    for (std::size_t i = 0; i < rungs.size(); ++i) {
        rows.push_back({{"role", r.role},
                        {"floor", floors(rungs, i)},
                        {"recipe", name_of(e, r, rungs[i])},
                        {"bits", bits_of(r, rungs[i])},
                        {"compression", bf16_bits / bits_of(r, rungs[i])},
                        {"now", std::string(i == now ? "recommended" : "")}});
    }
}

// The rung below: what a lower floor would save.
std::string cheaper_words(const evidence& e, const recommendation& r, const policy& p) {
    const std::vector<rung> rungs = ladder(r.candidates);
    const std::size_t now = standing_on(r, rungs);
    if (now == 0) return {};
    const rung& below = rungs[now - 1];
    return fmt::format(
        "- {}: {} misses the floor by {:.2f} dB; with --min-sqnr {} it would be recommended and "
        "save {:.2f} bits per element.",
        r.role, name_of(e, r, below), p.min_sqnr_db - below.up_to_db, met_floor(below.up_to_db),
        bits_of(r, rungs[now]) - bits_of(r, below));
}

// The rung above: how far the floor may rise.
std::string dearer_words(const evidence& e, const recommendation& r, const policy& p) {
    const std::vector<rung> rungs = ladder(r.candidates);
    const std::size_t now = standing_on(r, rungs);
    if (!r.chosen || now + 1 == rungs.size()) return {};
    const rung& here = rungs[now];
    const rung& above = rungs[now + 1];
    return fmt::format(
        "- {}: {} clears the floor by {:.2f} dB; above {} dB it would be {}, for {:.2f} bits per "
        "element more.",
        r.role, name_of(e, r, here), here.up_to_db - p.min_sqnr_db, met_floor(here.up_to_db),
        name_of(e, r, above), bits_of(r, above) - bits_of(r, here));
}

// Recipes of as many bits that do as well: the data do not choose between them.
std::string close_words(const evidence& e, const recommendation& r) {
    if (!r.chosen) return {};
    const candidate& chosen = r.candidates[*r.chosen];
    std::vector<std::string> close;
    for (std::size_t i = 0; i < r.candidates.size(); ++i) {
        const candidate& c = r.candidates[i];
        if (i == *r.chosen || c.saturating > 0 || std::abs(c.bits - chosen.bits) > same_bits) {
            continue;
        }
        if (std::isinf(c.sqnr_db) && std::isinf(chosen.sqnr_db) && c.sqnr_db > 0) {
            close.push_back(fmt::format("{} (as exact)", e.cell_name(c.cell)));
        } else if (chosen.sqnr_db - c.sqnr_db < close_decibels) {
            close.push_back(fmt::format("{} ({:.2f} dB less)", e.cell_name(c.cell),
                                        chosen.sqnr_db - c.sqnr_db));
        }
    }
    if (close.empty()) return {};
    return fmt::format("- {}: too close to call between {} and {}, which take as many bits.",
                       r.role, e.cell_name(chosen.cell), listed(close));
}

// What saturation rules out, and what would not saturate.
std::string saturation_words(const evidence& e, const recommendation& r, const policy& p) {
    const auto otherwise = choose(r.candidates, {p.min_sqnr_db, true});
    if (!otherwise || otherwise == r.chosen) return {};
    const candidate& c = r.candidates[*otherwise];
    std::string text = fmt::format(
        "- {}: {} would be recommended but for saturation, in {} of {} (worst {}, {} of its "
        "blocks).",
        r.role, e.cell_name(c.cell), c.saturating, report::plural(r.tensors.size(), "tensor"),
        e.tensor_name(*c.worst_saturated), percent(c.worst_saturation));
    bool tried = false;
    for (const candidate& other : r.candidates) {
        tried = tried || e.plan.cells[other.cell].recipe.rule->name == "rceil";
    }
    if (!tried) text += " scale=rceil, under which no block maximum overflows, was not measured.";
    return text;
}

}  // namespace

report::section changes_section(const evidence& e, const recommendations& all, const policy& p) {
    using report::cell;
    report::section s;
    s.heading = "What would change the verdict";
    for (const recommendation& r : all) {
        if (r.undecided) continue;
        add_rows(e, r, s.rows);
        for (const std::string& note : {cheaper_words(e, r, p), dearer_words(e, r, p),
                                        close_words(e, r), saturation_words(e, r, p)}) {
            if (!note.empty()) s.notes.push_back(note);
        }
    }
    if (s.rows.empty()) return {};
    s.columns = {{"role", "class"},
                 {"floor", "floor of SQNR, dB"},
                 {"recipe", "then"},
                 {"bits", "bits per\nelement", cell::fixed, 2},
                 {"compression", "bf16\nto it", cell::fixed, 2},
                 {"now", ""}};
    return s;
}

}  // namespace mx::pipeline::review
