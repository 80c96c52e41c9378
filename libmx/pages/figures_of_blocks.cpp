// SPDX-License-Identifier: Apache-2.0
// Properties of blocks: the position of maxima in the binade, and the codes and scales in use.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "libmx/format/decode.hpp"
#include "libmx/pages/figure_parts.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/pages/views/words.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t most_panels = 12;

using panel_series = report::bar_chart::series;

double total(const std::vector<double>& counts) {
    return std::accumulate(counts.begin(), counts.end(), 0.0);
}

// Panels with the same data are merged, under the first name and the number of others.
struct shared_panel {
    panel_series what;
    std::vector<std::string> names;
};

void add_panel(std::vector<shared_panel>& panels, panel_series s) {
    const auto same = [&](const shared_panel& p) {
        return p.what.counts == s.counts && p.what.edges == s.edges &&
               p.what.zones.size() == s.zones.size() &&
               (s.zones.empty() || (p.what.zones.front().from == s.zones.front().from &&
                                    p.what.zones.front().to == s.zones.front().to));
    };
    auto at = std::ranges::find_if(panels, same);
    if (at == panels.end()) at = panels.insert(at, shared_panel{s, {}});
    at->names.push_back(s.name);
}

std::vector<panel_series> named(std::vector<shared_panel> panels) {
    std::vector<panel_series> all;
    for (shared_panel& p : panels) {
        if (all.size() == most_panels) break;
        if (p.names.size() <= 2) {
            p.what.name = listed(p.names);
        } else {
            p.what.name = fmt::format("{} and {} more", p.names[0], p.names.size() - 1);
        }
        all.push_back(std::move(p.what));
    }
    return all;
}

void add_mantissas(const review_data& e, const std::string& role, report::section& to) {
    report::bar_chart chart = mantissa_chart();
    std::vector<shared_panel> panels;
    for (const compare::cell& c : e.plan.cells) {
        const auto sum = histograms_of(e, role, c.name);
        if (!sum) continue;
        panel_series s = mantissa_panel(c.recipe, c.name, sum->amax);
        if (total(s.counts) > 0) add_panel(panels, std::move(s));
    }
    if (panels.empty()) return;
    chart.panels = named(std::move(panels));
    const std::string of = tensors_of(role);
    add_figure(
        to, "mantissas", fmt::format("Position of block maxima in their binade, {}", of),
        "Shaded: the clamp zone, maxima that the recipe's scale rule puts beyond the largest "
        "element. Recipes of one panel have the same blocks and the same zone; without shade no "
        "maximum overflows.",
        std::move(chart))
        .more = !role.empty();
}

// Codes by magnitude, both signs together; NaN and Inf last.
struct magnitude_bins {
    std::map<double, double> finite;
    double special = 0;
};

magnitude_bins by_magnitude(const format::element_format& f, const std::vector<double>& codes) {
    magnitude_bins m;
    for (std::size_t code = 0; code < codes.size(); ++code) {
        const double v = format::decode(f, static_cast<std::uint32_t>(code));
        if (std::isfinite(v)) {
            m.finite[std::abs(v)] += codes[code];
        } else {
            m.special += codes[code];
        }
    }
    return m;
}

void add_codes(const review_data& e, const std::string& role, report::section& to) {
    report::bar_chart chart;
    chart.x = axis_of("magnitude of the element", "", true);
    chart.y = axis_of("elements", "", false, true);
    for (const compare::cell& c : e.plan.cells) {
        if (chart.panels.size() == most_panels) break;
        const auto sum = histograms_of(e, role, c.name);
        if (!sum || total(sum->codes) == 0) continue;
        if (sum->codes.size() != static_cast<std::size_t>(c.recipe.element->codes())) continue;
        const magnitude_bins m = by_magnitude(*c.recipe.element, sum->codes);
        panel_series s;
        s.name = c.name;
        // A bar extends halfway to the neighbouring magnitudes; zero's bar is next to the smallest
        // magnitude.
        std::vector<double> values;
        for (const auto& [value, n] : m.finite) values.push_back(value);
        if (values.size() < 3) continue;
        if (values.front() == 0) values.front() = values[1] * values[1] / values[2];
        s.edges.push_back(values[0] * std::sqrt(values[0] / values[1]));
        for (std::size_t i = 1; i < values.size(); ++i) {
            s.edges.push_back(std::sqrt(values[i - 1] * values[i]));
        }
        s.edges.push_back(values.back() * std::sqrt(values.back() / values[values.size() - 2]));
        for (const auto& [value, n] : m.finite) {
            s.counts.push_back(n);
            s.labels.push_back(fmt::format("{:g}", value));
        }
        chart.panels.push_back(std::move(s));
    }
    if (chart.panels.empty()) return;
    const std::string of = tensors_of(role);
    add_figure(to, "codes", fmt::format("Codes in use, {}", of),
               "Elements by magnitude, both signs together, in units of the block's scale; the "
               "leftmost bar is zero. Codes that are not numbers are not drawn.",
               std::move(chart))
        .more = true;
}

// The exponent of a scale code; nullopt for zero, NaN, and the smallest E8M0 scale, which blocks of
// zeros have.
std::optional<int> exponent_of(const format::scale_format& f, int code) {
    if (!f.is_number()) {
        if (code == format::e8m0_nan || code == 0) return {};
        return code - format::e8m0_bias;
    }
    const double v = format::decode(f.number, static_cast<std::uint32_t>(code));
    if (!std::isfinite(v) || v <= 0) return {};
    return std::ilogb(v);
}

void add_scales(const review_data& e, const std::string& role, report::section& to) {
    report::bar_chart chart;
    chart.x = axis_of("exponent of the scale", "");
    chart.y = axis_of("blocks", "", false, true);
    std::vector<shared_panel> panels;
    for (const compare::cell& c : e.plan.cells) {
        const auto sum = histograms_of(e, role, c.name);
        if (!sum) continue;
        std::map<int, double> bins;
        for (const auto& [code, n] : sum->scales) {
            const auto exponent = exponent_of(*c.recipe.scale_format, code);
            if (exponent) bins[*exponent] += n;
        }
        if (bins.empty()) continue;
        panel_series s;
        s.name = c.name;
        for (int x = bins.begin()->first; x <= bins.rbegin()->first; ++x) {
            const auto at = bins.find(x);
            s.edges.push_back(x - 0.5);
            s.counts.push_back(at == bins.end() ? 0 : at->second);
            s.labels.push_back(fmt::format("2^{}", x));
        }
        s.edges.push_back(bins.rbegin()->first + 0.5);
        add_panel(panels, std::move(s));
    }
    if (panels.empty()) return;
    chart.panels = named(std::move(panels));
    const std::string of = tensors_of(role);
    add_figure(
        to, "scales", fmt::format("Scales in use, {}", of),
        "Blocks by floor(log2) of their scale. Not drawn: scales that are zero or NaN, and 2^-127, "
        "which blocks of zeros have.",
        std::move(chart))
        .more = true;
}

}  // namespace

report::section blocks_section(const review_data& e) {
    report::section s{.heading = "Blocks, codes and scales"};
    if (e.sums.empty()) {
        s.notes.push_back(
            "Histograms of block maxima, codes and scales: run mx analyze with --histograms, or "
            "mx analyze, compare or cluster with --html.");
        return s;
    }
    const std::vector<std::string> roles = plotted_roles(e);
    for (const std::string& role : roles) add_mantissas(e, role, s);
    for (const std::string& role : roles) add_codes(e, role, s);
    for (const std::string& role : roles) add_scales(e, role, s);
    return s;
}

}  // namespace mx::pages
