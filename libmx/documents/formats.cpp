// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "libmx/codec/recipe.hpp"
#include "libmx/documents/reference.hpp"
#include "libmx/format/block_formats.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/format/scale_formats.hpp"
#include "libmx/format/shared_formats.hpp"
#include "libmx/pages/views/format_facts.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::documents {
namespace {

using report::cell;
using report::column;

const column codes_mean{"summary", "what its codes mean"};
const column element_bits{"bits_per_element", "bits per\nelement", cell::shortest};

const std::vector<column> element_limits = pages::columns_of(
    {"name", pages::column_of("bits", "bits", cell::integer), pages::column_of("layout", "s/e/m"),
     "bias", "emax", "max", "min_normal", "min_subnormal"});

const std::vector<column> scale_limits = pages::columns_of(
    {"name", pages::column_of("bits", "bits", cell::integer), "bias", "emax", "max", "min_normal"});

const std::vector<column> scale_summaries{pages::column_of("name"),
                                          pages::column_of("min_subnormal"), codes_mean};

const std::vector<column> hex_limits = pages::columns_of(
    {"name", pages::column_of("max_code", "code\nof max"), pages::column_of("max_hex", "max"),
     pages::column_of("min_normal_hex", "min normal"),
     pages::column_of("min_subnormal_hex", "min\nsubnormal"),
     pages::column_of("finite_codes", "finite\ncodes", cell::integer),
     pages::column_of("codes", "of", cell::integer), "specials",
     pages::column_of("safetensors", "dtype\nin files")});

const std::vector<column> summary_columns{pages::column_of("name"), codes_mean};

double bits_of(std::string_view recipe) {
    return codec::bits_per_element(codec::parse_recipe(recipe));
}

constexpr std::array preset_members = std::to_array<report::declared<format::block_format>>({
    {"kind", "=block", "", [](auto&) { return "block"; }},
    {"name", "string", "", [](auto& b) { return b.name; }},
    {"bits_per_element", "number", "scale bits included", [](auto& b) { return bits_of(b.name); }},
    {"alias", "string", "another name; may be empty", [](auto& b) { return b.alias; }},
    {"element", "string", "element format", [](auto& b) { return b.element; }},
    {"scale_format", "string", "", [](auto& b) { return b.scale; }},
    {"block", "string", "rows x columns",
     [](auto& b) { return fmt::format("{}x{}", b.block_rows, b.block_cols); }},
    {"summary", "string", "", [](auto& b) { return b.summary; }},
});

constexpr std::array shared_members = std::to_array<report::declared<format::shared_format>>({
    {"kind", "=shared", "a format of which mx has values only", [](auto&) { return "shared"; }},
    {"name", "string", "", [](auto& f) { return f.element.name; }},
    {"bits_per_element", "number", "", [](auto& f) { return bits_of(f.element.name); }},
    {"block", "string", "rows x columns", [](auto& f) { return fmt::format("1x{}", f.block); }},
    {"summary", "string", "", [](auto& f) { return f.element.summary; }},
});

}  // namespace

report::document formats() {
    std::vector<report::record> elements;
    for (const auto& f : format::element_formats) elements.push_back(pages::limits_of(f));
    std::vector<report::record> scales;
    for (const auto& f : format::scale_formats) scales.push_back(pages::limits_of(f));
    std::vector<report::record> presets;
    for (const auto& b : format::block_formats)
        presets.push_back(report::written(preset_members, b));

    std::vector<report::record> shared;
    for (const auto& f : format::shared_formats())
        shared.push_back(report::written(shared_members, f));

    report::document d;
    d.head = pages::document_head("mx.formats/1");
    for (const auto* part : {&elements, &scales, &presets, &shared}) {
        for (const report::record& r : *part) d.results.push_back(r);
    }
    d.sections.push_back({"Element formats", element_limits, elements});
    d.sections.push_back({"Element formats, hexadecimal", hex_limits, elements});
    d.sections.push_back({{}, summary_columns, elements});
    d.sections.push_back({"Scale formats", scale_limits, scales});
    d.sections.push_back({"Scale formats, hexadecimal", hex_limits, scales});
    d.sections.push_back({{}, scale_summaries, scales});
    d.sections.push_back({"Block formats (presets of recipes)",
                          {{"name", "name"},
                           {"alias", "also"},
                           {"element", "element"},
                           {"scale_format", "scale"},
                           {"block", "block"},
                           element_bits,
                           {"summary", ""}},
                          presets});
    d.sections.push_back({"Formats of values only",
                          {{"name", "name"}, {"block", "block"}, element_bits, {"summary", ""}},
                          shared});
    return d;
}

report::document_schema formats_schema() {
    return report::document_schema("mx.formats/1", "mx explain formats",
                                   "Element, scale and block formats.")
        .member({"results", "[#limits|#block_format|#shared_format]", "a format each"})
        .define("limits", pages::limits_members)
        .define("block_format", preset_members)
        .define("shared_format", shared_members);
}

}  // namespace mx::documents
