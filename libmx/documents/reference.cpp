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

}  // namespace

report::document rules(const std::vector<std::string>& names) {
    std::vector<report::record> rules;
    for (const auto& r : scale::scale_rules) {
        rules.push_back({{"kind", text("scale rule")},
                         {"name", text(r.name)},
                         {"key", fmt::format("scale={}", r.name)},
                         {"definition", text(r.definition)},
                         {"source", text(r.source)}});
    }
    std::vector<report::record> roundings;
    for (const auto& r : format::roundings) {
        roundings.push_back({{"kind", text("rounding")},
                             {"name", text(r.name)},
                             {"key", fmt::format("round={}", r.name)},
                             {"definition", text(r.summary)}});
    }
    std::vector<report::record> keys;
    for (const auto& k : codec::recipe_keys()) {
        keys.push_back({{"kind", text("recipe key")},
                        {"name", text(k.name)},
                        {"key", text(k.name)},
                        {"definition", text(k.summary)},
                        {"values", text(k.values)}});
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
        rows.push_back({{"kind", text("metric")},
                        {"name", text(m.name)},
                        {"unit", text(m.unit)},
                        {"definition", text(m.definition)},
                        {"option", text(metrics::option_of(m.collected))}});
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
