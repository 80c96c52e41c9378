// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "libmx/pages/figure_parts.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/studies/compare/board.hpp"
#include "libmx/studies/compare/ranking.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t most_rows = 48;    // of a heat map
constexpr std::size_t most_points = 64;  // of a line
constexpr std::size_t most_kinds = 5;
constexpr std::size_t least_points = 3;  // that make a line worth drawing

// Errors of tensors that are taken together as a geometric mean: of R-MSEs directly, of SQNRs as
// the mean of decibels. Tensors without an error are left out.
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

std::optional<double> mean_of(const evidence& e, const std::vector<std::size_t>& tensors,
                              std::size_t cell, const layer_metric& m) {
    double sum = 0;
    std::size_t count = 0;
    for (const std::size_t t : tensors) {
        const auto v = compare::figure_of(e.table, t, e.plan.cells[cell], m.figure);
        if (!v || (m.logarithmic && *v <= 0)) continue;
        sum += m.logarithmic ? std::log(*v) : *v;
        ++count;
    }
    if (count == 0) return {};
    const double mean = sum / static_cast<double>(count);
    return m.logarithmic ? std::exp(mean) : mean;
}

// Tensors of a class by layer; those without one apart.
struct layered {
    std::map<std::int64_t, std::vector<std::size_t>> layers;
    std::vector<std::size_t> rest;
};

layered layers_of(const evidence& e, const tensor_class& c) {
    layered l;
    for (const std::size_t t : c.tensors) {
        const auto& layer = e.table.tensors[t].of->layer;
        (layer ? l.layers[*layer] : l.rest).push_back(t);
    }
    return l;
}

// Layers in a row of a heat map or a point of a line: several together where there are too many.
struct layer_group {
    std::string name;
    double middle = 0;
    std::vector<std::size_t> tensors;
};

std::vector<layer_group> groups_of(const layered& l, std::size_t most) {
    std::vector<layer_group> groups;
    const std::size_t together = (l.layers.size() + most - 1) / most;
    std::size_t in_group = 0;
    std::int64_t first = 0;
    for (const auto& [layer, tensors] : l.layers) {
        if (in_group == 0) {
            groups.push_back({fmt::format("layer {}", layer), 0, {}});
            first = layer;
        } else {
            groups.back().name = fmt::format("layers {} to {}", first, layer);
        }
        layer_group& g = groups.back();
        g.middle = (static_cast<double>(first) + static_cast<double>(layer)) / 2;
        g.tensors.insert(g.tensors.end(), tensors.begin(), tensors.end());
        in_group = (in_group + 1) % together;
    }
    return groups;
}

void add_heat_map(const evidence& e, const tensor_class& c, const layered& l, const layer_metric& m,
                  report::section& to) {
    const std::vector<std::size_t> cells = shown_cells(e, most_figure_recipes);
    report::heat_map h;
    h.value = axis_of(m.title, m.unit, m.logarithmic);
    h.larger_is_worse = m.larger_is_worse;
    for (const std::size_t cell : cells) h.columns.push_back(e.cell_name(cell));
    std::vector<layer_group> rows = groups_of(l, most_rows);
    if (!l.rest.empty()) rows.push_back({"no layer", 0, l.rest});
    for (const layer_group& row : rows) {
        h.rows.push_back(row.name);
        h.cells.emplace_back();
        for (const std::size_t cell : cells) {
            h.cells.back().push_back(mean_of(e, row.tensors, cell, m));
        }
    }
    const bool grouped = l.layers.size() > most_rows;
    report::figure& f = add_figure(
        to, "heat", fmt::format("{} of {} tensors by layer and recipe", m.title, c.role),
        fmt::format("A cell is the {} over the {} tensors of the layer{}; tensors without an error "
                    "are left out.{}",
                    m.logarithmic ? "geometric mean of the R-MSEs" : "mean of the SQNRs in dB",
                    c.role, grouped ? "s, several layers in a row" : "",
                    shown_words(e, most_figure_recipes)),
        std::move(h));
    f.group = fmt::format("heat of {}", c.role);
    f.metric = m.name;
}

report::figure& add_lines(const evidence& e, const layered& l, const layer_metric& m,
                          const std::string& kind, std::string title, const std::string& caption,
                          report::section& to) {
    report::line_chart chart;
    chart.x = axis_of("layer", "");
    chart.y = axis_of(m.title, m.unit, m.logarithmic);
    const std::vector<layer_group> groups = groups_of(l, most_points);
    for (const std::size_t cell : shown_cells(e, most_lines)) {
        report::line_chart::line line{e.cell_name(cell), {}};
        for (const layer_group& g : groups) {
            line.points.push_back({g.middle, mean_of(e, g.tensors, cell, m), g.name});
        }
        chart.lines.push_back(std::move(line));
    }
    const char* grouped = l.layers.size() > most_points ? " Several layers to a point." : "";
    return add_figure(to, kind, std::move(title), caption + grouped + shown_words(e, most_lines),
                      std::move(chart));
}

// Weights of one kind through the layers, as figures 7 to 11 of Yang et al. show them.
void add_kinds(const evidence& e, report::section& to) {
    std::vector<compare::layer_series> all = compare::find_series(e.table);
    const auto is_kind = [](const compare::layer_series& s) {
        return s.role == "weight" && s.tensors.size() >= least_points;
    };
    std::erase_if(all, [&](const compare::layer_series& s) { return !is_kind(s); });
    const std::size_t shown = std::min(most_kinds, all.size());
    for (std::size_t i = 0; i < shown; ++i) {
        layered l;
        for (const std::size_t t : all[i].tensors) {
            if (const auto& layer = e.table.tensors[t].of->layer) l.layers[*layer].push_back(t);
        }
        const std::string name = e.files.size() > 1
                                     ? fmt::format("{}: {}", e.file_name(all[i].file), all[i].name)
                                     : all[i].name;
        add_lines(e, l, layer_metrics[1], "kinds", fmt::format("R-MSE of {} by layer", name),
                  fmt::format("One kind of weight in every layer it has.{}",
                              shown < all.size()
                                  ? fmt::format(" The first {} of {} kinds.", shown, all.size())
                                  : ""),
                  to);
    }
}

}  // namespace

report::section layers_section(const evidence& e) {
    report::section s{.heading = "Layer by layer"};
    for (const tensor_class& c : e.classes) {
        const layered l = layers_of(e, c);
        if (l.layers.size() < 2) continue;
        for (const layer_metric& m : layer_metrics) add_heat_map(e, c, l, m, s);
    }
    for (const tensor_class& c : e.classes) {
        const layered l = layers_of(e, c);
        if (l.layers.size() < least_points) continue;
        for (const layer_metric& m : layer_metrics) {
            report::figure& f = add_lines(
                e, l, m, "lines", fmt::format("{} of {} tensors by layer", m.title, c.role),
                m.logarithmic ? "Geometric mean over the tensors of a layer."
                              : "Mean over the tensors of a layer, in dB.",
                s);
            f.group = fmt::format("lines of {}", c.role);
            f.metric = m.name;
        }
    }
    add_kinds(e, s);
    if (s.figures.empty()) {
        s.notes.push_back(
            "No class has tensors of two layers or more: their names hold no number of their own, "
            "or all the same.");
    }
    return s;
}

}  // namespace mx::pages
