// SPDX-License-Identifier: Apache-2.0
// What moves from dump to dump.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "libmx/pages/figure_parts.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

constexpr std::size_t drawn_findings = 10;

// Members of the series of mx diff that are drawn. What compares a dump with the one before has
// nothing to say of the first.
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

// Means over the tensors of one role under one recipe.
struct step_line {
    std::string role, recipe;
    std::vector<double> sums;
    std::vector<std::size_t> counts;
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
            at = lines.insert(at, step_line{role, recipe, std::vector<double>(steps->size()),
                                            std::vector<std::size_t>(steps->size())});
        }
        for (std::size_t i = 0; i < steps->size(); ++i) {
            const auto x = report::number_of((*steps)[i]);
            if (!x) continue;
            at->sums[i] += *x;
            ++at->counts[i];
        }
    }
    return lines;
}

void add_series(const dump_series& d, const step_metric& m, report::section& to) {
    report::line_chart chart;
    chart.x = axis_of(d.numbered ? "step" : "dump", "");
    chart.y = axis_of(m.title, "", false, m.share);
    const std::vector<step_line> lines = lines_of(d, m);
    for (const step_line& l : lines) {
        if (chart.lines.size() == most_lines) break;
        report::line_chart::line line{fmt::format("{}, {}", l.role, l.recipe), {}};
        bool any = false;
        for (std::size_t i = 0; i < l.sums.size(); ++i) {
            std::optional<double> y;
            if (l.counts[i] > 0) y = l.sums[i] / static_cast<double>(l.counts[i]);
            any = any || y.has_value();
            line.points.push_back({d.steps[i], y, d.labels[i]});
        }
        if (any) chart.lines.push_back(std::move(line));
    }
    if (chart.lines.empty()) return;
    std::string caption = "Mean over the tensors of a class, each counting the same.";
    if (lines.size() > chart.lines.size() && chart.lines.size() == most_lines) {
        caption += fmt::format(" The first {} of {} lines.", most_lines, lines.size());
    }
    add_figure(to, "steps", fmt::format("From dump to dump: {}", m.title), std::move(caption),
               std::move(chart));
}

void add_findings(const dump_series& d, report::section& to) {
    if (d.findings == nullptr) return;
    for (const report::value& v : *d.findings) {
        const auto* r = std::get_if<report::record>(&v);
        if (r != nullptr && to.rows.size() < drawn_findings) to.rows.push_back(*r);
    }
    if (to.rows.empty()) return;
    to.columns = {{"tensor", "tensor", report::cell::name},
                  {"recipe", "recipe"},
                  {"finding", "on its way to the clamp zone"}};
}

}  // namespace

report::section steps_section(const evidence& e) {
    report::section s;
    if (e.dumps.empty()) return s;
    s.heading = "From dump to dump";
    for (const dump_series& d : e.dumps) {
        add_findings(d, s);
        if (d.series == nullptr || d.series->empty()) {
            s.notes.push_back("Lines over steps: give mx diff three dumps or more.");
            continue;
        }
        for (const step_metric& m : step_metrics) add_series(d, m, s);
    }
    return s;
}

}  // namespace mx::pages
