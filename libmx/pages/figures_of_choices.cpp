// SPDX-License-Identifier: Apache-2.0
// Every tensor under its recommended recipe.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "libmx/base/decibels.hpp"
#include "libmx/pages/figure_parts.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/pages/words.hpp"
#include "libmx/policy/normal.hpp"
#include "libmx/policy/policy.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/studies/compare/ranking.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t most_modules = 40;
constexpr std::size_t most_layers = 96;
constexpr std::size_t most_bars = 15;
constexpr std::size_t most_marks = 600;
constexpr std::size_t most_names = 5;

// A tensor's squared error under a cell relative to its sum of squares; nullopt if undefined.
std::optional<double> loss_of(const evidence& e, std::size_t tensor, std::size_t cell) {
    const auto nrmse =
        compare::figure_of(e.table, tensor, e.plan.cells[cell], &analysis::result::nrmse);
    if (!nrmse || !std::isfinite(*nrmse)) return {};
    return *nrmse * *nrmse;
}

std::optional<double> sqnr_of(const evidence& e, std::size_t tensor, std::size_t cell) {
    const auto loss = loss_of(e, tensor, cell);
    if (!loss || *loss <= 0) return {};
    return base::decibels_of_power(*loss);
}

// The parts of a name between dots; numbers are indices of layers or experts.
std::string module_of(const std::string& name) {
    std::string out;
    for (std::size_t at = 0; at <= name.size();) {
        const std::size_t dot = std::min(name.find('.', at), name.size());
        const std::string part = name.substr(at, dot - at);
        const bool number =
            !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
        out += (at == 0 ? "" : ".") + (number ? std::string("*") : part);
        at = dot + 1;
    }
    return out;
}

// How far the SQNR may fall below that of normal data: the policy's veto, the same for every role.
double margin_limit() {
    const mx::policy::policy p = mx::policy::find_policy("inference");
    for (const mx::policy::rule* r : p.vetoes("weight")) {
        if (r->measured != nullptr && r->measured->name == "sqnr_below_normal" && r->no) {
            return -*r->no;
        }
    }
    return 0;
}

