// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/diff_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "libmx/base/joined.hpp"
#include "libmx/pages/views/diff_steps.hpp"
#include "libmx/pages/views/figures.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::column;
using report::plural;
using report::record;
using report::section;
using report::text_of;

constexpr std::size_t findings_shown = 5;

bool is_null(const record& r, std::string_view name) {
    const report::value* v = report::find(r, name);
    return v == nullptr || std::holds_alternative<std::monostate>(*v);
}

// By relative error if there is one; a tensor of zeros that changed comes first.
double severity(const record& r) {
    if (!is_null(r, "nrmse")) return number_or(r, "nrmse", 0);
    return number_or(r, "changed_values", 0) > 0 ? std::numeric_limits<double>::infinity() : 0;
}

// A tensor with its records of one pair of dumps, the pair with the largest difference.
struct tensor_moves {
    std::vector<std::size_t> records;  // indices of results, one per recipe
    std::size_t pair = 0;
    std::pair<double, double> worst{-1, 0};  // nrmse, scale churn
    bool changed = false;
};

// Results are ordered by tensor, recipe and pair; there are `pairs` pairs, and labels may repeat.
std::vector<tensor_moves> by_tensor(const report::record_list& results, std::size_t pairs) {
    std::vector<tensor_moves> tensors;
    std::map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < results.size(); ++i) {
        const record r = results[i];
        const auto [at, added] = places.emplace(text_of(r, "tensor"), tensors.size());
        if (added) tensors.emplace_back();
        tensor_moves& t = tensors[at->second];
        const std::size_t pair = i % pairs;
        const std::pair<double, double> here{severity(r), number_or(r, "scale_churn", 0)};
        t.changed = t.changed || number_or(r, "changed_values", 0) > 0 ||
                    number_or(r, "changed_zero_signs", 0) > 0;
        if (pair == t.pair) {
            t.worst = std::max(t.worst, here);
        } else if (here > t.worst) {
            t.worst = here;
            t.pair = pair;
        }
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
        const record r = results[i];
        tensor_moves& t = tensors[places.at(text_of(r, "tensor"))];
        if (i % pairs == t.pair) t.records.push_back(i);
    }
    return tensors;
}

std::string significant(const record& r, std::string_view field) {
    return report::cell_text(r, {std::string(field), "", cell::significant, 3});
}

// "layers.0.w  BF16 64x128, 100 -> 200: nrmse 0.0123, 45.10 % of the values changed"
std::string label_of(const record& r, bool with_pair) {
    const auto* extents = report::member<report::list>(r, "shape");
    // Members of a group may differ in one of them.
    const auto dtype = [&](std::string_view field) {
        return is_null(r, field) ? std::string("mixed") : text_of(r, field);
    };
    std::string types = dtype("dtype");
    if (const std::string next = dtype("dtype_b"); next != types) types += "/" + next;
    std::string label = fmt::format("{}  {} {}", text_of(r, "tensor"), types,
                                    extents == nullptr ? "" : report::extents_text(*extents));
    if (with_pair) label += fmt::format(", {} -> {}", text_of(r, "label_a"), text_of(r, "label_b"));
    label += fmt::format(": nrmse {}", significant(r, "nrmse"));
    const double members = number_or(r, "members", 0);
    if (members < 2) {
        return label + fmt::format(", {} % of the values changed",
                                   report::percent_text(number_or(r, "values_changed", 0)));
    }
    return label + fmt::format("; worst of {}: {}, {}", members,
                               short_member(text_of(r, "tensor"), text_of(r, "worst_member")),
                               significant(r, "worst_member_nrmse"));
}

// Figures by recipe; oscillation only with three or more dumps.
std::vector<column> move_columns(bool series) {
    std::vector<column> columns = columns_of(
        {"scale_churn", "codes_moved",
         column_of("codes_moved_at_equal_scale", "at equal\nscale %", cell::share), "oscillation",
         "clamp_rate_a", "clamp_rate_b", "saturated_block_rate_a", "saturated_block_rate_b"});
    if (!series) std::erase_if(columns, [](const column& c) { return c.field == "oscillation"; });
    return columns;
}

section finding_section(const document_parts& d, const view_options& o) {
    section s{.heading = "Norm gains that approach the clamp zone"};
    const std::vector<record> findings = records_in(d.tail, "findings");
    const std::size_t shown =
        o.all || o.page ? findings.size() : std::min(findings_shown, findings.size());
    for (std::size_t i = 0; i < shown; ++i) {
        s.notes.push_back(report::item(text_of(findings[i], "finding")));
    }
    if (shown < findings.size()) {
        s.notes.push_back(
            report::item(fmt::format("and {} more (--all: every one).", findings.size() - shown)));
    }
    if (!findings.empty()) {
        s.notes.push_back(
            "Distances are in octaves from a block's maximum to the edge of the zone that it "
            "approaches: negative before it, positive beyond.");
    }
    return s;
}

