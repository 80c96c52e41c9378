// SPDX-License-Identifier: Apache-2.0
// The JSON Schema of what several outputs share: roles, dtypes, metrics, results.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "apps/mx/manual.hpp"
#include "libmx/analysis/result_members.hpp"
#include "libmx/base/named.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::app {
namespace {

std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

// The schemas of metrics that are not a single number.
struct nested_metric {
    std::string_view name;
    std::string_view keywords;
};
constexpr std::array nested_metrics{
    nested_metric{"squared_error", R"("type": ["object", "null"],
      "properties": {
        "total": {"type": "number", "minimum": 0}, "clamp": {"type": "number", "minimum": 0},
        "underflow": {"type": "number", "minimum": 0}, "grid": {"type": "number", "minimum": 0}},
      "required": ["total", "clamp", "underflow", "grid"], "additionalProperties": false)"},
    nested_metric{"code_histogram", R"("type": ["array", "null"], "minItems": 4,
      "items": {"type": "integer", "minimum": 0})"},
    nested_metric{"scale_histogram", R"("type": ["object", "null"],
      "patternProperties": {"^[0-9]+$": {"type": "integer", "minimum": 1}},
      "additionalProperties": false)"},
    nested_metric{"amax_mantissa_histogram", R"("type": ["object", "null"],
      "properties": {
        "bins": {"type": "array", "minItems": 32, "maxItems": 32,
                 "items": {"type": "integer", "minimum": 0}},
        "clamp_zone": {"type": "array", "maxItems": 2,
                       "items": {"type": "number", "minimum": 1, "maximum": 2}}},
      "required": ["bins", "clamp_zone"], "additionalProperties": false)"},
    nested_metric{"block_spread", R"("type": ["object", "null"],
      "properties": {
        "bins": {"type": "array", "items": {
          "type": "array", "prefixItems": [{"type": "number"}, {"type": "integer", "minimum": 1}],
          "items": false}},
        "quantiles": {"type": "object",
          "patternProperties": {"^p(01|05|25|50|75|95|99)$": {"type": ["number", "null"]}},
          "minProperties": 7, "additionalProperties": false}},
      "required": ["bins", "quantiles"], "additionalProperties": false)"},
};

std::string_view keywords_of(const metrics::metric& m) {
    if (const auto* n = base::find_named(nested_metrics, m.name)) return n->keywords;
    if (m.member == &metrics::row::exact) return R"("type": ["boolean", "null"])";
    // A regret can be negative.
    const bool compares = m.collected == metrics::when::regret;
    if (m.unit == "share" && !compares)
        return R"("type": ["number", "null"], "minimum": 0, "maximum": 1)";
    if (m.unit == "count") return R"("type": ["integer", "null"], "minimum": 0)";
    return R"("type": ["number", "null"])";
}

template <typename List>
std::string names_in(const List& list) {
    std::string out;
    for (const auto& row : list) out += (out.empty() ? "" : ", ") + quoted(row.name);
    return out;
}

std::string keywords_of(const analysis::member_facts& m) {
    if (m.name == "role") return fmt::format("\"enum\": [{}]", names_in(engine::roles()));
    if (m.name == "dtype") return fmt::format("\"enum\": [{}]", names_in(tensor::dtypes));
    switch (m.type) {
        case analysis::member_type::text:
            return R"("type": "string")";
        case analysis::member_type::extents:
            return R"("type": "array", "items": {"type": "integer", "minimum": 0})";
        case analysis::member_type::count:
            return R"("type": "integer", "minimum": 0)";
        case analysis::member_type::optional_count:
            return R"("type": ["integer", "null"], "minimum": 0)";
        case analysis::member_type::contraction:
            return R"("type": ["object", "null"], "required": ["axis", "axes", "extent", "assumed", "why"], "properties": {"axis": {"type": "integer", "minimum": 0}, "axes": {"type": "integer", "minimum": 1}, "extent": {"type": "integer", "minimum": 0}, "assumed": {"type": "boolean"}, "why": {"type": "string"}})";
        case analysis::member_type::figure:
            break;
    }
    return R"("type": ["number", "null"])";
}

}  // namespace

std::string members_schema() {
    std::string definitions;
    std::string properties, required;
    const auto add = [&](std::string_view name, std::string_view says, std::string_view keywords,
                         bool always) {
        definitions += fmt::format("    {}: {{\n      \"description\": {},\n      {}\n    }},\n",
                                   quoted(name), quoted(says), keywords);
        properties += fmt::format("{}        {}: {{\"$ref\": \"#/$defs/{}\"}}",
                                  properties.empty() ? "" : ",\n", quoted(name), name);
        if (always) required += (required.empty() ? "" : ", ") + quoted(name);
    };
    for (const analysis::member_facts& m : analysis::result_members()) {
        add(m.name, m.definition, keywords_of(m), m.always);
    }
    add("outer_scale",
        "the least and the largest outer scale, with one for each row, column or tile (outer)",
        R"("type": "object", "properties": {"min": {"type": ["number", "null"]}, "max": {"type": ["number", "null"]}}, "required": ["min", "max"], "additionalProperties": false)",
        false);
    for (const metrics::metric& m : metrics::all()) {
        const bool with_unit = m.unit == "dB" || m.unit == "bits";
        add(m.name,
            with_unit ? fmt::format("{} ({})", m.definition, m.unit) : std::string(m.definition),
            keywords_of(m), m.collected == metrics::when::always);
    }
    return fmt::format(
        R"({{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "What results say",
  "description": "Members that outputs of several commands share. null: undefined.",
  "$defs": {{
{}    "result": {{
      "description": "a tensor under a recipe",
      "type": "object",
      "properties": {{
{}
      }},
      "required": [{}]
    }}
  }}
}}
)",
        definitions, properties, required);
}

}  // namespace mx::app
