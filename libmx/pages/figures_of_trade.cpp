// SPDX-License-Identifier: Apache-2.0
// Compares recipes: bits and error, block size and error, sources of error.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "libmx/base/decibels.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/pages/class_trades.hpp"
#include "libmx/pages/figure_parts.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/pages/views/words.hpp"
#include "libmx/studies/compare/ranking.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::pages {
namespace {

// Results of earlier versions only say the dtype.
double stored_bits(const analysis::tensor_identity& of, double elements) {
    if (of.stored_bytes) return 8 * static_cast<double>(*of.stored_bytes);
    const auto dtype = tensor::find_dtype(of.dtype);
    return (dtype ? tensor::row_of(*dtype).bits : 32) * elements;
}

// Every tensor under its chosen recipe; a tensor that keeps its precision has its stored bits and
// no error. nullopt if nothing is chosen.
std::optional<report::point> mixture_of(const review_data& e, const class_trades& r,
                                        const chosen_cells& chosen) {
    double bits = 0, noise = 0, elements = 0;
    for (const std::size_t t : r.tensors) {
        const double here = elements_of(e, t);
        elements += here;
        if (chosen[t]) {
            const analysis::result& m = e.table.of(t, e.plan.cells[*chosen[t]].runs.front());
            bits += m.bits_per_element * here;
            if (!std::isnan(m.nrmse)) noise += m.nrmse * m.nrmse * here;
        } else {
            bits += stored_bits(*e.table.tensors[t].of, here);
        }
    }
    if (!(noise > 0)) return {};
    return report::point{bits / elements, base::decibels_of_power(noise / elements), "recommended"};
}

void add_bits(const review_data& e, const class_trades& r, const chosen_cells& chosen,
              report::section& to) {
    report::scatter_chart chart;
    double elements = 0;
    for (const std::size_t t : r.tensors) elements += elements_of(e, t);
    chart.x =
        axis_of(fmt::format("bits per element, 1 bit = {}", bytes_text(counted(elements / 8))), "");
    chart.y = axis_of("SQNR", "dB");
    chart.path_name = "Pareto front";
    chart.stepped = true;
    std::vector<compare::trade> trades;
    std::vector<const candidate*> shown;
    for (const candidate& c : r.candidates) {
        if (!std::isfinite(c.sqnr_db)) continue;
        trades.push_back({c.bits, c.sqnr_db});
        shown.push_back(&c);
    }
    if (shown.size() < 2) return;
    const std::vector<bool> front = compare::pareto_front(trades);
    for (std::size_t i = 0; i < shown.size(); ++i) {
        chart.marks.push_back({{shown[i]->bits, shown[i]->sqnr_db, e.cell_name(shown[i]->cell)},
                               std::string(e.plan.cells[shown[i]->cell].recipe.element->name),
                               front[i]});
        if (front[i]) chart.path.emplace_back(shown[i]->bits, shown[i]->sqnr_db);
    }
    std::ranges::sort(chart.path);
    std::string caption =
        "Over all elements together, each tensor divided by its RMS, so that large values of one "
        "do not hide the others. For recipes on the front, no other has both as few bits and as "
        "high an SQNR.";
    if (const auto mixture = mixture_of(e, r, chosen)) {
        chart.marks.push_back({*mixture, "mixture of the verdict", true});
        caption +=
            " recommended: what mx plan writes, with stored bits for tensors that keep their "
            "precision.";
    }
    add_figure(to, "bits", fmt::format("Bits against SQNR, {}", tensors_of(r.role)),
               std::move(caption), std::move(chart))
        .more = !r.role.empty();
}

// Recipes that differ only in their block.
struct block_family {
    codec::recipe common;
    std::vector<const candidate*> members;
};

std::vector<block_family> block_families(const review_data& e, const class_trades& r) {
    std::vector<block_family> families;
    for (const candidate& c : r.candidates) {
        codec::recipe common = e.plan.cells[c.cell].recipe;
        common.block = {};
        auto at = std::ranges::find_if(families,
                                       [&](const block_family& f) { return f.common == common; });
        if (at == families.end()) at = families.insert(at, block_family{common, {}});
        at->members.push_back(&c);
    }
    std::erase_if(families, [](const block_family& f) { return f.members.size() < 2; });
    return families;
}

double block_elements(const review_data& e, const candidate& c) {
    const codec::block_shape& b = e.plan.cells[c.cell].recipe.block;
    return static_cast<double>(b.rows) * b.cols;
}

void add_blocks(const review_data& e, const class_trades& r, report::section& to) {
    report::line_chart chart;
    chart.x = axis_of("elements per block", "", true);
    chart.y = axis_of("SQNR", "dB");
    for (block_family& f : block_families(e, r)) {
        std::ranges::stable_sort(f.members, [&](const candidate* a, const candidate* b) {
            return block_elements(e, *a) < block_elements(e, *b);
        });
        if (chart.lines.size() == most_lines) break;
        // Named like the member with the preset's own block, else like the first.
        report::line_chart::line line{e.cell_name(f.members.front()->cell), {}};
        for (const candidate* c : f.members) {
            if (e.cell_name(c->cell).size() < line.name.size()) line.name = e.cell_name(c->cell);
            line.points.push_back(
                {block_elements(e, *c),
                 std::isfinite(c->sqnr_db) ? std::optional(c->sqnr_db) : std::nullopt,
                 fmt::format("{}, {:.2f} bits", e.cell_name(c->cell), c->bits)});
        }
        chart.lines.push_back(std::move(line));
    }
    if (chart.lines.empty()) return;
    add_figure(to, "blocks", fmt::format("Error against block size, {}", tensors_of(r.role)),
               "Recipes that differ only in their block. Each tensor is divided by its RMS.",
               std::move(chart))
        .more = !r.role.empty();
}

void add_parts(const review_data& e, const class_trades& r, report::section& to) {
    constexpr std::array parts{"clamp", "underflow", "grid"};
    report::stacked_chart chart;
    chart.value = axis_of("squared error over squared values", "", false, true);
    chart.parts.assign(parts.begin(), parts.end());
    for (const candidate& c : r.candidates) {
        if (chart.categories.size() == most_figure_recipes) break;
        if (!c.rate("grid_error_share")) continue;
        chart.categories.push_back(e.cell_name(c.cell));
        chart.cells.emplace_back();
        // Bar lengths are errors, not shares: one recipe's error is many times another's.
        const double error = std::pow(10.0, -c.sqnr_db / 10);
        for (const char* part : parts) {
            const auto share = c.rate(fmt::format("{}_error_share", part));
            chart.cells.back().push_back(share ? std::optional(*share * error) : std::nullopt);
        }
    }
    if (chart.categories.empty()) return;
    add_figure(to, "parts", fmt::format("Parts of the error, {}", tensors_of(r.role)),
               "Squared error of elements that clamp, of others that become zero, and of rounding "
               "on the grid. Each tensor is divided by its RMS.",
               std::move(chart))
        .more = !r.role.empty();
}

void add_regret(const review_data& e, const class_trades& r, report::section& to) {
    report::stacked_chart chart;
    chart.value = axis_of("squared error over squared values", "", false, true);
    chart.parts = {"under the best scales", "regret"};
    for (const candidate& c : r.candidates) {
        if (chart.categories.size() == most_figure_recipes) break;
        const auto share = c.rate("regret_share");
        if (!share) continue;
        const double error = std::pow(10.0, -c.sqnr_db / 10);
        const double regret = std::max(*share, 0.0) * error;
        chart.categories.push_back(e.cell_name(c.cell));
        chart.cells.push_back({error - regret, regret});
    }
    if (chart.categories.empty()) return;
    add_figure(to, "regret",
               fmt::format("Error that better scales would save, {}", tensors_of(r.role)),
               "The squared error under the best scale of each block, and the additional error of "
               "the rule. Each tensor is divided by its RMS.",
               std::move(chart))
        .more = !r.role.empty();
}

void add_plane(const review_data& e, const std::vector<class_trades>& all, report::section& to) {
    report::scatter_chart chart;
    chart.x = axis_of("overflow", "", true, true);
    chart.y = axis_of("underflow", "", true, true);
    constexpr std::size_t plane_names = 5;
    for (const class_trades& r : all) {
        for (const candidate& c : r.candidates) {
            const auto over = c.rate("overflow_rate");
            const auto under = c.rate("underflow_rate");
            if (!over || !under) continue;
            chart.marks.push_back(
                {{*over, *under, fmt::format("{}, {}", e.cell_name(c.cell), r.role)},
                 r.role,
                 false});
        }
    }
    // Names of the worst tensors, if they lose anything.
    const auto lost = [](const auto& m) { return m.at.x + *m.at.y; };
    std::ranges::stable_sort(chart.marks,
                             [&](const auto& a, const auto& b) { return lost(a) > lost(b); });
    if (chart.marks.empty() || lost(chart.marks.front()) <= 0) return;
    for (std::size_t i = 0; i < std::min(plane_names, chart.marks.size()); ++i) {
        chart.marks[i].named = lost(chart.marks[i]) > 0;
    }
    add_figure(to, "plane", "Overflow against underflow",
               "A mark is a recipe on a class of tensors: the share of elements beyond the "
               "largest value before rounding, and of non-zero elements that become zero. Zero is "
               "drawn at the low end.",
               std::move(chart));
}

}  // namespace