section tensor_section(const document_parts& d, std::size_t pairs, const view_options& o) {
    const bool series = pairs > 1;
    std::vector<tensor_moves> tensors = by_tensor(d.results, pairs);
    const std::size_t total = tensors.size();
    if (!o.all) {
        std::erase_if(tensors, [](const tensor_moves& t) { return !t.changed; });
    }
    const std::size_t changed = tensors.size();
    std::set<std::string> recipes;
    for (const record& r : records_in(d.tail, "summary")) recipes.insert(text_of(r, "recipe"));
    // In a terminal about forty lines, as in `mx analyze`.
    const std::size_t most =
        o.page ? most_page_rows
               : std::clamp<std::size_t>(40 / std::max<std::size_t>(1, recipes.size()), 3, 10);
    const std::size_t count = o.all ? changed : std::min(changed, most);
    const record first = d.results[0];
    const bool groups = report::find(first, "members") != nullptr;
    const std::string_view things = groups ? "record" : "tensor";
    section s;
    if (o.all) {
        s.heading = plural(total, things);
    } else {
        std::ranges::stable_sort(tensors, std::greater{}, &tensor_moves::worst);
        s.heading =
            count < changed
                ? fmt::format("The {} of {} changed {}s with the largest relative difference{}",
                              count, changed, things, o.page ? "" : " (--all: every one)")
                : fmt::format("{} of {} changed",
                              report::grouped(static_cast<std::int64_t>(changed)),
                              plural(total, things));
    }
    s.columns = columns_of({"recipe"});
    for (const column& c : move_columns(series)) s.columns.push_back(c);
    s.group_field = "label";
    for (std::size_t i = 0; i < count; ++i) {
        for (const std::size_t place : tensors[i].records) {
            record row = d.results[place];
            row.emplace_back("label", label_of(row, series));
            s.rows.push_back(std::move(row));
        }
    }
    return s;
}

section summary_section(const document_parts& d, bool series) {
    section s{.heading = "All tensors together", .rows = records_in(d.tail, "summary")};
    if (series) {
        s.group_field = "recipe";
        s.columns = columns_of({"label_a", "label_b"});
    } else {
        s.columns = columns_of({"recipe"});
    }
    s.columns.push_back(column_of("nrmse"));
    s.columns.push_back(column_of("values_changed"));
    const auto turned = [](const record& r) { return number_or(r, "changed_zero_signs", 0) > 0; };
    if (std::ranges::any_of(s.rows, turned)) {
        s.columns.push_back({"changed_zero_signs", "sign of\n0 only", cell::integer});
    }
    for (const column& c : move_columns(series)) s.columns.push_back(c);
    return s;
}

// A mark is a record.
void add_moves(const report::record_list& results, section& to) {
    constexpr std::size_t most_marks = 600, most_named = 6;
    report::scatter_chart chart;
    chart.x = axis_of("change of the values over their RMS", "", true);
    chart.y = axis_of("blocks with another scale", "", false, true);
    std::vector<record> rows(results.begin(), results.end());
    const auto change = [](const record& r) { return report::number_of(r, "nrmse").value_or(0); };
    std::ranges::stable_sort(rows, std::greater{}, change);
    for (const record& r : rows) {
        const auto churn = report::number_of(r, "scale_churn");
        if (chart.marks.size() == most_marks || !churn || !(change(r) > 0)) continue;
        chart.marks.push_back({{change(r), churn,
                                fmt::format("{}, {} to {}", end_of_name(text_of(r, "tensor")),
                                            text_of(r, "label_a"), text_of(r, "label_b"))},
                               text_of(r, "recipe"),
                               chart.marks.size() < most_named});
    }
    if (!chart.marks.empty()) {
        add_figure(to, "moved", "Values against scales",
                   "A mark is a tensor from one dump to the next under a recipe. Named: those "
                   "whose values change most.",
                   std::move(chart));
    }
}

}  // namespace

section order_section(const record& head) {
    return {.notes = {fmt::format(
                "Order: {}{}.", base::joined(texts_in(head, "labels"), ", "),
                is_true(head, "reordered")
                    ? "; by the numbers in the names, not as given (--as-given keeps that)"
                    : "")}};
}

std::vector<section> diff_view(const document_parts& d, const view_options& o) {
    const std::size_t dumps = texts_in(d.head, "labels").size();
    const std::size_t pairs = dumps < 2 ? 1 : dumps - 1;
    std::vector<section> all{order_section(d.head)};
    if (!d.results.empty() && !is_true(d.head, "identical")) {
        section moved = tensor_section(d, pairs, o);
        if (o.page) {
            section steps = steps_section({series_of(d.head, d.tail)});
            if (!steps.figures.empty()) all.push_back(std::move(steps));
            add_moves(d.results, moved);
        }
        all.push_back(finding_section(d, o));
        all.push_back(std::move(moved));
        all.push_back(summary_section(d, pairs > 1));
    }
    all.push_back(left_out_of(d.tail, o));
    return all;
}

}  // namespace mx::pages
