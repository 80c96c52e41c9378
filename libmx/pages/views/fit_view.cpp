// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/fit_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "libmx/pages/views/figures.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::number_of;
using report::record;
using report::section;
using report::text_of;

constexpr std::size_t most_fit_marks = 1500;
constexpr std::size_t most_far_rows = 10;
constexpr std::size_t most_left_rows = 20;

// A row per coefficient of a result: value and interval.
void add_coefficient(section& to, const record& of, const std::string& group,
                     const std::string& member, const std::string& name) {
    if (!number_of(of, member)) return;
    to.add(group, name, *report::find(of, member), *report::find(of, member + "_low"),
           *report::find(of, member + "_high"));
}

section coefficients_of(const document_parts& d) {
    section s{.heading = "Coefficients",
              .columns = columns_of({"group", "coefficient",
                                     column_of("value", "value", cell::significant, 7),
                                     column_of("low", "2.5 %", cell::significant),
                                     column_of("high", "97.5 %", cell::significant)})};
    bool groups = false;
    for (const record& r : d.results) {
        const std::string group = text_of(r, "group");
        groups = groups || !group.empty();
        for (const char* name : {"A", "B", "E", "alpha", "beta"}) {
            add_coefficient(s, r, group, name, name);
        }
        for (const record& p : records_in(r, "precision")) {
            add_coefficient(s, p, group, "gamma", "gamma of " + text_of(p, "column"));
        }
        if (const auto* post = report::member<record>(r, "post_training")) {
            for (const char* name : {"C", "gamma_D", "gamma_N", "gamma"}) {
                add_coefficient(s, *post, group, name, fmt::format("P_post: {}", name));
            }
        }
        add_coefficient(s, r, group, "G", "G: N = G (C/6)^a");
        add_coefficient(s, r, group, "N_exponent", "a");
        s.add(group, "objective", *report::find(r, "objective"));
    }
    if (!groups) s.columns.erase(s.columns.begin());
    if (const auto n = number_of(d.head, "resamples"); n && *n > 0) {
        s.notes.push_back(
            fmt::format("Intervals: the middle 95 % of {} fits to runs drawn with replacement.",
                        report::whole(*n)));
    }
    return s;
}

// Removes columns that are empty in every row.
void drop_empty_columns(section& s) {
    std::erase_if(s.columns, [&](const report::column& c) {
        return std::ranges::none_of(s.rows, [&](const record& r) {
            const report::value* v = report::find(r, c.field);
            if (v == nullptr || std::holds_alternative<std::monostate>(*v)) return false;
            const auto* words = std::get_if<std::string>(v);
            return words == nullptr || !words->empty();
        });
    });
}

section predictions_of(const document_parts& d) {
    section s{.heading = "Predictions",
              .columns = columns_of(
                  {"group", "precision", column_of("compute", "FLOP", cell::significant, 3), "N",
                   column_of("N_low", "from", cell::significant, 3),
                   column_of("N_high", "to", cell::significant, 3), "D",
                   column_of("tokens_per_parameter", "D / N", cell::significant, 3), "loss",
                   column_of("loss_low", "from", cell::significant, 5),
                   column_of("loss_high", "to", cell::significant, 5),
                   column_of("beyond", "beyond\nthe runs")}),
              .rows = records_in(d.tail, "predictions")};
    for (record& r : s.rows) {
        for (auto& [name, v] : r) {
            if (name == "beyond") v = std::string(std::get<bool>(v) ? "yes" : "");
        }
    }
    drop_empty_columns(s);
    s.notes.push_back(
        "N and D are optimal for the compute, 6 N D FLOP, unless given with --at. Losses are for "
        "these N and D; beyond the runs they are extrapolations of the law.");
    return s;
}

section far_of(const document_parts& d) {
    section s{
        .heading = "Runs farthest from the law",
        .columns = columns_of({"line", "group", "precision", "N", "D", "loss",
                               column_of("predicted", "law", cell::significant, 5),
                               column_of("log_ratio", "log of\nratio", cell::significant, 2),
                               column_of("rise", "rise from\nminimum", cell::significant, 2)}),
        .rows = records_in(d.tail, "runs")};
    std::ranges::stable_sort(s.rows, std::greater{}, [](const record& r) {
        return std::abs(number_of(r, "log_ratio").value_or(INFINITY));
    });
    if (s.rows.size() > most_far_rows) {
        s.notes.push_back(
            fmt::format("The first {} of {}; --json has all.", most_far_rows, s.rows.size()));
        s.rows.resize(most_far_rows);
    }
    drop_empty_columns(s);
    return s;
}

