// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/runs_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "libmx/pages/views/figures.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/pages/views/words.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::number_of;
using report::record;
using report::section;
using report::text_of;

std::string folder_of(const record& run) {
    return std::filesystem::path(text_of(run, "run")).parent_path().filename().string();
}

// "mxfp4, seed-1": runs of several groups are in folders of the same names.
std::string run_name(const record& run) {
    return fmt::format("{}, {}", text_of(run, "group"), folder_of(run));
}

// The losses of a run.
report::line_chart::line losses_of(const record& r) {
    report::line_chart::line line{run_name(r), {}};
    constexpr const char *x = "loss_steps", *y = "losses";
    const auto* xs = report::member<report::list>(r, x);
    const auto* ys = report::member<report::list>(r, y);
    if (xs == nullptr || ys == nullptr) return line;
    for (std::size_t i = 0; i < std::min(xs->size(), ys->size()); ++i) {
        line.points.push_back({number_of((*xs)[i]).value_or(NAN), number_of((*ys)[i]), ""});
    }
    return line;
}

// A panel for each group, with all its runs; in a single panel lines have names, and are few.
void add_losses(const std::vector<record>& runs, std::size_t groups, section& to) {
    const std::size_t most = groups == 1 ? most_lines : 32;
    report::line_chart chart;
    chart.x = axis_of("step", "");
    chart.y = axis_of("loss", "", true);
    std::set<double> interventions;
    std::map<std::string, std::size_t> drawn_of;
    std::size_t left_out = 0;
    for (const record& r : runs) {
        report::line_chart::line line = losses_of(r);
        const std::string group = text_of(r, "group");
        if (groups > 1) {
            for (report::point& p : line.points) {
                p.label = fmt::format("{}, step {}", folder_of(r), p.x);
            }
            line.name = line.panel = group;
        }
        std::size_t& drawn = drawn_of[group];
        if (line.points.empty() || drawn == most || drawn_of.size() > most_lines) {
            ++left_out;
            continue;
        }
        ++drawn;
        chart.lines.push_back(std::move(line));
        const auto* at = report::member<report::list>(r, "interventions");
        if (at == nullptr) continue;
        for (const report::value& v : *at) interventions.insert(number_of(v).value_or(0));
    }
    for (const double step : interventions) chart.zones.push_back({"intervention", step, step + 1});
    if (chart.lines.empty()) return;
    add_figure(to, "losses", "Losses",
               fmt::format("Each point is the largest loss of its range of steps.{}",
                           left_out == 0 ? "" : fmt::format(" Left out: {} runs.", left_out)),
               std::move(chart));
}

void add_zeta(const std::vector<record>& runs, const std::string& first, section& to) {
    report::line_chart by_step;
    by_step.x = axis_of("step", "");
    by_step.y = axis_of("zeta", "", true);
    report::scatter_chart by_loss;
    by_loss.x = axis_of("loss", "", true);
    by_loss.y = axis_of("zeta", "", true);
    for (const record& r : runs) {
        report::line_chart::line line{run_name(r), {}};
        for (const record& p : records_in(r, "probes")) {
            const auto step = number_of(p, "step"), loss = number_of(p, "loss");
            const auto zeta = number_of(p, "zeta");
            if (!step || !zeta) continue;
            line.points.push_back({*step, zeta, ""});
            if (!loss) continue;
            by_loss.marks.push_back(
                {{*loss, zeta, fmt::format("{}, step {}", line.name, *step)}, text_of(r, "group")});
        }
        if (!line.points.empty() && by_step.lines.size() < most_lines) {
            by_step.lines.push_back(std::move(line));
        }
    }
    if (by_step.lines.empty()) return;
    add_figure(to, "zeta", "Error of the gradient",
               "zeta = |q - g| / |g| against float32 at the same parameters and batch." + first,
               std::move(by_step));
    if (by_loss.marks.empty()) return;
    add_figure(to, "zeta-by-loss", "Error of the gradient against the loss", "A point is a probe.",
               std::move(by_loss));
}

// Gains of each norm over the steps in the first run of each group that has them, divided by the
// power of two above the largest: the zone in which a block of them clamps is then at one height.
void add_gains(const std::vector<record>& runs, section& to) {
    constexpr std::size_t most_groups = 6;
    std::set<std::string> seen;
    for (const record& r : runs) {
        const std::string group = text_of(r, "group");
        if (seen.size() == most_groups || seen.contains(group)) continue;
        std::map<std::string, report::line_chart::line> norms;
        std::optional<double> from;
        for (const record& p : records_in(r, "probes")) {
            for (const record& gains : records_in(p, "gains")) {
                const auto step = number_of(p, "step"), largest = number_of(gains, "largest");
                const auto median = number_of(gains, "median"), least = number_of(gains, "least");
                if (const auto zone = number_of(gains, "clamp_zone_from")) from = zone;
                if (!step || !median || !least || !largest || !(*largest > 0)) continue;
                const auto over = [&, power = std::exp2(std::ilogb(*largest) + 1)](double gain) {
                    return gain / power;
                };
                const std::string name = text_of(gains, "tensor");
                norms[name].points.push_back({*step, over(*median),
                                              fmt::format("{}, step {}: {:.4g}, {:.4g} to {:.4g}",
                                                          name, *step, *median, *least, *largest),
                                              over(*least), over(*largest)});
            }
        }
        if (norms.empty()) continue;
        seen.insert(group);
        report::line_chart chart;
        chart.x = axis_of("step", "");
        chart.y = axis_of("gain over the power of two above", "");
        for (auto& [name, line] : norms) {
            line.name = "median, least to largest";
            line.panel = name;
            chart.lines.push_back(std::move(line));
        }
        if (from) chart.levels.push_back({"clamp zone begins", *from});
        add_figure(
            to, fmt::format("gains-{}", seen.size()), "Gains of norms: " + group,
            fmt::format("{}: magnitudes over the power of two above the largest. {}", folder_of(r),
                        from ? "Where gains are quantized, a block whose gains all lie "
                               "above the line takes the largest code as a whole. The zone "
                               "is that of their recipe, else of the weights', else of mxfp8."
                             : "Under this recipe there is no clamp zone."),
            std::move(chart));
    }
}

