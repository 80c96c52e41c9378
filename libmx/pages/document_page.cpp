// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/document_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "libmx/pages/eval_page.hpp"
#include "libmx/pages/figure_parts.hpp"
#include "libmx/pages/fit_page.hpp"
#include "libmx/pages/project_page.hpp"
#include "libmx/pages/runs_page.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/pages/study_page.hpp"
#include "libmx/pages/views/changes_view.hpp"
#include "libmx/pages/views/gemm_view.hpp"
#include "libmx/pages/views/placement_view.hpp"
#include "libmx/pages/views/stages_view.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/pages/words.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::number_of;
using report::record;
using report::section;
using report::text_of;

constexpr std::size_t most_listed_rows = 100;
constexpr std::size_t most_page_bars = 15;
constexpr std::size_t most_page_marks = 600;
constexpr std::size_t most_page_points = 400;
constexpr std::size_t most_page_panels = 8;
constexpr std::size_t most_page_named = 6;

// The first rows of a list, with a note saying so.
void fill(section& s, const std::vector<record>& rows, const std::string& what) {
    s.rows.assign(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(
                                                   std::min(rows.size(), most_listed_rows)));
    if (rows.size() > most_listed_rows) {
        s.notes.push_back(fmt::format("The first {} of {}; --json has all.", most_listed_rows,
                                      report::plural(rows.size(), what)));
    }
}

section left_out_of(const record& tail) {
    section s = left_out_section();
    fill(s, records_in(tail, "left_out"), "tensor");
    return s;
}

double number(const record& r, std::string_view name) { return number_of(r, name).value_or(NAN); }

// The results with the largest `by` as a waterfall, largest first.
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
        if (i >= most_page_bars) {
            others += bars[i].error;
            continue;
        }
        chart.categories.push_back(bars[i].tensor);
        chart.cells.push_back({bars[i].error});
    }
    chart.categories = labels_of(chart.categories);
    if (bars.size() > most_page_bars) {
        chart.categories.push_back(fmt::format("{} others", bars.size() - most_page_bars));
        chart.cells.push_back({others});
    }
    add_figure(to, "waterfall", "Error by tensor under the plan",
               "Largest first; each bar begins where the previous one ends. Tensors of large "
               "values dominate, because errors are those of the stored values.",
               std::move(chart));
}

