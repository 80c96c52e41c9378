// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/placement_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::record;
using report::section;
using report::text_of;

constexpr std::size_t most_curve_points = 12;  // rows of mixtures

// Of a list of records, every nth, so that `most` remain.
std::vector<record> some_of(const std::vector<record>& all, std::size_t most) {
    if (all.size() <= most) return all;
    std::vector<record> some;
    for (std::size_t i = 0; i < most; ++i) some.push_back(all[i * (all.size() - 1) / (most - 1)]);
    return some;
}

void add_bits_figure(section& s, const record& head, const record& tail) {
    report::scatter_chart chart;
    chart.x.title = "Bits an element";
    chart.y.title = "Divergence, predicted";
    chart.y.unit = "nats";
    const auto point = [](const record& r, const std::string& name) {
        return report::point{report::number_of(r, "bits_per_element").value_or(NAN),
                             report::number_of(r, "divergence").value_or(NAN), name};
    };
    chart.marks.push_back({point(head, "the plan"), "the plan", true});
    for (const record& r : records_in(tail, "uniform")) {
        chart.marks.push_back({point(r, text_of(r, "recipe")), "one recipe for all", true});
    }
    for (const record& r : records_in(tail, "curve")) {
        const report::point p = point(r, "");
        if (p.y) chart.path.emplace_back(p.x, *p.y);
    }
    chart.path_name = "best mixtures";
    s.figures.push_back({"trade", "Bits against predicted divergence",
                         "No mixture of these recipes has a smaller sum than the line.",
                         std::move(chart), "", "", false});
}

}  // namespace

std::vector<section> placement_view(const document_parts& d, const view_options& o) {
    const record& head = d.head;
    const record& tail = d.tail;
    std::vector<section> all;
    section uniform{.heading = "One recipe for all places",
                    .columns = columns_of({"recipe", column_of("bits_per_element", 3), "divergence",
                                           column_of("measured", "measured", cell::significant, 3),
                                           column_of("fits", "within the\nbudget")})};
    for (record r : records_in(tail, "uniform")) {
        r.emplace_back("fits", text(is_true(r, "within") ? "yes" : "no"));
        uniform.rows.push_back(std::move(r));
    }
    uniform.rows.push_back({{"recipe", text("(the plan)")},
                            {"bits_per_element", report::value_of(head, "bits_per_element")},
                            {"divergence", report::value_of(head, "divergence")},
                            {"fits", text("yes")}});
    add_bits_figure(uniform, head, tail);
    all.push_back(std::move(uniform));

    section curve{.heading = "Bits against divergence: best mixtures",
                  .columns = columns_of({column_of("bits_per_element", 3), "divergence"})};
    for (record& r : some_of(records_in(tail, "curve"), most_curve_points)) {
        curve.rows.push_back(std::move(r));
    }
    all.push_back(std::move(curve));

    std::vector<record> places = records_in(tail, "places");
    std::ranges::stable_sort(places, std::greater{}, [](const record& r) {
        return report::number_of(r, "divergence").value_or(0);
    });
    section chosen{.heading = "Recipes by place, the largest divergence first",
                   .columns = columns_of({column_of("place", "place", cell::name), "recipe",
                                          "elements", column_of("divergence", "alone, nats")})};
    fill(chosen, std::move(places), o);
    all.push_back(std::move(chosen));
    return all;
}

}  // namespace mx::pages
