// SPDX-License-Identifier: Apache-2.0
// Norm gains and the clamp zone: the gains of a block are close together, so if its maximum clamps,
// all of its elements do (Su et al., arXiv 2506.20752).
#include <fmt/format.h>

#include <algorithm>

#include "libmx/codec/clamp_zone.hpp"
#include "libmx/pages/figure_parts.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t most_norm_panels = 12;
constexpr std::size_t named_marks = 4;
constexpr std::size_t most_norm_marks = 400;
constexpr std::size_t most_zones = 3;
constexpr double many_saturated =
    0.10;  // share of a norm's saturated blocks from which on it is marked

// A norm tensor's block maxima, and the range of magnitudes within a block.
struct norm {
    std::size_t tensor;
    codec::recipe blocks;  // the recipe under which blocks were counted
    mantissas amax{};
    double tightness = 0;   // median over blocks of min / max
    std::string name = {};  // in plots
};

std::optional<std::size_t> find_tensor(const review_data& e, const report::record& r) {
    const std::string file = report::text_of(r, "file");
    const std::string name = report::text_of(r, "tensor");
    for (const tensor_class& c : e.classes) {
        if (c.role != "norm") continue;
        for (const std::size_t t : c.tensors) {
            const analysis::tensor_identity& of = *e.table.tensors[t].of;
            if (of.tensor == name && of.file == file) return t;
        }
    }
    return {};
}

std::vector<norm> norms_of(const review_data& e) {
    std::vector<norm> all;
    for (const report::record* r : e.norms) {
        const auto tensor = find_tensor(e, *r);
        const auto tightness = report::number_of(*r, "spread_p50");
        const std::string recipe = report::text_of(*r, "recipe");
        const auto& known = e.plan.recipes;
        const auto at = std::ranges::find_if(
            known, [&](const codec::recipe& k) { return codec::to_string(k) == recipe; });
        norm n;
        if (!tensor || !tightness || at == known.end() || !read_mantissas(*r, n.amax)) continue;
        n.tensor = *tensor;
        n.blocks = *at;
        n.tightness = *tightness;
        all.push_back(std::move(n));
    }
    return all;
}

// Short tensor names for a plot: without the parts that all of them start or end with.
std::vector<std::string> short_names(const review_data& e, const std::vector<norm>& norms) {
    std::vector<std::string> names;
    for (const norm& n : norms) names.push_back(e.tensor_name(n.tensor));
    const auto shared = [&](auto begin_of) {
        std::size_t length = 0;
        const std::string first(begin_of(names.front()));
        for (std::size_t dot = first.find('.'); dot != std::string::npos;
             dot = first.find('.', dot + 1)) {
            const std::string part = first.substr(0, dot + 1);
            const bool all = std::ranges::all_of(names, [&](const std::string& n) {
                return std::string(begin_of(n)).compare(0, part.size(), part) == 0;
            });
            if (!all) break;
            length = part.size();
        }
        return length;
    };
    if (names.size() < 2) return names;
    const std::size_t head = shared([](const std::string& n) { return n; });
    const std::size_t tail =
        shared([](const std::string& n) { return std::string(n.rbegin(), n.rend()); });
    for (std::string& n : names) {
        if (n.size() > head + tail) n = n.substr(head, n.size() - head - tail);
    }
    return names;
}

bool sees_blocks_of(const norm& n, const codec::recipe& r) {
    return n.blocks.block == r.block && n.blocks.axis == r.axis && n.blocks.rotate == r.rotate &&
           n.blocks.offset == r.offset && n.blocks.range == r.range;
}

// The share of block maxima in a zone; a bin on its edge counts partially.
double share_in(const mantissas& bins, const codec::clamp_zone& zone) {
    double inside = 0, all = 0;
    for (std::size_t i = 0; i < bins.size(); ++i) {
        const double low = 1 + static_cast<double>(i) / static_cast<double>(bins.size());
        const double high = 1 + static_cast<double>(i + 1) / static_cast<double>(bins.size());
        const double part = std::min(high, zone.to) - std::max(low, zone.from);
        inside += bins[i] * std::max(0.0, part) / (high - low);
        all += bins[i];
    }
    return all == 0 ? 0 : inside / all;
}

double saturation_of(const review_data& e, const norm& n, const compare::cell& c) {
    return analysis::value_or(e.table.of(n.tensor, c.runs.front()).saturated_block_rate, 0);
}

std::vector<std::string> groups() {
    return {fmt::format("saturates ({:g} % of blocks or more)", 100 * many_saturated),
            "some blocks saturate", "no block saturates"};
}

std::string group_of(double saturation) {
    return groups()[saturation >= many_saturated ? 0 : saturation > 0 ? 1 : 2];
}

