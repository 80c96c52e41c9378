// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/plan_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "libmx/pages/views/figures.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/pages/views/words.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

using report::number_of;
using report::plural;
using report::record;
using report::section;
using report::text_of;

constexpr std::size_t curve_points_shown = 12;
constexpr std::size_t most_bars = 15;
constexpr std::size_t most_points = 400;

// The member `name` of the head, a record.
record part_of(const document_parts& d, std::string_view name) {
    const auto* r = report::member<record>(d.head, name);
    return r == nullptr ? record() : *r;
}

// "exact" if the error is zero and has no logarithm.
record shown(record r) {
    if (!number_of(r, "sqnr_db")) show(r, "sqnr_db", "exact");
    return r;
}

section use_section(const document_parts& d) {
    const std::uint64_t tensors = count_of(d.head, "tensors");
    section s{.heading = fmt::format("Recipes of {} that {} quantized", plural(tensors, "tensor"),
                                     tensors == 1 ? "is" : "are"),
              .columns = columns_of({"recipe", "tensors", "element_share",
                                     column_of("bits_per_element", 3), "sqnr_db", "error_share"})};
    for (record& r : records_in(d.head, "recipes")) s.rows.push_back(shown(std::move(r)));
    return s;
}

section uniform_section(const document_parts& d) {
    const bool budget = number_of(part_of(d, "goal"), "bits_per_element").has_value();
    section s{.heading = "One recipe for all that is quantized",
              .columns = columns_of(
                  {"recipe", column_of("bits_per_element", 3), "sqnr_db",
                   column_of("fits", budget ? "within the\nbudget" : "above the\nfloor")})};
    for (record& r : records_in(d.tail, "uniform")) {
        const bool within = is_true(r, "within");
        record row = shown(std::move(r));
        row.emplace_back("fits", text(within ? "yes" : "no"));
        s.rows.push_back(std::move(row));
    }
    if (s.rows.empty()) return s;
    record own = shown(part_of(d, "totals"));
    own.emplace_back("recipe", text("(the plan)"));
    own.emplace_back("fits", text("yes"));
    s.rows.push_back(std::move(own));
    return s;
}

section curve_section(const document_parts& d) {
    const std::vector<record> curve = records_in(d.tail, "curve");
    if (curve.size() < 2) return {};
    section s{.columns = columns_of({column_of("bits_per_element", 3), "sqnr_db"})};
    // The points nearest to equally spaced numbers of bits.
    const auto bits = [&](std::size_t i) { return number_of(curve[i], "bits").value_or(0); };
    const double first = bits(0);
    const double last = bits(curve.size() - 1);
    const std::size_t count = std::min(curve_points_shown, curve.size());
    std::size_t at = 0;
    for (std::size_t k = 0; k < count; ++k) {
        const double want = count == 1 ? first
                                       : first + (last - first) * static_cast<double>(k) /
                                                     static_cast<double>(count - 1);
        const std::size_t from = at;
        while (at + 1 < curve.size() &&
               std::abs(bits(at + 1) - want) <= std::abs(bits(at) - want)) {
            ++at;
        }
        if (count == curve.size()) at = k;
        if (k == 0 || at != from) s.rows.push_back(shown(curve[at]));
    }
    s.heading = s.rows.size() == curve.size()
                    ? "Bits against SQNR: the best mixtures"
                    : fmt::format("Bits against SQNR: {} of {} best mixtures (--json: all)",
                                  s.rows.size(), report::grouped(static_cast<long>(curve.size())));
    return s;
}

// By the largest error: on a page all tensors that are quantized, else those with another recipe
// than most elements. Those that are kept follow them in the results.
section tensor_section(const document_parts& d, const view_options& o) {
    const std::uint64_t quantized = count_of(d.head, "tensors");
    const std::vector<record> recipes = records_in(d.head, "recipes");
    const std::string most_common = recipes.empty() ? "" : text_of(recipes.front(), "recipe");
    std::vector<std::pair<double, std::size_t>> places;
    for (std::size_t i = 0; i < std::min<std::size_t>(quantized, d.results.size()); ++i) {
        const record r = d.results[i];
        if (!o.page && text_of(r, "recipe") == most_common) continue;
        places.emplace_back(number_of(r, "squared_error").value_or(0), i);
    }
    std::ranges::stable_sort(places,
                             [](const auto& a, const auto& b) { return a.first > b.first; });
    section s{
        .heading = o.page ? "Tensors, largest error first"
                          : fmt::format("{} with another recipe than {}",
                                        plural(places.size(), "tensor"), most_common),
        .columns = columns_of({"tensor", "recipe", "bits_per_element", "sqnr_db", "error_share"})};
    const std::size_t most = rows_shown(o);
    if (places.size() > most) {
        s.heading += o.page ? fmt::format(": {} of {}", most, places.size())
                            : fmt::format(": the {} with the largest error (--top)", most);
    }
    for (std::size_t k = 0; k < std::min(most, places.size()); ++k) {
        s.rows.push_back(shown(d.results[places[k].second]));
    }
    return s;
}

