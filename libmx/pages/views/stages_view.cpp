// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/stages_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "libmx/gemm/accumulators.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

using products::stage_result;
using products::value_errors;
using report::cell;

bool same_case(const stage_result& a, const stage_result& b) {
    return a.stage == b.stage && a.transform == b.transform && a.requantized == b.requantized;
}

std::string group_of(const stage_result& r) {
    const products::stage_row& row = products::stage_rows[r.stage];
    // The recipes without their transform, which has a column.
    const auto recipe = [&](std::size_t i) {
        return products::to_string(
            r.transform.empty() ? r.recipes[i] : products::with_transform(r.recipes[i], "none", 0));
    };
    return fmt::format("{}  {}: {}x{} sums over {} {}; {} by {}, {}", row.title, row.product, r.m,
                       r.n, r.k, row.sum, recipe(0), recipe(1), gemm::to_string(r.model));
}

// The stage's result under the first transform with operands quantized once, for the same model.
const stage_result& plain_of(const std::vector<stage_result>& results, const stage_result& r) {
    for (const stage_result& p : results) {
        if (p.stage == r.stage && !p.requantized) return p;
    }
    return r;
}

// "0.59 helps", no wider than the table's column.
std::string ratio_text(const products::error_ratio& r) {
    const double ratio = r.value;
    const std::string_view word = change_word(r);
    if (ratio < 10) return fmt::format("{:.2f} {}", ratio, word);
    return fmt::format("{:.3g} {}", ratio, word);
}

report::section stage_section(const std::vector<stage_result>& results) {
    report::section t{
        .heading = "Products of the layer",
        .columns = columns_of({"transform", column_of("source", ""), "total_nrmse",
                               "expected_nrmse", "total_sqnr_db", "total_gain", "total_bias_share",
                               column_of("mean", "mean err\n/ RMS", cell::significant, 2),
                               "total_cosine", column_of("ratio", "vs first\nrow", cell::text)}),
        .group_field = "group"};
    const stage_result* last = nullptr;
    for (const stage_result& r : results) {
        if (last != nullptr && same_case(*last, r)) continue;
        last = &r;
        const value_errors& e = r.errors.total;
        const std::string words = r.over_first ? ratio_text(*r.over_first) : "";
        const std::optional<double> mean = e.mean_error();
        const double rms =
            e.counted() == 0 ? 0 : std::sqrt(e.x2 / static_cast<double>(e.counted()));
        t.add_to(group_of(r), r.transform.empty() ? "as given" : r.transform,
                 r.requantized ? "twice" : "once", e.nrmse(), r.expected_nrmse(),
                 sqnr_cell(e.sqnr_db(), e.nrmse() == 0.0), e.gain(), e.bias_share(),
                 mean && rms != 0 ? std::optional(*mean / rms) : std::nullopt, e.cosine(), words);
    }
    return t;
}

// Whether some products have operands that transforms do not affect.
bool given_and_rotated(const std::vector<stage_result>& results) {
    const auto given = [](const stage_result& r) { return r.transform.empty(); };
    return std::ranges::any_of(results, given) && !std::ranges::all_of(results, given);
}

report::section accumulator_section(const std::vector<stage_result>& results) {
    report::section t{.heading = "Error of summing (first transform, operands quantized once)",
                      .columns = summing_columns({column_of("stage", "product"), "model"})};
    t.columns.insert(t.columns.begin() + 3, column_of("equal"));
    for (const stage_result& r : results) {
        if (r.requantized || r.transform != plain_of(results, r).transform) continue;
        const value_errors& a = r.errors.accumulation;
        t.add(products::stage_rows[r.stage].title, gemm::to_string(r.model), a.nrmse(),
              report::share(a.counted() - a.differing, a.counted()), a.max_ulp,
              r.errors.total.nrmse());
    }
    return t;
}

}  // namespace

std::vector<report::column> summing_columns(std::initializer_list<column_of> of) {
    std::vector<report::column> columns(of.begin(), of.end());
    for (const column_of& c :
         {column_of("accumulation_nrmse", "summing:\nerror / norm"),
          column_of("accumulation_max_ulp"), column_of("total_nrmse", "in all:\nerror / norm")}) {
        columns.push_back(c);
    }
    return columns;
}

std::vector<report::section> stages_sections(const std::vector<stage_result>& results) {
    report::section table = stage_section(results);
    table.notes.push_back(
        "error / norm: |product - exact product| / |exact product|; for dX and dW this is zeta. "
        "if independent: the error if those of the operands were independent of each other and of "
        "the data. once, twice: operands quantized from the tensor, or from a copy that was "
        "quantized along its other axis. vs first row: error over that of the product's first row; "
        "same: within 2 % of 1; unsure: within twice its standard error.");
    if (given_and_rotated(results)) {
        table.notes.push_back("as given: operands without blocks, which are not rotated.");
    }
    for (const std::string& lost : stages_not_finite(results)) {
        table.notes.push_back(lost + " They are left out of every figure.");
    }
    report::section verdict{.heading = "Verdict", .notes = stages_verdict(results)};
    return {verdict, table, accumulator_section(results)};
}

}  // namespace mx::pages
