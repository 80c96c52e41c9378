// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/gemm_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "libmx/base/decibels.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

using products::value_errors;
using report::cell;

report::value equal_share(const value_errors& e) {
    return report::share(e.counted() - e.differing, e.counted());
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

report::section model_section(const products::gemm_study& s) {
    report::section t{.heading = "Error by accumulator",
                      .columns = model_columns(
                          {column_of("forms", "operands as"), "accumulation_nrmse", "equal"})};
    for (const products::model_product& p : s.products) {
        const value_errors& a = p.errors.accumulation;
        const value_errors& e = p.errors.total;
        t.add(gemm::to_string(p.model),
              p.form_a == p.form_b ? p.form_a : p.form_a + " x " + p.form_b, a.nrmse(),
              equal_share(a), sqnr_cell(e.sqnr_db(), e.nrmse() == 0.0), e.nrmse(), e.gain());
        if (p.inexact_a + p.inexact_b != 0) {
            t.notes.push_back(fmt::format(
                "{} does not take these codes: {} of A and {} of B changed when they were rounded "
                "to its format.",
                gemm::to_string(p.model), report::plural(p.inexact_a, "value"),
                report::plural(p.inexact_b, "value")));
        }
        if (e.non_finite != 0) {
            t.notes.push_back(fmt::format("{}: {} not finite, left out of the figures.",
                                          gemm::to_string(p.model),
                                          report::plural(e.non_finite, "element")));
        }
    }
    t.notes.push_back(
        "summing: against the exact product of the same operands, rounded once. in all: against "
        "the exact product of the values before quantization.");
    return t;
}

report::section ulp_section(const products::gemm_study& s) {
    report::section t{.heading = "Error of summing in ulps of float32, % of the elements",
                      .columns = columns_of({"model"})};
    for (const ulp_column& c : ulp_columns) t.columns.push_back({c.field, c.title, cell::share});
    t.columns.push_back({"max_ulp", "most", cell::integer});
    for (const products::model_product& p : s.products) {
        const value_errors& e = p.errors.accumulation;
        report::record row{{"model", gemm::to_string(p.model)}};
        for (std::size_t i = 0; i < ulp_columns.size(); ++i) {
            const auto from = e.ulps.begin() + static_cast<std::ptrdiff_t>(ulp_columns[i].first);
            const auto to =
                i + 1 < ulp_columns.size()
                    ? e.ulps.begin() + static_cast<std::ptrdiff_t>(ulp_columns[i + 1].first)
                    : e.ulps.end();
            row.emplace_back(
                ulp_columns[i].field,
                report::share(std::accumulate(from, to, std::uint64_t{0}), e.counted()));
        }
        row.emplace_back("max_ulp", report::tally(e.max_ulp));
        t.rows.push_back(std::move(row));
    }
    return t;
}

report::section growth_section(const products::gemm_study& s) {
    report::section t{
        .heading = "Growth with K",
        .columns =
            columns_of({"model", column_of("k", "K", cell::integer), "accumulation_nrmse",
                        "accumulation_max_ulp",
                        column_of("accumulation_mean_error", "mean\nerror", cell::significant, 3),
                        column_of("total_nrmse", "in all:\nerror / RMS", cell::significant, 3),
                        "total_gain"})};
    for (std::size_t i = 0; i < s.products.size(); ++i) {
        for (const products::growth_point& p : s.growth) {
            if (p.product == i) t.rows.push_back(products::growth_record(s, p));
        }
    }
    return t;
}

// The error of quantization, the error that summation adds, and the differences between models.
report::section verdict_section(const products::gemm_study& s) {
    report::section t{.heading = "Verdict"};
    for (const products::model_product& p : s.products) {
        const double error = p.errors.total.nrmse().value_or(0);
        const double summing = p.errors.accumulation.nrmse().value_or(0);
        const std::string adds = summing > 0 ? fmt::format("summing alone gives {:.3g}", summing)
                                             : std::string("summing is exact");
        t.notes.push_back(
            error > 0 ? fmt::format("- {}: the error is {:.3g} of the product ({} dB); {}.",
                                    gemm::to_string(p.model), error,
                                    report::fixed_text(base::decibels_of_root(error), 2), adds)
                      : fmt::format("- {}: exact.", gemm::to_string(p.model)));
    }
    const products::model_difference* most = nullptr;
    for (const products::model_difference& d : s.differences) {
        if (most == nullptr || d.errors.differing > most->errors.differing) most = &d;
    }
    if (most != nullptr && most->errors.differing == 0) {
        t.notes.push_back("- All models agree in every element.");
    } else if (most != nullptr) {
        const report::record r = products::difference_record(s, *most);
        t.notes.push_back(fmt::format(
            "- {} and {} differ most: in {} % of the elements, by at most {} ulps of float32.",
            report::text_of(r, "model"), report::text_of(r, "other"),
            report::percent_text(report::number_of(r, "differing_share").value_or(0)),
            report::grouped(report::whole(report::number_of(r, "max_ulp").value_or(0)))));
    }
    return t;
}

}  // namespace

std::vector<report::column> model_columns(std::initializer_list<column_of> of) {
    std::vector<report::column> columns{column_of("model")};
    columns.insert(columns.end(), of.begin(), of.end());
    for (const column_of& c : {column_of("total_sqnr_db", "in all:\nSQNR dB"),
                               column_of("total_nrmse", "error\n/ RMS"), column_of("total_gain")}) {
        columns.push_back(c);
    }
    return columns;
}

report::section operand_section(std::string heading, std::string_view names,
                                std::vector<report::record> operands) {
    report::section t{
        .heading = std::move(heading),
        .columns = columns_of({"operand", "tensor", column_of("shape", "stored as"), "recipe",
                               column_of("nrmse", "error\n/ RMS"), "sqnr_db", "gain"}),
        .rows = std::move(operands)};
    for (std::size_t i = 0; i < t.rows.size(); ++i) {
        t.rows[i].emplace_back("operand", std::string(1, names[i]));
    }
    return t;
}

report::section difference_section(std::vector<report::record> differences) {
    return {.heading = "Differences between models",
            .columns = columns_of({"model", "other", "differing_share", "max_ulp",
                                   column_of("nrmse", "difference\n/ RMS")}),
            .rows = std::move(differences)};
}

std::vector<report::section> gemm_sections(const products::gemm_study& s,
                                           const std::vector<report::record>& operands) {
    std::vector<report::section> sections{
        verdict_section(s),
        operand_section(fmt::format("Product of {}x{} by {}x{}", s.m, s.k, s.k, s.n), "AB",
                        operands),
        model_section(s), ulp_section(s)};
    for (report::record& r : sections[1].rows) {
        if (report::number_of(r, "nrmse") == 0.0) show(r, "sqnr_db", "exact");
    }
    if (!s.differences.empty()) {
        std::vector<report::record> rows;
        for (const auto& d : s.differences) rows.push_back(products::difference_record(s, d));
        sections.push_back(difference_section(std::move(rows)));
    }
    if (!s.growth.empty()) sections.push_back(growth_section(s));
    return sections;
}

}  // namespace mx::pages