// Cells that clamp depending on the mantissa, widest zones first, one per zone and block shape.
std::vector<const compare::cell*> zones_of(const review_data& e) {
    std::vector<const compare::cell*> cells;
    for (const compare::cell& c : e.plan.cells) {
        const codec::clamp_zone zone = codec::clamp_zone_of(c.recipe);
        if (zone.empty()) continue;
        const bool known = std::ranges::any_of(cells, [&](const compare::cell* o) {
            const codec::clamp_zone other = codec::clamp_zone_of(o->recipe);
            return other.from == zone.from && other.to == zone.to &&
                   o->recipe.block == c.recipe.block && o->recipe.axis == c.recipe.axis &&
                   o->recipe.element == c.recipe.element;
        });
        if (!known) cells.push_back(&c);
    }
    std::ranges::stable_sort(cells, [](const compare::cell* a, const compare::cell* b) {
        return codec::clamp_zone_of(a->recipe).share() > codec::clamp_zone_of(b->recipe).share();
    });
    if (cells.size() > most_zones) cells.resize(most_zones);
    return cells;
}

void add_scatter(const review_data& e, const std::vector<norm>& norms, const compare::cell& c,
                 bool first, report::section& to) {
    const codec::clamp_zone zone = codec::clamp_zone_of(c.recipe);
    report::scatter_chart chart;
    chart.x = in_range(axis_of("block maxima in the clamp zone", "", false, true), 0, 1);
    chart.y = in_range(axis_of("smallest over largest magnitude of a block, median", ""), 0, 1);
    // Closest to saturation first, so that the cut removes the least relevant.
    std::vector<std::pair<double, report::scatter_chart::mark>> marks;
    for (const norm& n : norms) {
        if (!sees_blocks_of(n, c.recipe)) continue;
        const double saturation = saturation_of(e, n, c);
        const double inside = share_in(n.amax, zone);
        marks.push_back(
            {saturation + inside, {{inside, n.tightness, n.name}, group_of(saturation), false}});
        marks.back().second.named = saturation > 0;
    }
    if (marks.empty()) return;
    chart.groups = groups();
    std::ranges::stable_sort(marks, [](const auto& a, const auto& b) { return a.first > b.first; });
    const std::size_t all = marks.size();
    marks.resize(std::min(all, most_norm_marks));
    for (std::size_t i = 0; i < marks.size(); ++i) {
        chart.marks.push_back(std::move(marks[i].second));
        if (i >= named_marks) chart.marks.back().named = false;
    }
    add_figure(to, "norms", fmt::format("Norm tensors against the clamp zone of {}", c.name),
               fmt::format(
                   "A mark is a norm tensor. On the right, block maxima are in the zone "
                   "(mantissas between {:g} and {:g}), beyond the largest element; higher up, a "
                   "block's magnitudes are closer together. A block whose maximum and smallest "
                   "magnitude are both in the zone saturates: all of its elements get the largest "
                   "code.{}",
                   zone.from, zone.to,
                   all > most_norm_marks
                       ? fmt::format(" The {} nearest to that of {} tensors.", most_norm_marks, all)
                       : ""),
               std::move(chart))
        .more = !first;
}

// The norm tensors with the most maxima in the widest zone.
void add_panels(std::vector<norm> norms, const compare::cell& c, report::section& to) {
    const codec::clamp_zone zone = codec::clamp_zone_of(c.recipe);
    std::erase_if(norms, [&](const norm& n) { return !sees_blocks_of(n, c.recipe); });
    std::ranges::stable_sort(norms, [&](const norm& a, const norm& b) {
        return share_in(a.amax, zone) > share_in(b.amax, zone);
    });
    const std::size_t all = norms.size();
    if (all == 0) return;
    norms.resize(std::min(all, most_norm_panels));
    report::bar_chart chart = mantissa_chart();
    for (const norm& n : norms) chart.panels.push_back(mantissa_panel(c.recipe, n.name, n.amax));
    add_figure(to, "maxima", "Block maxima of single norm tensors",
               fmt::format("The {} of {} norm tensors with most block maxima in the clamp zone of "
                           "{}, which is shaded.",
                           norms.size(), all, c.name),
               std::move(chart))
        .more = true;
}

}  // namespace

report::section norms_section(const review_data& e) {
    report::section s;
    const bool any =
        std::ranges::any_of(e.classes, [](const tensor_class& c) { return c.role == "norm"; });
    if (!any) return s;
    s.heading = "Norm gains against the clamp zone";
    std::vector<norm> norms = norms_of(e);
    if (norms.empty()) {
        s.notes.push_back(
            "Block maxima of single norm tensors: run mx analyze with --histograms, or mx analyze, "
            "compare or cluster with --html.");
        return s;
    }
    const std::vector<std::string> names = short_names(e, norms);
    for (std::size_t i = 0; i < norms.size(); ++i) norms[i].name = names[i];
    const std::vector<const compare::cell*> cells = zones_of(e);
    for (const compare::cell* c : cells) add_scatter(e, norms, *c, c == cells.front(), s);
    if (cells.empty()) {
        s.notes.push_back("No measured recipe clamps block maxima.");
    } else {
        add_panels(norms, *cells.front(), s);
    }
    if (e.norms_left_out > 0) {
        s.notes.push_back(
            fmt::format("{} more norm tensors have no histogram of their own.", e.norms_left_out));
    }
    return s;
}

}  // namespace mx::pages
