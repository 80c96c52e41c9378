// SPDX-License-Identifier: Apache-2.0
// The figures beside the answer of a page.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "libmx/engine/roles.hpp"
#include "libmx/pages/figure_parts.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/policy/normal.hpp"
#include "libmx/studies/compare/ranking.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t least_layers = 3;  // of a module, for a line
constexpr std::size_t shown_modules = 8;
constexpr std::size_t most_dot_rows = 20;  // of a dot plot
constexpr std::size_t named_tensors = 5;   // of a plot without room for all names
constexpr double least_shown = -2;         // dB; smaller errors are drawn at the lower end
constexpr double least_range = 0.5;        // dB to both sides of normal data

// A figure of a tensor under a cell; nullopt if it has none.
using tensor_quantity = std::function<std::optional<double>(std::size_t tensor, std::size_t cell)>;

struct place {
    std::int64_t layer = 0;
    std::string module;
};

// The name with '*' in place of the numbers of layers and experts: what it is in every layer.
std::optional<place> place_of(const review_data& e, std::size_t tensor) {
    const analysis::tensor_identity& of = *e.table.tensors[tensor].of;
    const auto at = engine::layer_of(of.tensor);
    if (!of.layer || !at) return {};
    place p{*of.layer, at->series};
    while (const auto next = engine::layer_of(p.module)) p.module = next->series;
    return p;
}

// Tensors by module and layer.
using modules = std::map<std::string, std::map<std::int64_t, std::vector<std::size_t>>>;

double largest(const review_data& e, std::size_t tensor, const tensor_quantity& q) {
    double most = -HUGE_VAL;
    for (const std::size_t cell : shown_cells(e, most_lines)) {
        most = std::max(most, q(tensor, cell).value_or(-HUGE_VAL));
    }
    return most;
}

// The tensors of modules that are in several layers: empty if these are less than half, or if a dot
// plot has room for all. `order`:
// the modules as in the file, at most shown_modules of them.
modules by_module(const review_data& e, const std::vector<std::size_t>& tensors,
                  const tensor_quantity& q, std::vector<std::string>& order,
                  std::string& left_out) {
    modules all;
    for (const std::size_t t : tensors) {
        const auto at = place_of(e, t);
        if (!at) continue;
        if (!all.contains(at->module)) order.push_back(at->module);
        all[at->module][at->layer].push_back(t);
    }
    std::erase_if(order, [&](const std::string& m) { return all[m].size() < least_layers; });
    std::size_t covered = 0;
    std::set<std::int64_t> layers;
    std::map<std::string, double> worst;
    for (const std::string& m : order) {
        double& most = worst.emplace(m, -HUGE_VAL).first->second;
        for (const auto& [layer, of] : all[m]) {
            covered += of.size();
            layers.insert(layer);
            for (const std::size_t t : of) most = std::max(most, largest(e, t, q));
        }
    }
    const bool all_fit = tensors.size() <= most_dot_rows;
    if (2 * covered < tensors.size() || (covered < tensors.size() && all_fit)) return {};
    // Numbers that count the tensors, as in conv2d_117.w_0, are no layers.
    const auto counts = [](const std::string& m) { return m.find("_*") != std::string::npos; };
    if (std::ranges::all_of(order, counts) && 2 * layers.size() > covered) return {};
    const std::size_t in_layers = order.size();
    if (in_layers > shown_modules) {
        std::vector<double> values;
        for (const std::string& m : order) values.push_back(worst[m]);
        std::ranges::nth_element(values, values.begin() + shown_modules - 1, std::greater{});
        std::erase_if(order,
                      [&](const std::string& m) { return worst[m] < values[shown_modules - 1]; });
        order.resize(std::min(order.size(), shown_modules));
        left_out =
            fmt::format(" The {} of {} modules with the largest values.", order.size(), in_layers);
    }
    if (covered < tensors.size()) {
        left_out += fmt::format(" Not shown: {} of {} tensors, outside of repeated layers.",
                                tensors.size() - covered, tensors.size());
    }
    return all;
}

report::line_chart module_lines(const review_data& e, const modules& all,
                                const std::vector<std::string>& order, const tensor_quantity& q) {
    report::line_chart chart;
    chart.x = axis_of("layer", "");
    const std::vector<std::string> names = last_parts(told_apart(order));
    for (std::size_t m = 0; m < order.size(); ++m) {
        for (const std::size_t cell : shown_cells(e, most_lines)) {
            report::line_chart::line line{e.cell_name(cell), {}, names[m]};
            for (const auto& [layer, tensors] : all.at(order[m])) {
                report::point at{
                    static_cast<double>(layer), {}, fmt::format("{}, layer {}", names[m], layer)};
                double sum = 0, count = 0;
                for (const std::size_t t : tensors) {
                    const auto v = q(t, cell);
                    if (!v) continue;
                    at.low = std::min(at.low.value_or(*v), *v);
                    at.high = std::max(at.high.value_or(*v), *v);
                    sum += *v;
                    ++count;
                }
                if (count > 0) at.y = sum / count;
                if (count < 2) at.low = at.high = {};
                line.points.push_back(std::move(at));
            }
            const auto has_value = [](const report::point& p) { return p.y.has_value(); };
            if (std::ranges::any_of(line.points, has_value)) chart.lines.push_back(std::move(line));
        }
    }
    return chart;
}