std::vector<section> plan_sections(const document_parts& d) {
    section said = verdict_of(d.tail);
    section trade{.heading = "Error by tensor"};
    const auto* totals = report::member<record>(d.head, "totals");
    const auto* goal = report::member<record>(d.head, "goal");
    const double elements = number(d.head, "elements");
    report::scatter_chart chart;
    chart.x = axis_of(std::isfinite(elements) && elements >= 0
                          ? fmt::format("bits per element, 1 bit = {}",
                                        bytes_text(static_cast<std::uint64_t>(elements / 8)))
                          : std::string("bits per element"),
                      "");
    chart.y = axis_of("SQNR", "dB");
    const auto add = [&](const record& r, const std::string& name, const char* group) {
        const auto sqnr = number_of(r, "sqnr_db");
        if (sqnr) chart.marks.push_back({{number(r, "bits_per_element"), sqnr, name}, group, true});
    };
    if (totals != nullptr) add(*totals, "the plan", "the plan");
    for (const record& r : records_in(d.tail, "uniform")) {
        add(r, text_of(r, "recipe"), "one recipe for all");
    }
    const std::vector<record> curve = records_in(d.tail, "curve");
    const std::size_t stride = curve.size() / most_page_points + 1;
    for (std::size_t i = 0; i < curve.size(); i += stride) {
        const auto sqnr = number_of(curve[i], "sqnr_db");
        if (sqnr) chart.path.emplace_back(number(curve[i], "bits_per_element"), *sqnr);
    }
    chart.path_name = "best mixtures";
    if (goal != nullptr) {
        const auto floor = number_of(*goal, "sqnr_db");
        const auto bits = number_of(*goal, "bits_per_element");
        if (floor) chart.levels.push_back({"floor", *floor});
        if (bits) chart.zones.push_back({"budget", *bits, *bits});
    }
    if (!chart.marks.empty()) {
        add_figure(said, "trade", "Bits against SQNR of all tensors together",
                   "Squared errors without normalisation. No mixture of these recipes is above "
                   "the line.",
                   std::move(chart));
    }
    add_error_by_tensor(d.results, trade);
    section recipes{
        .heading = "Recipes of the plan",
        .columns = columns_of({"recipe", "tensors", "element_share",
                               column_of("bits_per_element", 3), "sqnr_db", "error_share"})};
    fill(recipes, records_in(d.head, "recipes"), "recipe");
    section uniform{.heading = "One recipe for all tensors that are not kept",
                    .columns = columns_of({"recipe", column_of("bits_per_element", 3), "sqnr_db",
                                           column_of("within", "meets\nthe goal")})};
    fill(uniform, records_in(d.tail, "uniform"), "recipe");
    section tensors{.heading = "Tensors, largest error first",
                    .columns = columns_of({"tensor", "role", "recipe", "bits_per_element",
                                           "sqnr_db", "error_share"})};
    std::vector<record> rows(d.results.begin(), d.results.end());
    std::ranges::stable_sort(rows, std::greater{}, [](const record& r) {
        return number_of(r, "squared_error").value_or(0);
    });
    fill(tensors, rows, "tensor");
    return {said, trade, recipes, uniform, tensors, left_out_of(d.tail)};
}

std::vector<section> gate_sections(const document_parts& d) {
    section rules{.heading = "Rules",
                  .columns = columns_of(
                      {"rule", column_of("checked", "checked", cell::integer),
                       column_of("broken", "broken", cell::integer),
                       column_of("undefined", "of them\nundefined", cell::integer), "problem"})};
    const std::vector<record> all = records_in(d.head, "rules");
    fill(rules, all, "rule");
    report::stacked_chart chart;
    chart.parts = {"broken", "undefined", "kept"};
    chart.value = axis_of("results checked", "");
    for (const record& r : all) {
        if (chart.categories.size() == most_figure_recipes) break;
        const double checked = number_of(r, "checked").value_or(0);
        const double broken = number_of(r, "broken").value_or(0);
        const double undefined = number_of(r, "undefined").value_or(0);
        chart.categories.push_back(text_of(r, "rule"));
        chart.cells.push_back({broken - undefined, undefined, checked - broken});
    }
    if (!chart.categories.empty()) {
        add_figure(rules, "rules", "What broke which rule",
                   "Results that break a rule, that break it because they are undefined, and that "
                   "satisfy it.",
                   std::move(chart));
    }
    section broken{
        .heading = "What broke them",
        .columns = columns_of(
            {"tensor", "recipe", "metric", column_of("value", "value", cell::significant),
             column_of("comparison", "must be"), column_of("limit", "limit", cell::significant)}),
        .group_field = "rule"};
    fill(broken, {d.results.begin(), d.results.end()}, "result");
    return {verdict_of(d.tail), rules, broken};
}

