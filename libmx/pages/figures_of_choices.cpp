// SPDX-License-Identifier: Apache-2.0
// Every tensor under its recommended recipe.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "libmx/base/decibels.hpp"
#include "libmx/pages/figure_parts.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/studies/compare/ranking.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t most_bars = 15;
constexpr std::size_t most_marks = 600;
constexpr std::size_t most_names = 5;

// A tensor's squared error under a cell relative to its sum of squares; nullopt if undefined.
std::optional<double> loss_of(const review_data& e, std::size_t tensor, std::size_t cell) {
    const auto nrmse =
        compare::figure_of(e.table, tensor, e.plan.cells[cell], &analysis::result::nrmse);
    if (!nrmse || !std::isfinite(*nrmse)) return {};
    return *nrmse * *nrmse;
}

std::optional<double> sqnr_of(const review_data& e, std::size_t tensor, std::size_t cell) {
    const auto loss = loss_of(e, tensor, cell);
    if (!loss || *loss <= 0) return {};
    return base::decibels_of_power(*loss);
}

// The tensors with the largest part of the error, down to the total.
void add_waterfall(const review_data& e, const chosen_cells& chosen, report::section& to) {
    struct bar {
        std::size_t tensor;
        double error;
    };
    std::vector<bar> bars;
    double elements = 0;
    for (std::size_t t = 0; t < chosen.size(); ++t) {
        if (!chosen[t]) continue;
        const auto loss = loss_of(e, t, *chosen[t]);
        if (!loss) continue;
        const double n = elements_of(e, t);
        elements += n;
        bars.push_back({t, *loss * n});
    }
    if (bars.size() < 2 || elements == 0) return;
    std::ranges::stable_sort(bars, std::greater{}, &bar::error);
    report::stacked_chart chart;
    chart.waterfall = true;
    chart.value = axis_of("squared error over all squared values", "", false, true);
    const bool decomposed = e.decomposed();
    if (decomposed) {
        chart.parts = {"clamped", "became zero", "rounded"};
    } else {
        chart.parts = {"error"};
    }
    const auto parts_of = [&](const bar& b) {
        const double error = b.error / elements;
        if (!decomposed) return std::vector<double>{error};
        const compare::cell& c = e.plan.cells[*chosen[b.tensor]];
        const auto share = [&](double analysis::result::*figure) {
            return compare::figure_of(e.table, b.tensor, c, figure).value_or(0);
        };
        const double clamp = error * share(&analysis::result::clamp_error_share);
        const double under = error * share(&analysis::result::underflow_error_share);
        return std::vector<double>{clamp, under, error - clamp - under};
    };
    std::vector<double> others(chart.parts.size(), 0);
    for (std::size_t i = 0; i < bars.size(); ++i) {
        const std::vector<double> parts = parts_of(bars[i]);
        if (i < most_bars) {
            chart.categories.push_back(e.tensor_name(bars[i].tensor));
            chart.cells.emplace_back(parts.begin(), parts.end());
            continue;
        }
        for (std::size_t k = 0; k < parts.size(); ++k) others[k] += parts[k];
    }
    chart.categories = labels_of(chart.categories);
    if (bars.size() > most_bars) {
        chart.categories.push_back(fmt::format("{} others", bars.size() - most_bars));
        chart.cells.emplace_back(others.begin(), others.end());
    }
    add_figure(to, "waterfall", "Error by tensor",
               "Under the recipe recommended for each tensor, largest first; each bar begins "
               "where the previous one ends, and all together are the error of the model. Each "
               "tensor is divided by its RMS and weighted by its elements.",
               std::move(chart));
}

// SQNR over all elements with a chosen recipe, each tensor divided by its RMS.
double pooled_loss(const review_data& e, const chosen_cells& chosen, std::size_t cell) {
    double error = 0;
    for (std::size_t t = 0; t < chosen.size(); ++t) {
        if (chosen[t]) error += loss_of(e, t, cell).value_or(HUGE_VAL) * elements_of(e, t);
    }
    return error;
}