// A row per tensor or, of many, a position per tensor, both as in the file.
report::scatter_chart dots_of(const review_data& e, std::vector<std::size_t> tensors,
                              const report::axis& value, const tensor_quantity& q) {
    report::scatter_chart chart;
    const bool rows = tensors.size() <= most_dot_rows;
    (rows ? chart.x : chart.y) = value;
    if (rows) {
        std::ranges::reverse(tensors);
    } else {
        chart.x = axis_of("tensor, in the order of the file", "");
    }
    std::vector<std::string> names;
    for (const std::size_t t : tensors) names.push_back(e.tensor_name(t));
    names = rows ? labels_of(names) : told_apart(std::move(names));
    if (rows) chart.rows = names;
    std::vector<std::size_t> worst(tensors.size());
    for (std::size_t i = 0; i < worst.size(); ++i) worst[i] = i;
    std::ranges::stable_sort(worst, std::greater{},
                             [&](std::size_t i) { return largest(e, tensors[i], q); });
    worst.resize(rows ? 0 : std::min(worst.size(), named_tensors));
    for (const std::size_t cell : shown_cells(e, most_lines)) {
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            const auto v = q(tensors[i], cell);
            if (!v) continue;
            const bool named =
                std::ranges::find(worst, i) != worst.end() && *v == largest(e, tensors[i], q);
            const auto at = static_cast<double>(i);
            chart.marks.push_back(
                {rows ? report::point{*v, at, names[i]} : report::point{at + 1, *v, names[i]},
                 e.cell_name(cell), named});
        }
    }
    return chart;
}

// By layer, a panel per module, or by tensor where there are no such layers. `at`: values that are
// marked by lines.
void add_by_place(const review_data& e, const std::vector<std::size_t>& tensors, report::axis value,
                  const std::vector<report::level>& at, const tensor_quantity& q,
                  const std::string& kind, const std::string& title, const std::string& caption,
                  report::section& to) {
    std::vector<std::string> order;
    std::string more;
    const modules all = by_module(e, tensors, q, order, more);
    more += shown_text(e, most_lines);
    if (!all.empty() && !order.empty()) {
        report::line_chart chart = module_lines(e, all, order, q);
        chart.y = std::move(value);
        chart.levels = at;
        add_figure(to, kind, title + " by layer", caption + more, std::move(chart));
        return;
    }
    report::scatter_chart chart = dots_of(e, tensors, value, q);
    if (chart.rows.empty()) {
        chart.levels = at;
    } else {
        for (const report::level& l : at) {
            chart.zones.push_back({l.label.empty() ? "normal data" : l.label, l.at, l.at});
        }
    }
    if (chart.marks.empty()) return;
    add_figure(to, kind, title + " by tensor", caption, std::move(chart));
}

}  // namespace

void add_excess(const review_data& e, const std::vector<std::size_t>& operands,
                const policy::policy& by, report::section& to) {
    std::vector<double> normal;
    for (const compare::cell& c : e.plan.cells) {
        normal.push_back(policy::figures_on_normal_data(c.recipe).nrmse);
    }
    const tensor_quantity excess = [&](std::size_t tensor,
                                       std::size_t cell) -> std::optional<double> {
        const auto nrmse =
            compare::figure_of(e.table, tensor, e.plan.cells[cell], &analysis::result::nrmse);
        if (!nrmse || !(*nrmse > 0) || !(normal[cell] > 0)) return {};
        return 20 * std::log10(*nrmse / normal[cell]);
    };
    double least = HUGE_VAL, most = -HUGE_VAL;
    for (const std::size_t t : operands) {
        for (const std::size_t cell : shown_cells(e, most_lines)) {
            const double v = excess(t, cell).value_or(NAN);
            if (std::isfinite(v)) {
                least = std::min(least, v);
                most = std::max(most, v);
            }
        }
    }
    if (most < least) return;
    report::axis value = axis_of("error over that of normal data", "dB");
    std::string caption =
        "0 dB: the squared error of normal data under the same recipe; above it, outliers cost "
        "precision.";
    if (least < least_shown) value.low = least_shown;
    if (least > -least_range) value.low = -least_range;
    if (most < least_range) value.high = least_range;
    std::vector<report::level> marked{{"", 0}};
    for (const policy::rule* r : by.vetoes("weight")) {
        if (r->measured == nullptr || r->measured->name != "sqnr_below_normal" || !r->no) continue;
        caption += fmt::format(" The policy's limit is {:g} dB.", *r->no);
        if (most > r->evaluate.value_or(0)) marked.push_back({"limit", *r->no});
    }
    add_by_place(e, operands, std::move(value), marked, excess, "excess",
                 "Error relative to normal data", caption, to);
}