report::section trade_section(const review_data& e, const chosen_cells& chosen) {
    report::section s{.heading = "Recipe against recipe"};
    std::vector<class_trades> all;
    for (const tensor_class& c : e.classes) all.push_back(trades_of(c.role, e, c.tensors));
    std::vector<class_trades> shown{trades_of("", e, compare::all_tensors(e.table))};
    for (const std::string& role : plotted_roles(e)) {
        for (const class_trades& r : all) {
            if (r.role == role) shown.push_back(r);
        }
    }
    for (const class_trades& r : shown) add_bits(e, r, chosen, s);
    for (const class_trades& r : shown) add_blocks(e, r, s);
    const bool blocks =
        std::ranges::any_of(s.figures, [](const report::figure& f) { return f.id == "blocks"; });
    if (!blocks) {
        s.notes.push_back(
            "Error against block size: give recipes that differ only in their block, as in mx "
            "compare --block 1x16,1x32,1x64.");
    }
    if (e.decomposed()) {
        for (const class_trades& r : shown) add_parts(e, r, s);
    } else {
        s.notes.push_back("Parts of the error: run mx analyze with --decompose or --html.");
    }
    if (e.has_regret()) {
        for (const class_trades& r : shown) add_regret(e, r, s);
    } else {
        s.notes.push_back("Error that better scales would save: run mx analyze with --regret.");
    }
    add_plane(e, all, s);
    return s;
}

}  // namespace mx::pages
