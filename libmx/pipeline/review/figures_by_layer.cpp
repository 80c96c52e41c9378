// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "libmx/pipeline/compare/series.hpp"
#include "libmx/pipeline/review/figure_parts.hpp"
#include "libmx/pipeline/review/sections.hpp"

namespace mx::pipeline::review {
namespace {

constexpr std::size_t most_rows = 48;
constexpr std::size_t most_kinds = 8;

// Errors of tensors that are taken together as a geometric mean: of R-MSEs directly, of SQNRs as
// the mean of decibels. Tensors without an error are left out.
struct layer_metric {
    const char* name;
    const char* title;
    const char* unit;
    bool logarithmic;
    bool larger_is_worse;
};
constexpr std::array layer_metrics{layer_metric{"sqnr_db", "SQNR", "dB", false, false},
                                   layer_metric{"rmse", "R-MSE", "", true, true}};

const compare::series_figure& figure_named(std::string_view name) {
    std::size_t i = 0;
    while (compare::series_figures[i].name != name) ++i;
    return compare::series_figures[i];
}

std::optional<double> mean_of(const evidence& e, const std::vector<std::size_t>& tensors,
                              std::size_t cell, const layer_metric& m) {
    const compare::series_figure& what = figure_named(m.name);
    double sum = 0;
    std::size_t count = 0;
    for (const std::size_t t : tensors) {
        const auto v = compare::figure_of(e.table, t, e.plan.cells[cell], what);
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
        const auto& layer = e.table.tensors[t].layer;
        (layer ? l.layers[*layer] : l.rest).push_back(t);
    }
    return l;
}

// Rows of a heat map: layers, several together where there are too many.
struct heat_row {
    std::string name;
    std::vector<std::size_t> tensors;
};

std::vector<heat_row> rows_of(const layered& l) {
    std::vector<heat_row> rows;
    const std::size_t together = (l.layers.size() + most_rows - 1) / most_rows;
    std::size_t in_row = 0;
    std::int64_t first = 0;
    for (const auto& [layer, tensors] : l.layers) {
        if (in_row == 0) {
            rows.push_back({fmt::format("layer {}", layer), {}});
            first = layer;
        } else {
            rows.back().name = fmt::format("layers {} to {}", first, layer);
        }
        rows.back().tensors.insert(rows.back().tensors.end(), tensors.begin(), tensors.end());
        in_row = (in_row + 1) % together;
    }
    if (!l.rest.empty()) rows.push_back({"no layer", l.rest});
    return rows;
}

void add_heat_map(const evidence& e, const tensor_class& c, const layered& l, const layer_metric& m,
                  report::section& to) {
    const std::vector<std::size_t> cells = shown_cells(e, most_figure_recipes);
    report::heat_map h;
    h.value = axis_of(m.title, m.unit, m.logarithmic);
    h.larger_is_worse = m.larger_is_worse;
    for (const std::size_t cell : cells) h.columns.push_back(e.cell_name(cell));
    for (const heat_row& row : rows_of(l)) {
        h.rows.push_back(row.name);
        h.cells.emplace_back();
        for (const std::size_t cell : cells) {
            h.cells.back().push_back(mean_of(e, row.tensors, cell, m));
        }
    }
    const bool grouped = l.layers.size() > most_rows;
    add_figure(
        to, "heat", fmt::format("{} of {}", m.title, c.role),
        fmt::format("{} of {} tensors by layer and recipe", m.title, c.role),
        fmt::format("A cell is the {} over the {} tensors of the layer{}; tensors without an "
                    "error are left out.{}",
                    m.logarithmic ? "geometric mean of the R-MSEs" : "mean of the SQNRs in dB",
                    c.role, grouped ? "s, several layers in a row" : "",
                    shown_words(e, most_figure_recipes)),
        std::move(h));
}

void add_lines(const evidence& e, const layered& l, const layer_metric& m, std::string group,
               std::string metric, std::string title, std::string caption, report::section& to) {
    report::line_chart chart;
    chart.x = axis_of("layer", "");
    chart.y = axis_of(m.title, m.unit, m.logarithmic);
    for (const std::size_t cell : shown_cells(e, most_lines)) {
        report::line_chart::line line{e.cell_name(cell), {}};
        for (const auto& [layer, tensors] : l.layers) {
            line.points.push_back({static_cast<double>(layer), mean_of(e, tensors, cell, m),
                                   fmt::format("layer {}", layer)});
        }
        chart.lines.push_back(std::move(line));
    }
    add_figure(to, std::move(group), std::move(metric), std::move(title),
               std::move(caption) + shown_words(e, most_lines), std::move(chart));
}

// Weights of one kind through the layers, as figures 7 to 11 of Yang et al. show them.
void add_kinds(const evidence& e, report::section& to) {
    std::vector<compare::layer_series> all = compare::find_series(e.table);
    const auto is_kind = [](const compare::layer_series& s) { return s.role == "weight"; };
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](const compare::layer_series& s) { return !is_kind(s); }),
              all.end());
    const std::size_t shown = std::min(most_kinds, all.size());
    for (std::size_t i = 0; i < shown; ++i) {
        layered l;
        for (const std::size_t t : all[i].tensors) {
            l.layers[*e.table.tensors[t].layer].push_back(t);
        }
        const std::string name =
            e.files.size() > 1
                ? fmt::format("{}: {}", evidence::short_path(all[i].file), all[i].name)
                : all[i].name;
        add_lines(e, l, layer_metrics[1], "kinds", name, fmt::format("R-MSE of {} by layer", name),
                  fmt::format("One kind of weight in every layer it has.{}",
                              shown < all.size()
                                  ? fmt::format(" The first {} of {} kinds.", shown, all.size())
                                  : ""),
                  to);
    }
}

}  // namespace

report::section layers_section(const evidence& e) {
    report::section s;
    s.heading = "Layer by layer";
    for (const tensor_class& c : e.classes) {
        const layered l = layers_of(e, c);
        if (l.layers.size() < 2) continue;
        for (const layer_metric& m : layer_metrics) add_heat_map(e, c, l, m, s);
    }
    for (const tensor_class& c : e.classes) {
        const layered l = layers_of(e, c);
        if (l.layers.size() < 2) continue;
        for (const layer_metric& m : layer_metrics) {
            add_lines(e, l, m, "lines", fmt::format("{} of {}", m.title, c.role),
                      fmt::format("{} of {} tensors by layer", m.title, c.role),
                      m.logarithmic ? "Geometric mean over the tensors of a layer."
                                    : "Mean over the tensors of a layer, in dB.",
                      s);
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

}  // namespace mx::pipeline::review