// By role and reason, largest number of bits first.
section kept_section(const document_parts& d) {
    struct size {
        std::uint64_t tensors = 0, bits = 0;
    };
    std::map<std::pair<std::string, std::string>, size> groups;
    for (std::size_t i = count_of(d.head, "tensors"); i < d.results.size(); ++i) {
        const record r = d.results[i];
        size& g = groups[{text_of(r, "role"), text_of(r, "reason")}];
        ++g.tensors;
        g.bits += count_of(r, "bits");
    }
    std::vector<std::pair<std::pair<std::string, std::string>, size>> sorted(groups.begin(),
                                                                             groups.end());
    std::ranges::stable_sort(
        sorted, [](const auto& a, const auto& b) { return a.second.bits > b.second.bits; });
    section s{.heading = "Kept as stored",
              .columns = columns_of({column_of("role", "role"), "tensors", "bytes", "reason"})};
    for (const auto& [of, g] : sorted) s.add(of.first, g.tensors, g.bits / 8, of.second);
    return s;
}

void add_trade(const document_parts& d, section& to) {
    const auto* totals = report::member<record>(d.head, "totals");
    const auto* goal = report::member<record>(d.head, "goal");
    const double elements = number_or(d.head, "elements", NAN);
    report::scatter_chart chart;
    chart.x =
        axis_of(std::isfinite(elements) && elements >= 0
                    ? fmt::format("bits per element, 1 bit = {}", bytes_text(counted(elements / 8)))
                    : std::string("bits per element"),
                "");
    chart.y = axis_of("SQNR", "dB");
    const auto add = [&](const record& r, const std::string& name, const char* group) {
        const auto sqnr = number_of(r, "sqnr_db");
        if (sqnr)
            chart.marks.push_back(
                {{number_or(r, "bits_per_element", NAN), sqnr, name}, group, true});
    };
    if (totals != nullptr) add(*totals, "the plan", "the plan");
    for (const record& r : records_in(d.tail, "uniform")) {
        add(r, text_of(r, "recipe"), "one recipe for all");
    }
    const std::vector<record> curve = records_in(d.tail, "curve");
    const std::size_t stride = curve.size() / most_points + 1;
    for (std::size_t i = 0; i < curve.size(); i += stride) {
        const auto sqnr = number_of(curve[i], "sqnr_db");
        if (sqnr) chart.path.emplace_back(number_or(curve[i], "bits_per_element", NAN), *sqnr);
    }
    chart.path_name = "best mixtures";
    if (goal != nullptr) {
        const auto floor = number_of(*goal, "sqnr_db");
        const auto bits = number_of(*goal, "bits_per_element");
        if (floor) chart.levels.push_back({"floor", *floor});
        if (bits) chart.zones.push_back({"budget", *bits, *bits});
    }
    if (!chart.marks.empty()) {
        add_figure(to, "trade", "Bits against SQNR of all tensors together",
                   "Squared errors without normalisation. No mixture of these recipes is above "
                   "the line.",
                   std::move(chart));
    }
}

// The tensors with the largest error as a waterfall.
void add_error_by_tensor(const report::record_list& results, section& to) {
    struct bar {
        std::string tensor;
        double error;
    };
    std::vector<bar> bars;
    for (const record& r : results) {
        const auto error = number_of(r, "error_share");
        if (error && *error > 0) bars.push_back({text_of(r, "tensor"), *error});
    }
    if (bars.size() < 2) return;
    std::ranges::stable_sort(bars, std::greater{}, &bar::error);
    report::stacked_chart chart;
    chart.waterfall = true;
    chart.parts = {"squared error"};
    chart.value = axis_of("share of the squared error, as stored", "", false, true);
    double others = 0;
    for (std::size_t i = 0; i < bars.size(); ++i) {
        if (i >= most_bars) {
            others += bars[i].error;
            continue;
        }
        chart.categories.push_back(bars[i].tensor);
        chart.cells.push_back({bars[i].error});
    }
    chart.categories = labels_of(chart.categories);
    if (bars.size() > most_bars) {
        chart.categories.push_back(fmt::format("{} others", bars.size() - most_bars));
        chart.cells.push_back({others});
    }
    add_figure(to, "waterfall", "Error by tensor under the plan",
               "Largest first; each bar begins where the previous one ends. Tensors of large "
               "values dominate, because errors are those of the stored values.",
               std::move(chart));
}

}  // namespace

std::vector<section> plan_view(const document_parts& d, const view_options& o) {
    section trade, errors{.heading = "Error by tensor"};
    if (o.page) {
        add_trade(d, trade);
        add_error_by_tensor(d.results, errors);
    }
    return {std::move(trade),
            std::move(errors),
            use_section(d),
            uniform_section(d),
            o.page ? section() : curve_section(d),  // on a page it is a figure
            tensor_section(d, o),
            kept_section(d),
            left_out_of(d.tail, o)};
}

}  // namespace mx::pages