double bits_of_cell(const review_data& e, std::size_t cell) {
    for (std::size_t t = 0; t < e.table.tensors.size(); ++t) {
        const auto bits =
            compare::figure_of(e.table, t, e.plan.cells[cell], &analysis::result::bits_per_element);
        if (bits && *bits > 0) return *bits;
    }
    return 0;
}

// The recipe of most elements compared with the best one with fewer bits, per tensor.
void add_rivals(const review_data& e, const chosen_cells& chosen, report::section& to) {
    std::vector<double> elements(e.plan.cells.size(), 0);
    for (std::size_t t = 0; t < chosen.size(); ++t) {
        if (chosen[t]) elements[*chosen[t]] += elements_of(e, t);
    }
    const auto most = std::ranges::max_element(elements);
    if (most == elements.end() || *most == 0) return;
    const auto first = static_cast<std::size_t>(most - elements.begin());
    const double bits = bits_of_cell(e, first);
    std::optional<std::size_t> rival;
    bool smaller = false;
    double least = HUGE_VAL;
    for (std::size_t c = 0; c < e.plan.cells.size(); ++c) {
        if (c == first) continue;
        const bool fewer = bits_of_cell(e, c) < bits;
        const double loss = pooled_loss(e, chosen, c);
        if ((fewer && !smaller) || (fewer == smaller && loss < least)) {
            rival = c;
            smaller = fewer;
            least = loss;
        }
    }
    if (!rival) return;
    struct pair {
        std::size_t tensor;
        double x, y;
    };
    std::vector<pair> pairs;
    for (std::size_t t = 0; t < chosen.size(); ++t) {
        if (!chosen[t]) continue;
        const auto x = sqnr_of(e, t, first);
        const auto y = sqnr_of(e, t, *rival);
        if (x && y) pairs.push_back({t, *x, *y});
    }
    if (pairs.size() < 2) return;
    // Largest loss first.
    std::ranges::stable_sort(pairs,
                             [](const pair& a, const pair& b) { return a.x - a.y > b.x - b.y; });
    report::scatter_chart chart;
    chart.x = axis_of(fmt::format("SQNR under {}", e.cell_name(first)), "dB");
    chart.y = axis_of(fmt::format("SQNR under {}", e.cell_name(*rival)), "dB");
    double low = HUGE_VAL, high = -HUGE_VAL;
    std::vector<std::string> names;
    for (const pair& p : pairs) {
        if (names.size() < most_marks) names.push_back(e.tensor_name(p.tensor));
    }
    names = labels_of(names);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const pair& p = pairs[i];
        low = std::min({low, p.x, p.y});
        high = std::max({high, p.x, p.y});
        if (i >= most_marks) continue;
        chart.marks.push_back(
            {{p.x, p.y, names[i]}, e.table.tensors[p.tensor].of->role, i < most_names});
    }
    chart.path = {{low, low}, {high, high}};
    chart.path_name = "equal";
    add_figure(
        to, "rivals", fmt::format("{} against {}", e.cell_name(first), e.cell_name(*rival)),
        fmt::format("A mark is a tensor under the recipe recommended for most elements and under "
                    "the best one {}. Named: the {} that lose most by the change.{}",
                    smaller ? "of fewer bits" : "of the others", std::min(most_names, pairs.size()),
                    pairs.size() > most_marks
                        ? fmt::format(" The {} of {} that lose most.", most_marks, pairs.size())
                        : ""),
        std::move(chart));
}

}  // namespace

report::section choices_section(const review_data& e, const chosen_cells& chosen) {
    report::section s{.heading = "Tensors under the recommendation"};
    add_waterfall(e, chosen, s);
    add_rivals(e, chosen, s);
    return s;
}

}  // namespace mx::pages
