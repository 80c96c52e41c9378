// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/diff_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "libmx/pages/views/figures.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t drawn_findings = 10;

// Members of the series of mx diff that are drawn. Comparisons with the previous dump have no value
// for the first.
struct step_metric {
    const char* name;
    const char* title;
    bool share;
};
constexpr std::array step_metrics{
    step_metric{"saturated_block_rate", "saturated blocks", true},
    step_metric{"clamp_zone_rate", "block maxima in the clamp zone", true},
    step_metric{"clamp_rate", "clamped elements", true},
    step_metric{"scale_churn", "blocks with another scale than before", true},
    step_metric{"codes_moved", "elements with another code than before", true},
    step_metric{"nrmse", "change of the values, relative to their RMS", false},
};

// The tensors of one role under one recipe, combined at each step.
struct step_line {
    struct at_step {
        double sum = 0, low = 0, high = 0;
        std::size_t count = 0;

        void add(double x) {
            sum += x;
            low = count == 0 ? x : std::min(low, x);
            high = count == 0 ? x : std::max(high, x);
            ++count;
        }
    };
    std::string role, recipe;
    std::vector<at_step> steps;
};

std::vector<step_line> lines_of(const dump_series& d, const step_metric& m) {
    std::vector<step_line> lines;
    for (const report::value& v : *d.series) {
        const auto* r = std::get_if<report::record>(&v);
        if (r == nullptr) continue;
        const auto* steps = report::member<report::list>(*r, m.name);
        if (steps == nullptr || steps->size() != d.labels.size()) continue;
        const std::string role = report::text_of(*r, "role");
        const std::string recipe = report::text_of(*r, "recipe");
        auto at = std::ranges::find_if(
            lines, [&](const step_line& l) { return l.role == role && l.recipe == recipe; });
        if (at == lines.end()) {
            at = lines.insert(
                at, step_line{role, recipe, std::vector<step_line::at_step>(steps->size())});
        }
        for (std::size_t i = 0; i < steps->size(); ++i) {
            const auto x = report::number_of((*steps)[i]);
            if (x) at->steps[i].add(*x);
        }
    }
    return lines;
}

void add_series(const dump_series& d, const step_metric& m, report::section& to) {
    report::line_chart chart;
    chart.x = axis_of(d.numbered ? "step" : "dump", "");
    chart.y = axis_of(m.title, "", false, m.share);
    // Bands of more lines hide one another: show those that reach highest.
    constexpr std::size_t most_bands = 4;
    std::vector<step_line> lines = lines_of(d, m);
    const auto reach = [](const step_line& l) {
        double most = 0;
        for (const step_line::at_step& s : l.steps) most = std::max(most, s.high);
        return most;
    };
    std::ranges::stable_sort(lines, std::greater{}, reach);
    for (const step_line& l : lines) {
        if (chart.lines.size() == most_bands) break;
        report::line_chart::line line{fmt::format("{}, {}", l.role, l.recipe), {}};
        bool any = false;
        for (std::size_t i = 0; i < l.steps.size(); ++i) {
            const step_line::at_step& s = l.steps[i];
            report::point at{d.steps[i], {}, d.labels[i]};
            if (s.count > 0) {
                at.y = s.sum / static_cast<double>(s.count);
                at.low = s.low;
                at.high = s.high;
                any = true;
            }
            line.points.push_back(std::move(at));
        }
        if (any) chart.lines.push_back(std::move(line));
    }
    if (chart.lines.empty()) return;
    std::string caption =
        "Mean over the tensors of a class, each counting the same, in a band from the least to the "
        "most.";
    if (lines.size() > chart.lines.size() && chart.lines.size() == most_bands) {
        caption += fmt::format(" The {} of {} that reach highest.", most_bands, lines.size());
    }
    add_figure(to, "steps", fmt::format("From dump to dump: {}", m.title), std::move(caption),
               std::move(chart));
}

// The distance of norm tensors from the clamp zone, for those that come closest.
void add_distances(const dump_series& d, report::section& to) {
    struct followed {
        double last = 0;
        report::line_chart::line line;
    };
    std::vector<followed> all;
    for (const report::value& v : *d.series) {
        const auto* r = std::get_if<report::record>(&v);
        if (r == nullptr) continue;
        const auto* steps = report::member<report::list>(*r, "clamp_zone_distance");
        if (steps == nullptr || steps->size() != d.labels.size()) continue;
        followed f{
            -HUGE_VAL,
            {fmt::format("{}, {}", report::text_of(*r, "tensor"), report::text_of(*r, "recipe")),
             {}}};
        for (std::size_t i = 0; i < steps->size(); ++i) {
            const auto y = report::number_of((*steps)[i]);
            if (y) f.last = *y;
            f.line.points.push_back({d.steps[i], y, d.labels[i]});
        }
        if (std::isfinite(f.last)) all.push_back(std::move(f));
    }
    if (all.empty()) return;
    std::ranges::stable_sort(all, std::greater{}, &followed::last);
    report::line_chart chart;
    chart.x = axis_of(d.numbered ? "step" : "dump", "");
    chart.y = axis_of("log2 of the maximum over the zone's edge", "");
    chart.levels = {{"clamp zone begins", 0}};
    for (followed& f : all) {
        if (chart.lines.size() < most_lines) chart.lines.push_back(std::move(f.line));
    }
    const std::size_t shown = chart.lines.size();
    add_figure(
        to, "distance", "Norm gains: distance to the clamp zone",
        fmt::format("Mantissas of a tensor's block maxima relative to the lower edge of the clamp "
                    "zone: above 0 the gains of a block begin to get the largest code. {} of {}, "
                    "the nearest at the last dump.",
                    shown, report::plural(all.size(), "line")),
        std::move(chart));
}

void add_findings(const dump_series& d, report::section& to) {
    if (d.findings == nullptr) return;
    for (const report::value& v : *d.findings) {
        const auto* r = std::get_if<report::record>(&v);
        if (r != nullptr && to.rows.size() < drawn_findings) to.rows.push_back(*r);
    }
    if (to.rows.empty()) return;
    to.columns =
        columns_of({"tensor", "recipe", column_of("finding", "approaching the clamp zone")});
}

}  // namespace

dump_series series_of(const report::record& head, const report::record& tail) {
    dump_series d;
    d.series = report::member<report::list>(tail, "series");
    d.findings = report::member<report::list>(tail, "findings");
    if (const auto* labels = report::member<report::list>(head, "labels")) {
        for (const report::value& v : *labels) {
            const auto* text = std::get_if<std::string>(&v);
            d.labels.push_back(text == nullptr ? std::string() : *text);
        }
    }
    const auto* steps = report::member<report::list>(head, "steps");
    d.numbered = steps != nullptr && !steps->empty() && steps->size() == d.labels.size();
    for (std::size_t i = 0; i < d.labels.size(); ++i) {
        d.steps.push_back(d.numbered ? report::number_of((*steps)[i]).value_or(0)
                                     : static_cast<double>(i));
    }
    return d;
}

report::section steps_section(const std::vector<dump_series>& dumps) {
    report::section s;
    if (dumps.empty()) return s;
    s.heading = "From dump to dump";
    for (const dump_series& d : dumps) {
        add_findings(d, s);
        if (d.series == nullptr || d.series->empty()) {
            s.notes.push_back("Lines over steps: give mx diff three dumps or more.");
            continue;
        }
        add_distances(d, s);
        for (const step_metric& m : step_metrics) add_series(d, m, s);
    }
    return s;
}

}  // namespace mx::pages
