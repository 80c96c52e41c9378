// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/gemm_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

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

constexpr std::size_t most_panels = 8;

section operand_section(const document_parts& d) {
    section t{.columns = columns_of({"operand", "tensor", column_of("shape", "stored as"), "recipe",
                                     column_of("nrmse", "error\n/ RMS"), "sqnr_db", "gain"})};
    if (!d.results.empty()) {
        const record r = d.results.front();
        t.heading = fmt::format("Product of {0}x{2} by {2}x{1}", count_of(r, "m"), count_of(r, "n"),
                                count_of(r, "k"));
    }
    for (const char* name : {"a", "b"}) {
        const auto* operand = report::member<record>(d.head, name);
        if (operand == nullptr) continue;
        record row = *operand;
        if (number_of(row, "nrmse") == 0.0) show(row, "sqnr_db", "exact");
        row.emplace_back("operand", std::string(name == std::string_view("a") ? "A" : "B"));
        t.rows.push_back(std::move(row));
    }
    return t;
}

section model_section(const report::record_list& results) {
    section t{
        .heading = "Error by accumulator",
        .columns = columns_of({"model", column_of("forms", "operands as"), "accumulation_nrmse",
                               "equal", column_of("total_sqnr_db", "in all:\nSQNR dB"),
                               column_of("total_nrmse", "error\n/ RMS"), "total_gain"})};
    for (record r : results) {
        const std::string model = text_of(r, "model"), a = text_of(r, "form_a"),
                          b = text_of(r, "form_b");
        if (count_of(r, "inexact_a") + count_of(r, "inexact_b") != 0) {
            t.notes.push_back(fmt::format(
                "{} does not take these codes: {} of A and {} of B changed when they were rounded "
                "to its format.",
                model, report::plural(count_of(r, "inexact_a"), "value"),
                report::plural(count_of(r, "inexact_b"), "value")));
        }
        if (const std::uint64_t lost = count_of(r, "total_non_finite"); lost != 0) {
            t.notes.push_back(fmt::format("{}: {} not finite, left out of the figures.", model,
                                          report::plural(lost, "element")));
        }
        r.emplace_back("forms", a == b ? a : a + " x " + b);
        r.emplace_back("equal", exact_share(r));
        if (number_of(r, "total_nrmse") == 0.0) show(r, "total_sqnr_db", "exact");
        t.rows.push_back(std::move(r));
    }
    t.notes.push_back(
        "summing: against the exact product of the same operands, rounded once. in all: against "
        "the exact product of the values before quantization.");
    return t;
}

// Displayed bins of the histogram: from `first` to before the next bin's.
struct ulp_column {
    const char* field;
    const char* title;
    std::size_t first;
};
constexpr std::array ulp_columns{
    ulp_column{"u0", "0", 0},      ulp_column{"u1", "1", 1},      ulp_column{"u2", "2-3", 2},
    ulp_column{"u4", "4-7", 3},    ulp_column{"u8", "8-15", 4},   ulp_column{"u16", "16-63", 5},
    ulp_column{"u64", "64-1k", 7}, ulp_column{"more", "1k-", 11},
};

section ulp_section(const report::record_list& results) {
    section t{.heading = "Error of summing in ulps of float32, % of the elements",
              .columns = columns_of({"model"})};
    for (const ulp_column& c : ulp_columns) t.columns.push_back({c.field, c.title, cell::share});
    t.columns.push_back(column_of("accumulation_max_ulp", "most"));
    for (record r : results) {
        std::array<std::uint64_t, ulp_columns.size()> sums{};
        if (const auto* bins = report::member<report::list>(r, "accumulation_ulp_histogram")) {
            for (std::size_t i = 0, c = 0; i < bins->size(); ++i) {
                while (c + 1 < ulp_columns.size() && ulp_columns[c + 1].first <= i) ++c;
                sums[c] += counted(number_of((*bins)[i]).value_or(0));
            }
        }
        const std::uint64_t finite =
            count_of(r, "accumulation_elements") - count_of(r, "accumulation_non_finite");
        for (std::size_t i = 0; i < sums.size(); ++i) {
            r.emplace_back(ulp_columns[i].field, report::share(sums[i], finite));
        }
        t.rows.push_back(std::move(r));
    }
    return t;
}

section difference_section(const record& tail) {
    return {.heading = "Differences between models",
            .columns = columns_of({"model", "other", "differing_share", "max_ulp",
                                   column_of("nrmse", "difference\n/ RMS")}),
            .rows = records_in(tail, "differences")};
}

// By model, then by k.
section growth_section(const document_parts& d) {
    section t{.heading = "Growth with K",
              .columns = columns_of(
                  {"model", column_of("k", "K", cell::integer), "accumulation_nrmse",
                   "accumulation_max_ulp",
                   column_of("accumulation_mean_error", "mean\nerror", cell::significant, 3),
                   column_of("total_nrmse", "in all:\nerror / RMS", cell::significant, 3),
                   "total_gain"})};
    const std::vector<record> points = records_in(d.tail, "growth");
    for (const record& product : d.results) {
        std::ranges::copy_if(points, std::back_inserter(t.rows), [&](const record& p) {
            return text_of(p, "model") == text_of(product, "model");
        });
    }
    return t;
}

void add_ulps(const report::record_list& results, section& to) {
    report::bar_chart ulps;
    ulps.x = axis_of("distance from the exact sum, log2 of float32 neighbours", "");
    ulps.y = axis_of("elements", "", false, true);
    for (const record& r : results) {
        const auto* bins = report::member<report::list>(r, "accumulation_ulp_histogram");
        if (bins == nullptr || ulps.panels.size() == most_panels) continue;
        report::bar_chart::series s;
        s.name = text_of(r, "model");
        for (std::size_t i = 0; i < bins->size(); ++i) {
            s.edges.push_back(static_cast<double>(i) - 0.5);
            s.counts.push_back(number_of((*bins)[i]).value_or(0));
            s.labels.push_back(i == 0 ? "equal" : fmt::format("2^{} to 2^{}", i - 1, i));
        }
        s.edges.push_back(static_cast<double>(bins->size()) - 0.5);
        ulps.panels.push_back(std::move(s));
    }
    if (!ulps.panels.empty()) {
        add_figure(to, "ulps", "Elements by distance from the exact sum",
                   "Summing alone: against the exact product of the same operands. On the left, "
                   "elements that are equal.",
                   std::move(ulps));
    }
}

void add_growth(const std::vector<record>& points, section& to) {
    report::line_chart growth;
    growth.x = axis_of("K", "", true);
    growth.y = axis_of("summing: error over RMS", "", true);
    for (const record& r : points) {
        const std::string model = text_of(r, "model");
        auto at = std::ranges::find(growth.lines, model, &report::line_chart::line::name);
        if (at == growth.lines.end()) {
            if (growth.lines.size() == most_lines) continue;
            at = growth.lines.insert(at, {model, {}});
        }
        at->points.push_back({number_or(r, "k", NAN), number_of(r, "accumulation_nrmse"), ""});
    }
    if (!growth.lines.empty()) {
        add_figure(to, "growth", "Error of summing by K",
                   "Against the exact product of the same operands.", std::move(growth));
    }
}

}  // namespace

std::vector<section> gemm_view(const document_parts& d, const view_options& o) {
    section models = model_section(d.results), growth = growth_section(d);
    if (o.page) {
        add_ulps(d.results, models);
        add_growth(growth.rows, growth);
    }
    return {operand_section(d), std::move(models), ulp_section(d.results),
            difference_section(d.tail), std::move(growth)};
}

}  // namespace mx::pages