// When a run counts as unstable.
std::string rule_text(const record& rule) {
    const auto number = [&](const char* name) { return number_of(rule, name).value_or(NAN); };
    const std::string jump = fmt::format("a loss above {:g} times its reference", number("factor"));
    const std::string excess = fmt::format(
        "most of {} losses in a row above the reference by {:g} standard deviations and {:g} %",
        number("running"), number("spread"), 100 * number("least_excess"));
    const std::string by = text_of(rule, "by");
    if (by != "task") return by == "jump" ? jump : excess;
    return fmt::format("in the proxy's task of the paper {}; in others {}", jump, excess);
}

section groups_of(const document_parts& d) {
    section groups{.heading = "Groups",
                   .columns = columns_of(
                       {"group", column_of("runs", "runs", cell::integer),
                        column_of("seeds", "seeds", cell::integer), "unstable",
                        column_of("high_ends", "high\nends", cell::integer),
                        column_of("survival", "stable", cell::share),
                        column_of("survival_low", "from", cell::share),
                        column_of("survival_high", "to", cell::share),
                        column_of("log_rank_p_adjusted", "p", cell::significant, 2),
                        column_of("pairs", "pairs", cell::integer), "gap", "gap_low", "gap_high"}),
                   .rows = {d.results.begin(), d.results.end()}};
    if (const auto* rule = report::member<record>(d.head, "rule")) {
        const auto number = [&](const char* name) { return number_of(*rule, name).value_or(NAN); };
        groups.notes.push_back(fmt::format(
            "Unstable: {}. The reference is the median of the {} losses before; the first {} steps "
            "are not judged. High end: the mean of the last tenth exceeds the least mean of a "
            "tenth "
            "by {:g} %. Gap: mean loss of the last 30 % of the steps, after all interventions, "
            "minus "
            "that of the same seed in the first group; stable runs only. p: log-rank, adjusted by "
            "Holm's method. Intervals are 95 %; copies of a run have none.",
            rule_text(*rule), number("window"), number("burn_in"), 100 * number("margin")));
    }
    return groups;
}

section runs_table_of(const document_parts& d) {
    return {.heading = "Runs",
            .columns = columns_of({"run", "group", "status", "steps", "unstable_at",
                                   column_of("rise_at_end", "end over\nleast", cell::share),
                                   column_of("late_loss", "late loss", cell::significant, 5)}),
            .rows = records_in(d.tail, "runs")};
}

section across_of(const document_parts& d) {
    section across{
        .heading = "Gradients across runs",
        .columns = columns_of({"run", column_of("against", "against", cell::name), "step",
                               column_of("zeta_norm", "|q-g|^2/|g|^2", cell::significant),
                               column_of("cosine", "cosine", cell::significant),
                               column_of("norm_ratio", "|q|/|g|", cell::significant)}),
        .rows = records_in(d.tail, "across")};
    if (!across.rows.empty()) {
        across.notes = {
            "q of a run and g of the run of the first group which differs in nothing else, each "
            "at its own parameters, from dumps of the same step. This is what the code "
            "published with arXiv 2506.20752 logs as zeta_norm. It grows as the parameters part, "
            "whatever the precision; probes compare at the same parameters."};
    }
    return across;
}

void add_survival(const std::vector<record>& groups, const std::vector<record>& runs, section& to) {
    report::line_chart survival;
    survival.x = axis_of("step", "");
    survival.y = in_range(axis_of("stable runs", "", false, true), 0, 1);
    for (const record& r : groups) {
        report::line_chart::line line{text_of(r, "group"), {}};
        double share = 1;
        for (const record& p : records_in(r, "survival_curve")) {
            const double step = number_of(p, "step").value_or(NAN);
            line.points.push_back({step, share, ""});
            share = number_of(p, "survival").value_or(NAN);
            line.points.push_back({step, share, "", number_of(p, "low"), number_of(p, "high")});
        }
        // Up to the last step of the group's runs.
        double last = 0;
        for (const record& run : runs) {
            if (text_of(run, "group") != line.name) continue;
            last = std::max(last, number_of(run, "steps").value_or(0));
        }
        line.points.push_back({last, share, ""});
        if (survival.lines.size() < most_lines) survival.lines.push_back(std::move(line));
    }
    add_figure(to, "survival", "Runs that are stable so far",
               "Kaplan-Meier estimate by group, with its interval.", std::move(survival));
}

}  // namespace

std::vector<section> runs_view(const document_parts& d, const view_options& o) {
    section groups = groups_of(d), runs = runs_table_of(d);
    section losses, curves{.heading = "Curves"};
    if (o.page) {
        const std::string first =
            runs.rows.size() > most_lines
                ? fmt::format(" The first {} of {} runs.", most_lines, runs.rows.size())
                : "";
        add_losses(runs.rows, groups.rows.size(), losses);
        add_survival(groups.rows, runs.rows, curves);
        add_zeta(runs.rows, first, curves);
        add_gains(runs.rows, curves);
    }
    return {std::move(losses), std::move(curves), std::move(groups), std::move(runs), across_of(d)};
}

}  // namespace mx::pages