// Heat map of modules by layer; each cell shows the tensor with the smallest margin. Margins are
// relative to normal data, so that formats of four and eight bits share a colour range.
void add_margins(const evidence& e, const chosen_cells& chosen, report::section& to) {
    struct place {
        double margin = 0;
        std::size_t tensors = 0;
        std::string words;
    };
    std::vector<std::string> modules;
    std::map<std::string, std::string> roles;  // of modules
    std::vector<std::int64_t> layers;
    std::map<std::pair<std::string, std::int64_t>, place> places;
    std::map<std::size_t, double> normals;
    constexpr std::int64_t no_layer = -1;
    for (std::size_t t = 0; t < chosen.size(); ++t) {
        if (!chosen[t]) continue;
        const auto sqnr = sqnr_of(e, t, *chosen[t]);
        if (!sqnr) continue;
        const auto [normal, added] = normals.emplace(*chosen[t], 0);
        if (added) {
            const codec::recipe& r = e.plan.cells[*chosen[t]].recipe;
            normal->second = mx::policy::figures_on_normal_data(r).sqnr_db;
        }
        const double margin = std::round(100 * (*sqnr - normal->second)) / 100;
        const auto& of = *e.table.tensors[t].of;
        const std::string module = module_of(of.tensor);
        const std::int64_t layer = of.layer.value_or(no_layer);
        if (roles.emplace(module, of.role).second) modules.push_back(module);
        if (std::ranges::find(layers, layer) == layers.end()) layers.push_back(layer);
        place& p = places[{module, layer}];
        ++p.tensors;
        if (p.tensors > 1 && margin >= p.margin) continue;
        p.margin = margin;
        p.words = fmt::format("{}: {} dB under {}", e.tensor_name(t), report::fixed_text(*sqnr, 2),
                              e.cell_name(*chosen[t]));
    }
    if (modules.empty()) return;
    // Layers in order; tensors without a layer last.
    std::ranges::sort(layers, {}, [](std::int64_t l) { return l == no_layer ? INT64_MAX : l; });
    // If there are too many modules, those with the smallest margin.
    const auto least_of = [&](const std::string& module) {
        double least = HUGE_VAL;
        for (const std::int64_t l : layers) {
            const auto at = places.find({module, l});
            if (at != places.end()) least = std::min(least, at->second.margin);
        }
        return least;
    };
    const std::size_t all = modules.size();
    if (all > most_modules) {
        std::ranges::stable_sort(modules, {}, least_of);
        modules.resize(most_modules);
    }
    const std::size_t together = (layers.size() + most_layers - 1) / most_layers;
    report::heat_map h;
    h.value = axis_of("SQNR above that of normal data", "dB");
    h.larger_is_worse = false;
    h.limit = margin_limit();
    for (std::size_t l = 0; l < layers.size(); l += together) {
        h.columns.push_back(layers[l] == no_layer ? "none" : fmt::format("{}", layers[l]));
    }
    for (const std::string& module : modules) {
        h.rows.push_back(end_of_name(module, roles.at(module), h.rows));
        auto& cells = h.cells.emplace_back();
        auto& notes = h.notes.emplace_back();
        for (std::size_t l = 0; l < layers.size(); l += together) {
            const place* worst = nullptr;
            for (std::size_t k = l; k < std::min(l + together, layers.size()); ++k) {
                const auto at = places.find({module, layers[k]});
                if (at == places.end()) continue;
                if (worst == nullptr || at->second.margin < worst->margin) worst = &at->second;
            }
            cells.push_back(worst == nullptr ? std::nullopt : std::optional(worst->margin));
            notes.push_back(worst == nullptr ? "" : worst->words);
        }
    }
    add_figure(
        to, "margins", "Margin by module and layer",
        fmt::format("Each tensor under the recipe recommended for it: its SQNR minus the SQNR of "
                    "that recipe on normal data. Of several tensors in a cell, the least. "
                    "Outlined: below {:g} dB, where the policy rules a recipe out. Hatched: no "
                    "such tensor, or one that keeps its precision.{}{}",
                    *h.limit,
                    all > most_modules ? fmt::format(" The {} of {} modules with the least margin.",
                                                     most_modules, all)
                                       : "",
                    together > 1 ? fmt::format(" {} layers to a column.", together) : ""),
        std::move(h));
}

// The tensors with the largest part of the error, down to the total.
void add_waterfall(const evidence& e, const chosen_cells& chosen, report::section& to) {
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
            chart.categories.push_back(end_of_name(e.tensor_name(bars[i].tensor),
                                                   e.table.tensors[bars[i].tensor].of->role,
                                                   chart.categories));
            chart.cells.emplace_back(parts.begin(), parts.end());
            continue;
        }
        for (std::size_t k = 0; k < parts.size(); ++k) others[k] += parts[k];
    }
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
double pooled_loss(const evidence& e, const chosen_cells& chosen, std::size_t cell) {
    double error = 0;
    for (std::size_t t = 0; t < chosen.size(); ++t) {
        if (chosen[t]) error += loss_of(e, t, cell).value_or(HUGE_VAL) * elements_of(e, t);
    }
    return error;
}

double bits_of_cell(const evidence& e, std::size_t cell) {
    for (std::size_t t = 0; t < e.table.tensors.size(); ++t) {
        const auto bits =
            compare::figure_of(e.table, t, e.plan.cells[cell], &analysis::result::bits_per_element);
        if (bits && *bits > 0) return *bits;
    }
    return 0;
}

// The recipe of most elements compared with the best one with fewer bits, per tensor.
void add_rivals(const evidence& e, const chosen_cells& chosen, report::section& to) {
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
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const pair& p = pairs[i];
        low = std::min({low, p.x, p.y});
        high = std::max({high, p.x, p.y});
        if (i >= most_marks) continue;
        chart.marks.push_back({{p.x, p.y, end_of_name(e.tensor_name(p.tensor))},
                               e.table.tensors[p.tensor].of->role,
                               i < most_names});
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

report::section choices_section(const evidence& e, const chosen_cells& chosen) {
    report::section s{.heading = "Tensors under the recommendation"};
    add_margins(e, chosen, s);
    add_waterfall(e, chosen, s);
    add_rivals(e, chosen, s);
    return s;
}

}  // namespace mx::pages
