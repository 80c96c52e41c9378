// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/layer_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"
#include "libmx/pages/views/figures.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/studies/products/stages.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::number_of;
using report::record;
using report::section;
using report::text_of;

bool twice(const record& r) { return text_of(r, "source") == "requantized"; }

std::string transform_of(const record& r) {
    const std::string name = text_of(r, "transform");
    return name.empty() ? "as given" : name;
}

const products::stage_row* stage_of(const record& r) {
    const auto at =
        std::ranges::find(products::stage_rows, text_of(r, "stage"), &products::stage_row::name);
    return at == products::stage_rows.end() ? nullptr : &*at;
}

// The recipe without its transform, which has a column.
std::string recipe_text(const record& r, std::string_view member) {
    const std::string text = text_of(r, member);
    if (text_of(r, "transform").empty()) return text;
    try {
        return products::to_string(
            products::with_transform(products::parse_operand_recipe(text), "none", 0));
    } catch (const base::error&) {
        return text;  // of a file that another program wrote
    }
}

// "Fprop  Y = X W^T: 128x64 sums over 32 inputs; mxfp4 by mxfp4, exact"
std::string group_of(const record& r) {
    const products::stage_row* row = stage_of(r);
    if (row == nullptr) return text_of(r, "stage");
    return fmt::format("{}  {}: {}x{} sums over {} {}; {} by {}, {}", row->title, row->product,
                       count_of(r, "m"), count_of(r, "n"), count_of(r, "k"), row->sum,
                       recipe_text(r, "recipe_a"), recipe_text(r, "recipe_b"), text_of(r, "model"));
}

// "0.59 helps", no wider than the table's column.
std::string ratio_text(const record& r) {
    const std::optional<double> ratio = number_of(r, "over_first");
    if (!ratio) return {};
    const std::string_view word =
        products::change_word({*ratio, number_of(r, "over_first_standard_error")});
    if (*ratio < 10) return fmt::format("{:.2f} {}", *ratio, word);
    return fmt::format("{:.3g} {}", *ratio, word);
}

// The mean error over the RMS of the exact product, which is rmse / nrmse.
report::value mean_over_rms(const record& r) {
    const auto mean = number_of(r, "total_mean_error"), rmse = number_of(r, "total_rmse"),
               nrmse = number_of(r, "total_nrmse");
    if (!mean || !rmse || !nrmse) return undefined();
    return *rmse == 0 ? 0.0 : *mean * *nrmse / *rmse;
}

// The first model's results.
std::vector<record> of_first_models(const report::record_list& results) {
    std::vector<record> first;
    for (record r : results) {
        const auto same = [&](const char* name) {
            return text_of(r, name) == text_of(first.back(), name);
        };
        if (!first.empty() && same("stage") && same("transform") && same("source")) continue;
        first.push_back(std::move(r));
    }
    return first;
}

section stage_section(const report::record_list& results) {
    section t{
        .heading = "Products of the layer",
        .columns = columns_of({"transform", column_of("source", ""), "total_nrmse",
                               "expected_nrmse", "total_sqnr_db", "total_gain", "total_bias_share",
                               column_of("mean", "mean err\n/ RMS", cell::significant, 2),
                               "total_cosine", column_of("ratio", "vs first\nrow", cell::text)}),
        .group_field = "group"};
    bool given = false, rotated = false, finite = true;
    for (record r : of_first_models(results)) {
        (text_of(r, "transform").empty() ? given : rotated) = true;
        finite = finite && count_of(r, "total_non_finite") == 0;
        r.emplace_back("group", group_of(r));
        r.emplace_back("mean", mean_over_rms(r));
        r.emplace_back("ratio", ratio_text(r));
        show(r, "transform", transform_of(r));
        show(r, "source", twice(r) ? "twice" : "once");
        if (number_of(r, "total_nrmse") == 0.0) show(r, "total_sqnr_db", "exact");
        t.rows.push_back(std::move(r));
    }
    t.notes.push_back(
        "error / norm: |product - exact product| / |exact product|; for dX and dW this is zeta. "
        "if independent: the error if those of the operands were independent of each other and of "
        "the data. once, twice: operands quantized from the tensor, or from a copy that was "
        "quantized along its other axis. vs first row: error over that of the product's first row; "
        "same: within 2 % of 1; unsure: within twice its standard error.");
    if (given && rotated) {
        t.notes.push_back("as given: operands without blocks, which are not rotated.");
    }
    if (!finite) t.notes.push_back("Elements that are not finite are left out of every figure.");
    return t;
}

