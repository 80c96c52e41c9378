// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/study_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "libmx/pages/views/figures.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::number_of;
using report::record;
using report::section;
using report::text_of;

std::vector<std::string> groups_of_study(const document_parts& d) {
    std::vector<std::string> groups;
    for (const record& r : d.results) {
        const std::string group = text_of(r, "group");
        if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
    }
    return groups;
}

// Whether the result's member is a number or a non-empty text.
bool has(const document_parts& d, const char* member) {
    // NOLINTNEXTLINE(readability-use-anyofallof): a record_list is not a range
    for (const record& r : d.results) {
        if (number_of(r, member) || !text_of(r, member).empty()) return true;
    }
    return false;
}

section configurations(const document_parts& d) {
    const bool steps = text_of(d.head, "measure") == "steps";
    const bool errors = has(d, "error");
    section s{
        .heading = "Configurations",
        .columns = columns_of({"configuration", "loss", "gap", "gap_low", "gap_high", "unstable"}),
        .rows = {d.results.begin(), d.results.end()},
        .group_field = "group"};
    if (steps) {
        s.columns.push_back({"reached", "reach\nthe loss", cell::integer});
        s.columns.push_back({"extra", "extra\nsteps %", cell::share});
        s.columns.push_back({"extra_low", "from", cell::share});
        s.columns.push_back({"extra_high", "to", cell::share});
    }
    if (errors) {
        s.columns.push_back({"error", "R-MSE\n/ RMS", cell::significant, 3});
        s.columns.push_back({"gain", "gain", cell::significant, 4});
    } else if (!steps) {
        s.columns.push_back({"gap_share", "gap %", cell::share});
    }
    if (has(d, "source")) s.columns.push_back({"source", "figure"});
    if (has(d, "published_words")) s.columns.push_back({"published_words", "published"});
    const auto share = [&](const char* name) { return number_of(d.head, name).value_or(0); };
    const std::string loss =
        text_of(d.head, "loss_of") == "held_out"
            ? "of the last tenth of the text, which is not used for training, after the last step"
            : fmt::format("mean over the last {:.0f} % of the steps", 100 * share("late_share"));
    s.notes.push_back(fmt::format(
        "Loss: {}. Gap: the loss minus that of the baseline, paired by seed (equal parameters, "
        "batches and noise), stable pairs only, with Student's 95 % interval.",
        loss));
    if (steps) {
        s.notes.push_back(fmt::format(
            "Extra steps: to the loss that the baseline of the seed has after {:.0f} % of the "
            "steps, over the steps of the baseline itself; losses are means over {:.0f} % of the "
            "steps. None if a run does not reach it.",
            100 * share("target_share"), 100 * share("window_share")));
    }
    if (errors) {
        s.notes.push_back(
            "R-MSE / RMS: of the operand whose recipe varies, mean over the layers, on the "
            "baseline's last step: weights and inputs as Fprop reads them, gradients as Dgrad "
            "does. Gain: q.x / x.x.");
    }
    if (const auto floor = number_of(d.head, "loss_floor")) {
        s.notes.push_back(fmt::format(
            "Every batch is new text, so losses are of text that was not seen before, in nats per "
            "byte; no model's expected loss is below {:.4f}.",
            *floor));
    }
    const std::string published = text_of(d.head, "published");
    if (!published.empty()) s.notes.push_back("Published: " + published);
    return s;
}

section correlations(const document_parts& d) {
    return {.heading = "Error against gap",
            .columns = columns_of({column_of("group", "varied"), "over",
                                   column_of("recipes", "recipes", cell::integer),
                                   column_of("spearman", "Spearman", cell::fixed, 3),
                                   column_of("spearman_low", "from", cell::fixed, 3),
                                   column_of("spearman_high", "to", cell::fixed, 3),
                                   column_of("power", "power", cell::fixed, 2),
                                   column_of("power_low", "from", cell::fixed, 2),
                                   column_of("power_high", "to", cell::fixed, 2)}),
            .rows = records_in(d.tail, "correlations"),
            .notes = {"Power: p of gap = c error^p where the gap is positive. Intervals are the "
                      "bootstrap's over recipes, 95 %."}};
}

section pairings(const document_parts& d, const char* member, const char* heading,
                 const char* note) {
    section s{.heading = heading,
              .columns = columns_of({"configuration", column_of("other", "compared with")}),
              .rows = records_in(d.tail, member),
              .group_field = "group"};
    const bool errors = std::ranges::any_of(
        s.rows, [](const record& r) { return number_of(r, "error_ratio").has_value(); });
    if (errors) {
        s.columns.push_back({"error_ratio", "R-MSE,\nratio", cell::fixed, 2});
        s.columns.push_back({"gain", "gain", cell::significant, 4});
        s.columns.push_back({"other_gain", "gain of\nthe other", cell::significant, 4});
    }
    s.columns.push_back({"gap", "loss,\ndifference", cell::significant, 3});
    s.columns.push_back(column_of("gap_low"));
    s.columns.push_back(column_of("gap_high"));
    s.columns.push_back(column_of("significant"));
    s.notes = {note};
    return s;
}