std::vector<section> diff_sections_of(const document_parts& d) {
    const result_set set{"", &d.head, nullptr, &d.tail};
    section steps = steps_section(gather({&set, 1}));
    if (steps.figures.empty()) steps.notes.clear();
    section moved{.heading = "Tensor by tensor"};
    report::scatter_chart chart;
    chart.x = axis_of("change of the values over their RMS", "", true);
    chart.y = axis_of("blocks with another scale", "", false, true);
    std::vector<record> rows(d.results.begin(), d.results.end());
    const auto change = [](const record& r) { return number_of(r, "nrmse").value_or(0); };
    std::ranges::stable_sort(rows, std::greater{}, change);
    for (const record& r : rows) {
        const auto churn = number_of(r, "scale_churn");
        if (chart.marks.size() == most_page_marks || !churn || !(change(r) > 0)) continue;
        chart.marks.push_back({{change(r), churn,
                                fmt::format("{}, {} to {}", end_of_name(text_of(r, "tensor")),
                                            text_of(r, "label_a"), text_of(r, "label_b"))},
                               text_of(r, "recipe"),
                               chart.marks.size() < most_page_named});
    }
    if (!chart.marks.empty()) {
        add_figure(moved, "moved", "Values against scales",
                   "A mark is a tensor from one dump to the next under a recipe. Named: those "
                   "whose values change most.",
                   std::move(chart));
    }
    moved.columns = columns_of({"tensor", "recipe", column_of("label_a", "from", cell::text),
                                column_of("label_b", "to", cell::text), "nrmse", "values_changed",
                                "scale_churn", "codes_moved"});
    fill(moved, rows, "result");
    section together{
        .heading = "All tensors together",
        .columns = columns_of({"recipe", "label_a", "label_b", "nrmse", "values_changed",
                               "scale_churn", "codes_moved", "oscillation"})};
    fill(together, records_in(d.tail, "summary"), "pair of dumps");
    return {verdict_of(d.tail), steps, together, moved, left_out_of(d.tail)};
}

// "Fprop, hadamard, twice": a case of mx layer.
std::string case_of(const record& r) {
    std::string text = text_of(r, "transform");
    if (text.empty()) text = "as given";
    return text_of(r, "source") == "original" ? text : text + ", twice";
}

std::vector<section> stages_sections_of(const document_parts& d) {
    section errors{
        .heading = "Products of the layer",
        .columns = columns_of({"stage", "product", "transform", column_of("source", "operands of"),
                               "total_nrmse", "expected_nrmse", "total_sqnr_db", "total_gain",
                               "total_bias_share", "total_cosine"})};
    report::heat_map map;
    map.value = axis_of("error over the norm of the exact product", "");
    report::heat_map gains;
    gains.value = axis_of("bias: distance of the gain from 1", "", false, true);
    section summing{.heading = "What summing adds",
                    .columns = summing_columns({"stage", "transform", "model"})};
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
    std::vector<record> first, all;
    std::string last;
    for (const record& r : d.results) {
        if (text_of(r, "source") == "original") all.push_back(r);
        // The first accumulator of each case.
        const std::string here = text_of(r, "stage") + "\n" + case_of(r);
        if (here == last) continue;
        last = here;
        first.push_back(r);
        const std::size_t row = place(map.rows, text_of(r, "stage"));
        const std::size_t column = place(map.columns, case_of(r));
        put_at(map, row, column, number_of(r, "total_nrmse"));
        const auto gain = number_of(r, "total_gain");
        put_at(gains, row, column, gain ? std::optional(std::abs(*gain - 1)) : std::nullopt);
    }
    gains.rows = map.rows;
    gains.columns = map.columns;
    if (!map.rows.empty()) {
        add_figure(errors, "stages-error", "Error by stage and transform",
                   "twice: operands quantized from copies that were quantized along the other "
                   "axis.",
                   std::move(map));
        add_figure(errors, "stages-bias", "Bias by stage and transform",
                   "A common gain is an error that averaging over steps does not remove.",
                   std::move(gains));
    }
    fill(errors, first, "product");
    fill(summing, all, "product");
    return {verdict_of(d.tail), errors, summing};
}