// Results with the transform of their stage's first result, operands quantized once.
section accumulator_section(const report::record_list& results) {
    section t{.heading = "Error of summing (first transform, operands quantized once)",
              .columns = columns_of({column_of("title", "product"), "model",
                                     column_of("accumulation_nrmse", "summing:\nerror / norm"),
                                     "equal", "accumulation_max_ulp",
                                     column_of("total_nrmse", "in all:\nerror / norm")})};
    std::map<std::string, std::string> first;
    for (record r : results) {
        if (twice(r)) continue;
        const std::string transform = text_of(r, "transform");
        if (first.emplace(text_of(r, "stage"), transform).first->second != transform) continue;
        r.emplace_back("equal", exact_share(r));
        const products::stage_row* row = stage_of(r);
        r.emplace_back("title", text(row == nullptr ? text_of(r, "stage") : row->title));
        t.rows.push_back(std::move(r));
    }
    return t;
}

void add_maps(const report::record_list& results, section& to) {
    report::heat_map map;
    map.value = axis_of("error over the norm of the exact product", "");
    report::heat_map gains;
    gains.value = axis_of("bias: distance of the gain from 1", "", false, true);
    const auto place = [](std::vector<std::string>& names, const std::string& name) {
        const auto at = std::ranges::find(names, name);
        const auto index = static_cast<std::size_t>(at - names.begin());
        if (at == names.end()) names.push_back(name);
        return index;
    };
    const auto put_at = [](report::heat_map& m, std::size_t row, std::size_t column, auto v) {
        m.cells.resize(std::max(m.cells.size(), row + 1));
        for (auto& cells : m.cells) cells.resize(std::max(cells.size(), column + 1));
        m.cells[row][column] = v;
    };
    for (const record& r : of_first_models(results)) {
        const std::size_t row = place(map.rows, text_of(r, "stage"));
        const std::size_t column =
            place(map.columns, transform_of(r) + (twice(r) ? ", twice" : ""));
        put_at(map, row, column, number_of(r, "total_nrmse"));
        const auto gain = number_of(r, "total_gain");
        put_at(gains, row, column, gain ? std::optional(std::abs(*gain - 1)) : std::nullopt);
    }
    gains.rows = map.rows;
    gains.columns = map.columns;
    if (map.rows.empty()) return;
    add_figure(to, "stages-error", "Error by stage and transform",
               "twice: operands quantized from copies that were quantized along the other axis.",
               std::move(map));
    add_figure(to, "stages-bias", "Bias by stage and transform",
               "A common gain is an error that averaging over steps does not remove.",
               std::move(gains));
}

// Of a dump, a row for each layer: the first result of each stage.
section layer_section(const report::record_list& results) {
    section t{.columns = columns_of({"layer", column_of("shape", "shape", cell::text)})};
    for (const products::stage_row& row : products::stage_rows) {
        t.columns.push_back({std::string(row.name), fmt::format("{}\nerror / norm", row.title),
                             cell::significant, 3});
        t.columns.push_back(
            {fmt::format("{}_gain", row.name), fmt::format("{}\ngain", row.title), cell::fixed, 4});
    }
    std::vector<std::string> made;  // operands and model of the products
    for (const record& r : results) {
        const std::string layer = text_of(r, "layer"), stage = text_of(r, "stage");
        if (t.rows.empty() || text_of(t.rows.back(), "layer") != layer) {
            t.rows.push_back({{"layer", layer},
                              {"shape", fmt::format("{}x{}x{}", count_of(r, "m"), count_of(r, "k"),
                                                    count_of(r, "n"))}});
        }
        record& line = t.rows.back();
        if (report::find(line, stage) != nullptr) continue;
        line.emplace_back(stage, report::value_of(r, "total_nrmse"));
        line.emplace_back(stage + "_gain", report::value_of(r, "total_gain"));
        const std::string by = fmt::format("{} by {}, {}", text_of(r, "recipe_a"),
                                           text_of(r, "recipe_b"), text_of(r, "model"));
        if (std::ranges::find(made, by) == made.end()) made.push_back(by);
    }
    t.notes.push_back(fmt::format("Products: {}.", base::joined(made, "; ")));
    t.notes.push_back(
        "shape: tokens x in x out. error / norm: |product - exact product| / |exact product| with "
        "operands quantized once, under the first transform; --json has the other transforms, "
        "sources and models.");
    return t;
}

}  // namespace

std::vector<section> layer_view(const document_parts& d, const view_options& o) {
    if (d.results.empty()) return {};
    const record first = d.results.front();
    if (report::find(first, "layer") != nullptr) return {layer_section(d.results)};
    section stages = stage_section(d.results);
    if (o.page) add_maps(d.results, stages);
    return {std::move(stages), accumulator_section(d.results)};
}

}  // namespace mx::pages