// The first group beside the answer, the others further down.
void add_gaps(const document_parts& d, section& answer, section& others) {
    const bool steps = text_of(d.head, "measure") == "steps";
    std::size_t number = 0;
    for (const std::string& group : groups_of_study(d)) {
        report::scatter_chart chart;
        chart.x = steps ? axis_of("extra steps", "", false, true) : axis_of("gap of the loss", "");
        chart.zones.push_back({"baseline", 0, 0});
        const char* const name = steps ? "extra" : "gap";
        for (const record& r : d.results) {
            const auto gap = number_of(r, name);
            const std::string configuration = text_of(r, "configuration");
            if (text_of(r, "group") != group || configuration == "baseline" || !gap) continue;
            chart.rows.push_back(configuration);
            chart.marks.push_back(
                {{*gap, 0, configuration, number_of(r, std::string(name) + "_low"),
                  number_of(r, std::string(name) + "_high")},
                 ""});
        }
        // The first one on top.
        std::ranges::reverse(chart.rows);
        for (std::size_t i = 0; i < chart.marks.size(); ++i) {
            chart.marks[i].at.y = static_cast<double>(chart.marks.size() - 1 - i);
        }
        if (chart.marks.empty()) continue;
        section& to = number == 0 ? answer : others;
        add_figure(to, fmt::format("gaps-{}", ++number),
                   (steps ? "Extra steps: " : "Gaps: ") + group,
                   "Mean over seeds, with its 95 % interval.", std::move(chart));
    }
}

void add_errors(const document_parts& d, section& to) {
    std::size_t number = 0;
    for (const std::string& group : groups_of_study(d)) {
        report::scatter_chart chart;
        chart.x = axis_of("R-MSE / RMS", "", true);
        chart.y = axis_of("gap of the loss", "", true);
        chart.groups = {"to nearest", "stochastic"};
        for (const record& r : d.results) {
            const auto error = number_of(r, "error"), gap = number_of(r, "gap");
            if (text_of(r, "group") != group || !error || !gap || !(*gap > 0)) continue;
            const bool is_drawn = is_true(r, "stochastic");
            chart.marks.push_back(
                {{*error, gap, text_of(r, "configuration")}, chart.groups[is_drawn ? 1 : 0], true});
        }
        if (chart.marks.size() < 2) continue;
        add_figure(to, fmt::format("errors-{}", ++number), "Error against gap: " + group,
                   "A mark is a recipe. Gaps that are not positive are left out.",
                   std::move(chart));
    }
}

// Own results against the published ones, where there are numbers of both.
void add_published(const document_parts& d, section& to) {
    const bool steps = text_of(d.head, "measure") == "steps";
    const std::string name = steps ? "extra" : "gap";
    std::size_t number = 0;
    for (const std::string& group : groups_of_study(d)) {
        report::scatter_chart chart;
        chart.x = steps ? axis_of("published", "", false, true) : axis_of("published", "", true);
        chart.y =
            steps ? axis_of("extra steps", "", false, true) : axis_of("gap of the loss", "", true);
        for (const record& r : d.results) {
            const auto own = number_of(r, name), published = number_of(r, "published");
            if (text_of(r, "group") != group || !own || !published) continue;
            const auto drawn = [&](double x) { return steps || x > 0; };  // else on log axes
            if (!drawn(*own) || !drawn(*published)) continue;
            chart.marks.push_back({{*published, *own, text_of(r, "configuration")}, "", true});
            const auto low = number_of(r, name + "_low"), high = number_of(r, name + "_high");
            if (!low || !high || !drawn(*low)) continue;
            chart.marks.back().at.low = low;
            chart.marks.back().at.high = high;
        }
        if (chart.marks.size() < 3) continue;  // no order
        if (steps) {
            const auto most = std::ranges::max(
                chart.marks, {}, [](const auto& m) { return std::max(m.at.x, *m.at.y); });
            const double end = std::max(most.at.x, *most.at.y);
            chart.path = {{0, 0}, {end, end}};
            chart.path_name = "equal";
        }
        add_figure(to, fmt::format("published-{}", ++number),
                   fmt::format("{} against published: {}", steps ? "Extra steps" : "Gaps", group),
                   steps ? "Mean over seeds, with its 95 % interval."
                         : "Mean over seeds, with its 95 % interval. Of other networks and losses "
                           "the order can be compared, not the size.",
                   std::move(chart));
    }
}

}  // namespace

std::vector<section> study_view(const document_parts& d, const view_options& o) {
    section answer, trained{.heading = "What was trained"}, figures{.heading = "Figures"};
    if (o.page) {
        trained.notes = {
            fmt::format("{}. {}. {} runs.", text_of(d.head, "title"), text_of(d.head, "paper"),
                        report::whole(number_of(d.head, "runs").value_or(0))),
            report::command(text_of(d.head, "command"))};
        add_gaps(d, answer, figures);
        add_published(d, figures);
        add_errors(d, figures);
    }
    std::vector<section> all{std::move(answer), std::move(trained), std::move(figures),
                             configurations(d)};
    for (section& s : std::vector{
             correlations(d),
             pairings(
                 d, "inversions", "Exceptions to R-MSE",
                 "Recipes with a larger error than another and a smaller loss, the clearest of "
                 "each group."),
             pairings(d, "twins", "Side by side",
                      "The loss of a configuration minus that of the other, paired by seed.")}) {
        if (!s.rows.empty()) all.push_back(std::move(s));
    }
    return all;
}

}  // namespace mx::pages
