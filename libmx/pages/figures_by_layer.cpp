// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "libmx/pages/figure_parts.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/policy/policy.hpp"
#include "libmx/studies/compare/ranking.hpp"
#include "libmx/studies/compare/series.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t most_rows = 48;  // of a heat map

// Mean error of several tensors: a geometric mean for R-MSEs, a mean of decibels for SQNRs. Tensors
// without an error are left out.
struct layer_metric {
    const char* name;
    const char* title;
    const char* unit;
    double analysis::result::*figure;
    bool logarithmic;
    bool larger_is_worse;
};
constexpr std::array layer_metrics{
    layer_metric{"sqnr_db", "SQNR", "dB", &analysis::result::sqnr_db, false, false},
    layer_metric{"rmse", "R-MSE", "", &analysis::result::rmse, true, true}};

// A metric over several tensors.
struct spread {
    double mean = 0, low = 0, high = 0;
    std::size_t count = 0;

    double worst(const layer_metric& m) const { return m.larger_is_worse ? high : low; }
};

std::optional<spread> spread_of(const review_data& e, const std::vector<std::size_t>& tensors,
                                std::size_t cell, const layer_metric& m) {
    spread s;
    double sum = 0;
    for (const std::size_t t : tensors) {
        const auto v = compare::figure_of(e.table, t, e.plan.cells[cell], m.figure);
        if (!v || !std::isfinite(*v) || (m.logarithmic && *v <= 0)) continue;
        sum += m.logarithmic ? std::log(*v) : *v;
        s.low = s.count == 0 ? *v : std::min(s.low, *v);
        s.high = s.count == 0 ? *v : std::max(s.high, *v);
        ++s.count;
    }
    if (s.count == 0) return {};
    const double mean = sum / static_cast<double>(s.count);
    s.mean = m.logarithmic ? std::exp(mean) : mean;
    return s;
}

std::string spread_text(const spread& s) {
    if (s.count == 1) return {};
    return fmt::format("worst of {} tensors; mean {:.4g}, {:.4g} to {:.4g}", s.count, s.mean, s.low,
                       s.high);
}

// Tensors of a class by layer; those without a layer are kept apart.
struct layered {
    std::map<std::int64_t, std::vector<std::size_t>> layers;
    std::vector<std::size_t> rest;
};

layered layers_of(const review_data& e, const tensor_class& c) {
    layered l;
    for (const std::size_t t : c.tensors) {
        const auto& layer = e.table.tensors[t].of->layer;
        (layer ? l.layers[*layer] : l.rest).push_back(t);
    }
    return l;
}

// The layers in one row of a heat map: several if there are too many.
struct layer_group {
    std::string name;
    std::vector<std::size_t> tensors;
};

std::vector<layer_group> groups_of(const layered& l) {
    std::vector<layer_group> groups;
    const std::size_t together = (l.layers.size() + most_rows - 1) / most_rows;
    std::size_t in_group = 0;
    std::int64_t first = 0;
    for (const auto& [layer, tensors] : l.layers) {
        if (in_group == 0) {
            groups.push_back({fmt::format("layer {}", layer), {}});
            first = layer;
        } else {
            groups.back().name = fmt::format("layers {} to {}", first, layer);
        }
        layer_group& g = groups.back();
        g.tensors.insert(g.tensors.end(), tensors.begin(), tensors.end());
        in_group = (in_group + 1) % together;
    }
    return groups;
}

void add_heat_map(const review_data& e, const tensor_class& c, const layered& l,
                  const layer_metric& m, bool more, report::section& to) {
    const std::vector<std::size_t> cells = shown_cells(e, most_figure_recipes);
    report::heat_map h;
    h.value = axis_of(m.title, m.unit, m.logarithmic);
    h.larger_is_worse = m.larger_is_worse;
    for (const std::size_t cell : cells) h.columns.push_back(e.cell_name(cell));
    std::vector<layer_group> rows = groups_of(l);
    if (!l.rest.empty()) rows.push_back({"no layer", l.rest});
    for (const layer_group& row : rows) {
        h.rows.push_back(row.name);
        h.cells.emplace_back();
        h.notes.emplace_back();
        for (const std::size_t cell : cells) {
            const auto over = spread_of(e, row.tensors, cell, m);
            h.cells.back().push_back(over ? std::optional(over->worst(m)) : std::nullopt);
            h.notes.back().push_back(over ? spread_text(*over) : "");
        }
    }
    report::figure& f = add_figure(
        to, "heat", fmt::format("{} of {} tensors by layer and recipe", m.title, c.role),
        fmt::format("A cell shows the worst {} tensor of its row; point at it for the mean. "
                    "Tensors without error are left out.{}",
                    c.role, shown_text(e, most_figure_recipes)),
        std::move(h));
    f.group = fmt::format("heat of {}", c.role);
    f.metric = m.name;
    f.more = more;
}

}  // namespace

report::section layers_section(const review_data& e) {
    const policy::policy by = policy::find_policy("training");
    report::section s{.heading = "Layer by layer"};
    for (const tensor_class& c : e.classes) {
        const layered l = layers_of(e, c);
        if (l.layers.size() < 2) continue;
        const bool kept = by.kept(c.role) != nullptr;
        for (const layer_metric& m : layer_metrics) add_heat_map(e, c, l, m, kept, s);
    }
    if (s.figures.empty()) {
        s.notes.push_back(
            "No class has tensors of two or more layers: their names have no layer number, or all "
            "the same.");
    }
    return s;
}

}  // namespace mx::pages