void add_ratios(const review_data& e, const std::vector<std::size_t>& tensors,
                const std::string& baseline, report::section& to) {
    const auto base = std::ranges::find(e.plan.cells, baseline, &compare::cell::name);
    if (base == e.plan.cells.end() || e.plan.cells.size() < 2) return;
    const tensor_quantity ratio = [&](std::size_t tensor,
                                      std::size_t cell) -> std::optional<double> {
        const auto rmse = compare::rmse_of(e.table, tensor, e.plan.cells[cell]);
        const auto over = compare::rmse_of(e.table, tensor, *base);
        if (!rmse || !over || !(*over > 0) || *rmse == 0) return {};
        return *rmse / *over;
    };
    add_by_place(e, tensors, axis_of("R-MSE relative to " + baseline, ""), {}, ratio, "over-base",
                 "R-MSE of operands relative to " + baseline,
                 "Below 1: less error than the baseline.", to);
}

void add_pairs(const review_data& e, report::section& to) {
    const std::vector<std::size_t> cells = shown_cells(e, most_figure_recipes);
    if (cells.size() < 2) return;
    report::heat_map map;
    map.value = axis_of("R-MSE of the row over that of the column", "");
    map.limit = 1;
    for (const std::size_t c : cells) map.rows.push_back(e.cell_name(c));
    map.columns = map.rows;
    for (const std::size_t row : cells) {
        auto& values = map.cells.emplace_back();
        auto& notes = map.notes.emplace_back();
        for (const std::size_t column : cells) {
            double sum = 0;
            std::size_t compared = 0, smaller = 0, same = 0;
            for (std::size_t t = 0; t < e.table.tensors.size(); ++t) {
                const auto a = compare::rmse_of(e.table, t, e.plan.cells[row]);
                const auto b = compare::rmse_of(e.table, t, e.plan.cells[column]);
                if (!a || !b || !(*a > 0) || !(*b > 0)) continue;
                ++compared;
                sum += std::log(*a / *b);
                if (std::abs(*a / *b - 1) <= compare::same_rmse) {
                    ++same;
                } else if (*a < *b) {
                    ++smaller;
                }
            }
            // Differences beyond three decimals are rounding errors.
            const double mean = std::exp(sum / static_cast<double>(compared));
            values.push_back(compared == 0 || row == column
                                 ? std::nullopt
                                 : std::optional(std::round(mean * 1000) / 1000));
            notes.push_back(fmt::format("smaller in {} of {} tensors, the same in {}", smaller,
                                        compared, same));
        }
    }
    add_figure(to, "pairs", "Pairs of recipes",
               "R-MSE of the row over that of the column, geometric mean over the tensors. "
               "Outlined: the row has more error." +
                   shown_text(e, most_figure_recipes),
               std::move(map));
}

void add_block_shares(const review_data& e, report::section& to) {
    // A saturated block is collapsed as well. Recipes without such blocks are left out.
    std::vector<bool> seen(e.plan.cells.size());
    const tensor_quantity share = [&](std::size_t tensor,
                                      std::size_t cell) -> std::optional<double> {
        const auto rate = [&](double analysis::result::*figure) {
            return compare::figure_of(e.table, tensor, e.plan.cells[cell], figure);
        };
        const auto collapsed = rate(&analysis::result::collapsed_block_rate);
        if (!collapsed || !seen[cell]) return {};
        return *collapsed + rate(&analysis::result::dead_block_rate).value_or(0);
    };
    // All tensors of a module with such blocks, to show the layers without.
    std::set<std::string> affected;
    const auto module_of = [&](std::size_t tensor) {
        const auto at = place_of(e, tensor);
        return at ? at->module : e.tensor_name(tensor);
    };
    for (const std::size_t cell : shown_cells(e, most_lines)) {
        seen[cell] = true;
        bool any = false;
        for (std::size_t t = 0; t < e.table.tensors.size(); ++t) {
            if (!(share(t, cell).value_or(0) > 0)) continue;
            affected.insert(module_of(t));
            any = true;
        }
        seen[cell] = any;
    }
    std::vector<std::size_t> tensors;
    for (std::size_t t = 0; t < e.table.tensors.size(); ++t) {
        if (affected.contains(module_of(t))) tensors.push_back(t);
    }
    if (tensors.empty()) return;
    add_by_place(e, tensors, in_range(axis_of("blocks with one code only", "", false, true), 0), {},
                 share, "shares", "Saturated, collapsed and zero blocks",
                 "Share of blocks whose non-zero elements all get one code, with overflow or "
                 "without. Recipes without such blocks are left out.",
                 to);
}

}  // namespace mx::pages
