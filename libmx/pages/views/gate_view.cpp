// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/gate_view.hpp"

#include <fmt/format.h>

#include "libmx/pages/views/figures.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::plural;
using report::record;
using report::section;
using report::text_of;

std::string_view words_for(const record& rule) {
    if (is_true(rule, "holds")) return "holds";
    return count_of(rule, "broken") > 0 ? "broken" : "fails";
}

section rule_section(const record& head) {
    const std::vector<record> rules = records_in(head, "rules");
    section s{
        .heading = fmt::format("{} over {} of {} and {}", plural(rules.size(), "rule"),
                               plural(count_of(head, "records"), "result"),
                               plural(count_of(head, "tensors"), "tensor"),
                               plural(count_of(head, "recipes"), "recipe")),
        .columns = columns_of({"rule", column_of("checked", "results\nchecked", cell::integer),
                               column_of("broken", "broken\nby", cell::integer),
                               column_of("undefined", "\nundefined", cell::integer), "verdict"})};
    for (record row : rules) {
        row.emplace_back("verdict", text(words_for(row)));
        s.rows.push_back(std::move(row));
    }
    return s;
}

void add_rules_figure(section& to) {
    report::stacked_chart chart;
    chart.parts = {"broken", "undefined", "kept"};
    chart.value = axis_of("results checked", "");
    for (const record& r : to.rows) {
        if (chart.categories.size() == most_figure_recipes) break;
        const auto part = [&](std::string_view name) {
            return report::number_of(r, name).value_or(0);
        };
        chart.categories.push_back(text_of(r, "rule"));
        chart.cells.push_back({part("broken") - part("undefined"), part("undefined"),
                               part("checked") - part("broken")});
    }
    if (chart.categories.empty()) return;
    add_figure(to, "rules", "What broke which rule",
               "Results that break a rule, that break it because they are undefined, and that "
               "satisfy it.",
               std::move(chart));
}

// Breaches are in the order of the rules, the worst of each first.
section breach_section(const report::record_list& breaches, const view_options& o) {
    section s{.columns = columns_of({"tensor", "recipe", column_of("finding", "value")}),
              .group_field = "rule"};
    bool undefined_shown = false;
    std::string rule;
    std::size_t in_rule = 0;
    for (record row : breaches) {
        in_rule = text_of(row, "rule") == rule ? in_rule + 1 : 1;
        rule = text_of(row, "rule");
        if (in_rule > rows_shown(o)) continue;
        undefined_shown = undefined_shown || text_of(row, "finding") == "undefined";
        if (text_of(row, "tensor").empty()) {
            show(row, "tensor", "(all tensors together)");
        }
        s.rows.push_back(std::move(row));
    }
    s.heading = s.rows.size() == breaches.size()
                    ? fmt::format("Broken by {}", plural(breaches.size(), "result"))
                    : fmt::format("Broken by {}; the worst {} of each rule{}",
                                  plural(breaches.size(), "result"), rows_shown(o),
                                  o.page ? "" : " (--top)");
    if (undefined_shown) {
        s.notes.emplace_back(
            "An undefined figure breaks its rule; 'or null' after the number accepts it.");
    }
    return s;
}

}  // namespace

std::vector<section> gate_view(const document_parts& d, const view_options& o) {
    section rules = rule_section(d.head);
    if (o.page) add_rules_figure(rules);
    std::vector<section> all{std::move(rules)};
    if (!d.results.empty()) all.push_back(breach_section(d.results, o));
    return all;
}

}  // namespace mx::pages
