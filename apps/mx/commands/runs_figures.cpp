// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "apps/mx/commands/runs.hpp"

namespace mx::app {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const told_run& r) {
    return fs::path(r.path).parent_path().filename().string();
}

report::figure curves_figure(const std::vector<told_run>& runs) {
    report::line_chart chart;
    chart.x = {"step", "", false, false, {}, {}};
    chart.y = {"loss", "", true, false, {}, {}};
    constexpr std::size_t most_runs = 12, points = 400;
    for (const told_run& r : runs) {
        if (chart.lines.size() == most_runs) break;
        report::line_chart::line line;
        line.name = folder_of(r);
        const std::size_t stride = std::max<std::size_t>(1, r.losses.size() / points);
        for (std::size_t i = 0; i < r.losses.size(); i += stride) {
            // The largest of a stretch, so that no spike is lost.
            float most = r.losses[i];
            for (std::size_t k = i; k < std::min(i + stride, r.losses.size()); ++k) {
                most = r.losses[k] > most ? r.losses[k] : most;
            }
            report::point p;
            p.x = static_cast<double>(i + 1);
            if (std::isfinite(most)) p.y = static_cast<double>(most);
            line.points.push_back(p);
        }
        chart.lines.push_back(std::move(line));
        for (const std::uint64_t at : r.interventions) {
            const auto x = static_cast<double>(at);
            chart.zones.push_back({"intervention", x, x + 1});
        }
    }
    return {"losses", "Losses", "Each point is the largest loss of its stretch of steps.",
            chart,    {},       {}};
}

report::figure survival_figure(const std::vector<run_group>& groups) {
    report::line_chart chart;
    chart.x = {"step", "", false, false, {}, {}};
    chart.y = {"stable runs", "share", false, true, 0.0, 1.0};
    for (const run_group& g : groups) {
        report::line_chart::line line;
        line.name = g.name;
        double last = 0, share = 1;
        for (const told_run* r : g.runs)
            last = std::max(last, static_cast<double>(r->losses.size()));
        for (const lab::survival_point& p : lab::survival_of(g.lives())) {
            const auto x = static_cast<double>(p.step);
            line.points.push_back({x, share, ""});
            share = p.share;
            line.points.push_back({x, share, ""});
        }
        line.points.push_back({last, share, ""});
        chart.lines.push_back(std::move(line));
    }
    return {"survival",
            "Runs that are stable so far",
            "Kaplan and Meier's estimate by group.",
            chart,
            {},
            {}};
}

report::figure zeta_figure(const std::vector<told_run>& runs) {
    report::line_chart chart;
    chart.x = {"step", "", false, false, {}, {}};
    chart.y = {"zeta", "", true, false, {}, {}};
    for (const told_run& r : runs) {
        if (r.probes.empty() || chart.lines.size() == 12) continue;
        report::line_chart::line line;
        line.name = folder_of(r);
        for (const told_probe& p : r.probes) {
            line.points.push_back({static_cast<double>(p.step), p.zeta, ""});
        }
        chart.lines.push_back(std::move(line));
    }
    return {"zeta",
            "Error of the gradient",
            "zeta = |q - g| / |g| against float32 at the same parameters and batch.",
            chart,
            {},
            {}};
}

report::figure zeta_by_loss_figure(const std::vector<told_run>& runs) {
    report::scatter_chart chart;
    chart.x = {"loss", "", true, false, {}, {}};
    chart.y = {"zeta", "", true, false, {}, {}};
    for (const told_run& r : runs) {
        for (const told_probe& p : r.probes) {
            if (!p.zeta || !std::isfinite(p.loss)) continue;
            chart.marks.push_back(
                {{p.loss, p.zeta, fmt::format("{}, step {}", folder_of(r), p.step)}, r.group});
        }
    }
    return {"zeta-by-loss",
            "Error of the gradient against the loss",
            "A point is a probe.",
            chart,
            {},
            {}};
}

// The mantissas of the gains of one run, each in [0.5, 1) by its own power of two.
std::optional<report::figure> gains_figure(const run_group& g, std::size_t number) {
    const auto with_gains = [](const told_run* r) {
        return std::any_of(r->probes.begin(), r->probes.end(),
                           [](const told_probe& p) { return !p.gains.empty(); });
    };
    const auto found = std::find_if(g.runs.begin(), g.runs.end(), with_gains);
    if (found == g.runs.end()) return std::nullopt;
    report::scatter_chart chart;
    chart.x = {"mantissa", "", false, false, 0.5, 1.0};
    chart.y = {"step", "", false, false, {}, {}};
    chart.groups = {"least", "median", "largest"};
    std::optional<double> from;
    for (const told_probe& p : (*found)->probes) {
        for (const told_gains& of : p.gains) {
            if (of.zone_from) from = of.zone_from;
            const auto mark = [&](double x, const char* name) {
                int exponent = 0;
                chart.marks.push_back({{std::frexp(x, &exponent), static_cast<double>(p.step),
                                        fmt::format("{}: {:.4g}", of.tensor, x)},
                                       name});
            };
            mark(of.least, "least");
            mark(of.median, "median");
            mark(of.largest, "largest");
        }
    }
    if (from) chart.zones.push_back({"clamp zone", *from, 1});
    return report::figure{
        fmt::format("gains-{}", number),
        "Gains of norms: " + g.name,
        fmt::format("{}: magnitudes over the power of two above each, over steps. A block all of "
                    "whose gains lie in the clamp zone of one power of two takes the largest code "
                    "as a whole{}.",
                    folder_of(**found), from ? "" : "; under this recipe there is no zone"),
        chart,
        {},
        {}};
}

}  // namespace

std::vector<report::figure> figures_of_runs(const std::vector<told_run>& runs,
                                            const std::vector<run_group>& groups) {
    std::vector<report::figure> all{survival_figure(groups), curves_figure(runs)};
    const bool probed =
        std::any_of(runs.begin(), runs.end(), [](const told_run& r) { return !r.probes.empty(); });
    if (!probed) return all;
    all.push_back(zeta_figure(runs));
    all.push_back(zeta_by_loss_figure(runs));
    constexpr std::size_t most_groups = 6;
    for (std::size_t i = 0; i < std::min(groups.size(), most_groups); ++i) {
        if (auto gains = gains_figure(groups[i], i + 1)) all.push_back(std::move(*gains));
    }
    return all;
}

}  // namespace mx::app
