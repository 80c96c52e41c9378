// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/project_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

section work_of(const document_parts& d) {
    return {.heading = "Work of a token, by class",
            .columns =
                columns_of({"class", column_of("forward_flop", "forward\nFLOP", cell::significant),
                            column_of("step_flop", "step\nFLOP", cell::significant),
                            column_of("share", "of all\nFLOP %", cell::share)}),
            .rows = records_in(d.head, "work")};
}

section steps_of(const document_parts& d) {
    section s{.heading = "Speed-up over bf16",
              .columns = columns_of({"configuration", column_of("mlp", "MLP", cell::fixed, 3),
                                     column_of("attention", "attention", cell::fixed, 3),
                                     column_of("rest", "rest", cell::fixed, 3),
                                     column_of("overhead", "over-\nhead", cell::fixed, 3),
                                     column_of("time", "time", cell::fixed, 3),
                                     column_of("speedup", "speed-up", cell::fixed, 3)}),
              .rows = {d.results.begin(), d.results.end()}};
    const auto has = [&](const char* name) {
        return std::ranges::any_of(s.rows,
                                   [&](const record& r) { return number_of(r, name).has_value(); });
    };
    if (has("published")) {
        s.columns.push_back({"published", "given", cell::shortest});
        s.columns.push_back({"percent", "off by\n%", cell::fixed, 1});
        for (record& r : s.rows) {
            const auto difference = number_of(r, "difference");
            const double percent = 100 * difference.value_or(NAN);
            r.emplace_back("percent", report::to_value(std::abs(percent) < 0.05 ? 0 : percent));
        }
    }
    if (has("seconds")) s.columns.push_back({"seconds", "seconds", cell::significant, 4});
    s.notes.push_back("Times are parts of the step in bf16.");
    return s;
}

section bits_of(const document_parts& d) {
    section s{.heading = "Bits and bytes",
              .columns = columns_of(
                  {"configuration", column_of("weight_bits", "weights\nbits", cell::fixed, 2),
                   column_of("activation_bits", "activations\nbits", cell::fixed, 2),
                   column_of("gradient_bits", "gradients\nbits", cell::fixed, 2),
                   column_of("weight_bytes", "weights\nbytes", cell::significant),
                   column_of("activation_bytes", "a token's\nactivations", cell::shortest),
                   column_of("gradient_bytes", "a token's\ngradients", cell::shortest)}),
              .rows = {d.results.begin(), d.results.end()}};
    s.notes.push_back(
        "Scales included. Weights: of all linear layers, gathered once. Activations and "
        "gradients: per token, from one block to the next.");
    return s;
}

section parameters_of(const document_parts& d) {
    section s{.heading = "Fitted parameters",
              .columns = columns_of({"parameter", column_of("value", "value", cell::significant, 5),
                                     column_of("low", "from", cell::significant),
                                     column_of("high", "to", cell::significant)}),
              .rows = records_in(d.tail, "parameters")};
    if (!s.rows.empty()) {
        s.notes.push_back("From and to: over all values that round to the given speed-ups.");
    }
    return s;
}

section sensitivity_of(const document_parts& d) {
    section s{.heading = "Sensitivity", .columns = columns_of({"configuration"}), .folded = false};
    for (const record& r : records_in(d.tail, "sensitivity")) {
        const std::string name = text_of(r, "parameter"), of = text_of(r, "configuration");
        const auto column = std::ranges::find(s.columns, name, &report::column::field);
        if (column == s.columns.end()) s.columns.push_back({name, name, cell::fixed, 3});
        if (s.rows.empty() || text_of(s.rows.back(), "configuration") != of) {
            s.rows.push_back({{"configuration", of}});
        }
        const double percent = 100 * number_of(r, "change").value_or(NAN);
        s.rows.back().emplace_back(name, report::to_value(std::abs(percent) < 5e-4 ? 0 : percent));
    }
    s.notes.push_back(
        "Change of a speed-up in percent if a parameter grows by 1 % of its value; shares grow at "
        "the cost of the rest.");
    return s;
}

void add_time(const document_parts& d, section& to) {
    report::stacked_chart chart;
    chart.parts = {"MLP", "attention", "rest", "overhead"};
    chart.value = axis_of("time, bf16 = 1", "");
    chart.categories.push_back("bf16");
    if (const auto* a = report::member<record>(d.head, "assumptions")) {
        chart.cells.push_back({number_of(*a, "mlp_share"), number_of(*a, "attention_share"),
                               number_of(*a, "rest_share"), 0});
    } else {
        chart.cells.push_back({0, 0, 1, 0});
    }
    for (const record& r : d.results) {
        if (chart.categories.size() == most_figure_recipes) break;
        chart.categories.push_back(text_of(r, "configuration"));
        chart.cells.push_back({number_of(r, "mlp"), number_of(r, "attention"), number_of(r, "rest"),
                               number_of(r, "overhead")});
    }
    add_figure(to, "time", "Time of a step by class of work",
               "The linear layers of the MLP and of attention; the rest stays in bf16.",
               std::move(chart));
}

}  // namespace

std::vector<section> project_view(const document_parts& d, const view_options& o) {
    section plots{.heading = "Where the time goes"};
    if (o.page) add_time(d, plots);
    return {std::move(plots), steps_of(d),      work_of(d),
            bits_of(d),       parameters_of(d), sensitivity_of(d)};
}

}  // namespace mx::pages
