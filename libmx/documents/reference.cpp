// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/documents/reference.hpp"
#include "libmx/format/roundings.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/scale/scale_rules.hpp"

namespace mx::documents {

using pages::text;

namespace {

// The rows of `names`; all without names.
std::vector<report::record> chosen(std::vector<report::record> rows,
                                   const std::vector<std::string>& names) {
    std::erase_if(rows, [&](const report::record& r) {
        return !names.empty() &&
               std::ranges::find(names, report::text_of(r, "name")) == names.end();
    });
    return rows;
}

void require_known(std::string_view what, const std::vector<std::string>& names,
                   std::span<const std::vector<report::record>* const> lists) {
    std::vector<std::string> known;
    for (const auto* rows : lists) {
        for (const report::record& r : *rows) known.push_back(report::text_of(r, "name"));
    }
    for (const std::string& name : names) {
        if (std::ranges::find(known, name) != known.end()) continue;
        base::refuse(base::unknown(what, name, {known.begin(), known.end()}));
    }
}

void add_section(report::document& d, report::section s) {
    if (s.rows.empty()) return;
    for (const report::record& r : s.rows) d.results.push_back(r);
    d.sections.push_back(std::move(s));
}

struct rule_entry {
    std::string_view kind, name;
    std::string key;
    std::string_view definition, source = {}, values = {};
};
report::value text_if_any(std::string_view s) { return s.empty() ? pages::undefined() : text(s); }

constexpr std::array rule_members = std::to_array<report::declared<rule_entry>>({
    {"kind", "scale rule|rounding|recipe key", "", [](auto& r) { return r.kind; }},
    {"name", "string", "", [](auto& r) { return r.name; }},
    {"key", "string", "how it is written in a recipe", [](auto& r) { return r.key; }},
    {"definition", "string", "", [](auto& r) { return r.definition; }},
    {"source", "string", "of scale rules", [](auto& r) { return text_if_any(r.source); }, false},
    {"values", "string", "of recipe keys: what they take",
     [](auto& r) { return text_if_any(r.values); }, false},
});

constexpr std::array metric_members = std::to_array<report::declared<metrics::metric>>({
    {"kind", "=metric", "", [](auto&) { return "metric"; }},
    {"name", "string", "", [](auto& m) { return m.name; }},
    {"unit", "string", "empty: that of the values, or none", [](auto& m) { return m.unit; }},
    {"definition", "string", "", [](auto& m) { return m.definition; }},
    {"option", "string", "that it requires; empty: none",
     [](auto& m) { return metrics::option_of(m.collected); }},
});

}  // namespace

report::document_schema rules_schema() {
    return report::document_schema("mx.rules/1", "mx explain rules",
                                   "Scale rules, roundings and keys of recipes.")
        .member({"results", "[#entry]", "an entry each"})
        .define("entry", rule_members);
}

report::document_schema metrics_schema() {
    return report::document_schema("mx.metrics/1", "mx explain metrics",
                                   "The metrics of a tensor under a recipe.")
        .member({"results", "[#entry]", "an entry each"})
        .define("entry", metric_members);
}

report::document rules(const std::vector<std::string>& names) {
    std::vector<report::record> rules;
    for (const auto& r : scale::scale_rules) {
        rules.push_back(report::written(
            rule_members,
            {"scale rule", r.name, fmt::format("scale={}", r.name), r.definition, r.source}));
    }
    std::vector<report::record> roundings;
    for (const auto& r : format::roundings) {
        roundings.push_back(report::written(
            rule_members, {"rounding", r.name, fmt::format("round={}", r.name), r.summary}));
    }
    std::vector<report::record> keys;
    for (const auto& k : codec::recipe_keys()) {
        keys.push_back(report::written(
            rule_members, {"recipe key", k.name, std::string(k.name), k.summary, {}, k.values}));
    }
    require_known("rule, rounding or key of recipes", names,
                  std::array<const std::vector<report::record>*, 3>{&rules, &roundings, &keys});
    report::document d;
    d.head = pages::document_head("mx.rules/1");
    add_section(d, {"Scale rules: the shared scale of a block with largest magnitude amax",
                    {{"key", "key"}, {"definition", "scale"}, {"source", "source"}},
                    chosen(rules, names),
                    {},
                    {"emax is the exponent of the element format's largest value max; see "
                     "'mx explain formats'. An E8M0 scale is clamped to 2^-127 .. 2^127; an Inf or "
                     "NaN in the block gives scale code 255 (NaN). g is the tensor scale, "
                     "amax of the tensor / (448 max). Dialects depart from "
                     "this: see 'mx explain dialects'."}});
    add_section(d, {"Roundings of elements",
                    {{"key", "key"}, {"definition", "how x / scale becomes an element"}},
                    chosen(roundings, names)});
    add_section(d, {"Recipe keys: PRESET[:key=value,...]",
                    {{"key", "key"}, {"values", "values"}, {"definition", "what it decides"}},
                    chosen(keys, names),
                    {},
                    {"Presets are the block formats of 'mx explain formats'; 'mx explain RECIPE' "
                     "says what one does."}});
    return d;
}

report::document metrics(const std::vector<std::string>& names) {
    std::vector<report::record> rows;
    for (const metrics::metric& m : metrics::all()) {
        rows.push_back(report::written(metric_members, m));
    }
    require_known("metric", names, std::array<const std::vector<report::record>*, 1>{&rows});
    report::document d;
    d.head = pages::document_head("mx.metrics/1");
    add_section(
        d,
        {"Metrics of a tensor under a recipe",
         {{"name", "name"}, {"unit", "unit"}, {"definition", "definition"}, {"option", "option"}},
         chosen(std::move(rows), names),
         {},
         {"x is an element, d its value under the recipe; a share is between 0 and 1. "
          "docs/reference/metrics.md has all symbols."}});
    return d;
}

}  // namespace mx::documents