std::vector<section> gemm_sections_of(const document_parts& d) {
    section models{
        .heading = "Error by accumulator",
        .columns = model_columns({column_of("form_a", "A as"), column_of("form_b", "B as"),
                                  "accumulation_nrmse", "accumulation_max_ulp"})};
    std::vector<record> rows(d.results.begin(), d.results.end());
    report::bar_chart ulps;
    ulps.x = axis_of("distance from the exact sum, log2 of float32 neighbours", "");
    ulps.y = axis_of("elements", "", false, true);
    for (const record& r : rows) {
        const auto* bins = report::member<report::list>(r, "accumulation_ulp_histogram");
        if (bins == nullptr || ulps.panels.size() == most_page_panels) continue;
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
    fill(models, rows, "model");
    std::vector<record> operands;
    std::string names;
    for (const char* name : {"a", "b"}) {
        const auto* r = report::member<record>(d.head, name);
        if (r == nullptr) continue;
        operands.push_back(*r);
        names += name;
    }
    if (!ulps.panels.empty()) {
        add_figure(models, "ulps", "Elements by distance from the exact sum",
                   "Summing alone: against the exact product of the same operands. On the left, "
                   "elements that are equal.",
                   std::move(ulps));
    }
    report::line_chart growth;
    growth.x = axis_of("K", "", true);
    growth.y = axis_of("summing: error over RMS", "", true);
    for (const record& r : records_in(d.tail, "growth")) {
        const std::string model = text_of(r, "model");
        auto at = std::ranges::find(growth.lines, model, &report::line_chart::line::name);
        if (at == growth.lines.end()) {
            if (growth.lines.size() == most_lines) continue;
            at = growth.lines.insert(at, {model, {}});
        }
        at->points.push_back({number(r, "k"), number_of(r, "accumulation_nrmse"), ""});
    }
    if (!growth.lines.empty()) {
        add_figure(models, "growth", "Error of summing by K",
                   "Against the exact product of the same operands.", std::move(growth));
    }
    section differences = difference_section({});
    fill(differences, records_in(d.tail, "differences"), "pair");
    return {verdict_of(d.tail), models, operand_section("Operands", names, std::move(operands)),
            differences};
}

std::vector<section> changes_sections_of(const document_parts& d) {
    return changes_sections(d.results, d.tail, false);
}

std::vector<section> placement_sections_of(const document_parts& d) {
    std::vector<section> sections{verdict_of(d.tail)};
    sections.front().notes.push_back("$ " + text_of(d.tail, "check"));
    for (section& s : placement_sections(d.head, d.tail)) sections.push_back(std::move(s));
    return sections;
}

struct page_row {
    const char* schema;
    const char* title;
    std::vector<section> (*sections)(const document_parts&);
};
constexpr std::array page_rows{
    page_row{"mx.plan/1", "Mixed precision: a plan", plan_sections},
    page_row{"mx.placement/1", "Mixed precision by divergence: a plan", placement_sections_of},
    page_row{"mx.gate/1", "Rules checked against results", gate_sections},
    page_row{"mx.diff/1", "Dumps of a model compared", diff_sections_of},
    page_row{"mx.changes/1", "Results compared", changes_sections_of},
    page_row{"mx.eval/1", "A model under recipes", eval_sections},
    page_row{"mx.layer/1", "Products of a linear layer in training", stages_sections_of},
    page_row{"mx.gemm/1", "A matrix product as matrix units compute it", gemm_sections_of},
    page_row{"mx.runs/1", "Training runs compared", runs_sections},
    page_row{"mx.fit/1", "A scaling law", fit_sections},
    page_row{"mx.project/1", "A training step, projected", project_sections},
    page_row{"mx.study/1", "A study of training runs", study_sections},
};

}  // namespace

std::optional<report::document> document_page(const document_parts& d) {
    const std::string schema = text_of(d.head, "schema");
    for (const page_row& row : page_rows) {
        if (row.schema != schema) continue;
        report::document page;
        page.title = row.title;
        page.head = d.head;
        for (section& s : row.sections(d)) {
            if (s.rows.empty()) s.columns.clear();
            put(page.sections, std::move(s));
        }
        return page;
    }
    return {};
}

report::document document_page(const report::document& d) {
    return *document_page(document_parts{d.head, d.results, d.tail});
}

}  // namespace mx::pages