section left_of(const document_parts& d) {
    section s{.heading = "Runs left out",
              .columns = columns_of({"line", column_of("N", "N", cell::text),
                                     column_of("D", "D", cell::text),
                                     column_of("loss", "loss", cell::text), "reason"}),
              .rows = records_in(d.tail, "left_out")};
    if (s.rows.size() > most_left_rows) {
        s.notes.push_back(
            fmt::format("The first {} of {}; --json has all.", most_left_rows, s.rows.size()));
        s.rows.resize(most_left_rows);
    }
    return s;
}

void add_plots(const document_parts& d, section& to) {
    report::scatter_chart losses, residuals;
    losses.x = axis_of("compute, FLOP", "", true);
    losses.y = axis_of("loss", "", true);
    residuals.x = losses.x;
    residuals.y = axis_of("measured over law, minus 1", "", false, true);
    residuals.levels.push_back({"the law", 0});
    const std::vector<record> all = records_in(d.tail, "runs");
    const std::size_t stride = all.size() / most_fit_marks + 1;
    for (std::size_t i = 0; i < all.size(); i += stride) {
        const record& r = all[i];
        const auto number = [&](const char* name) { return number_of(r, name).value_or(NAN); };
        const double compute = 6 * number("N") * number("D");
        std::string group = text_of(r, "group");
        if (group.empty()) group = text_of(r, "precision");
        if (group.empty()) group = "runs";
        const std::string label =
            fmt::format("line {}: N = {:.3g}, D = {:.3g}", report::whole(number("line")),
                        number("N"), number("D"));
        losses.marks.push_back({{compute, number("loss"), label}, group});
        residuals.marks.push_back({{compute, std::expm1(number("log_ratio")), label}, group});
    }
    if (losses.marks.empty()) return;
    // The first group's best losses; other groups are in the table only.
    const std::vector<record> predictions = records_in(d.tail, "predictions");
    const auto* front = predictions.empty() ? nullptr : &predictions.front();
    for (const record& p : records_in(d.tail, "frontier")) {
        const auto compute = number_of(p, "compute"), loss = number_of(p, "loss");
        if (compute && loss) losses.path.emplace_back(*compute, *loss);
    }
    losses.path_name = "the law at the best N and D";
    if (front != nullptr && d.results.size() > 1) {
        losses.path_name += fmt::format(", {}", text_of(*front, "group"));
    }
    add_figure(to, "fit", "Losses and the law", "A mark is a run that was fitted to.",
               std::move(losses));
    add_figure(to, "residuals", "Residuals",
               "Deviations from the law. A trend with compute means that its form is wrong; marks "
               "far above are runs that may have diverged.",
               std::move(residuals));
    report::scatter_chart coverage;
    coverage.x = axis_of("N", "", true);
    coverage.y = axis_of("D", "", true);
    for (std::size_t i = 0; i < all.size(); i += stride) {
        coverage.marks.push_back(
            {{number_of(all[i], "N").value_or(NAN), number_of(all[i], "D"),
              fmt::format("loss {:.4g}", number_of(all[i], "loss").value_or(0))},
             "runs"});
    }
    for (const record& p : records_in(d.tail, "frontier")) {
        const auto n = number_of(p, "N"), tokens = number_of(p, "D");
        if (n && tokens) coverage.path.emplace_back(*n, *tokens);
    }
    coverage.path_name = "the best N and D";
    add_figure(to, "coverage", "Sizes of the runs, and the best ones",
               "Beyond the marks, the line is an extrapolation.", std::move(coverage));
}

}  // namespace

std::vector<section> fit_view(const document_parts& d, const view_options& o) {
    section plots{.heading = "The law and the runs"};
    if (o.page) add_plots(d, plots);
    return {std::move(plots), coefficients_of(d), predictions_of(d), far_of(d), left_of(d)};
}

}  // namespace mx::pages
