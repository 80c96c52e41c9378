// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

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

using pages::real;
using pages::text;
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

report::record preset_record(const format::block_format& b) {
    const auto recipe = codec::parse_recipe(b.name);
    return {{"kind", text("block")},
            {"name", text(b.name)},
            {"bits_per_element", real(codec::bits_per_element(recipe))},
            {"alias", text(b.alias)},
            {"element", text(b.element)},
            {"scale_format", text(b.scale)},
            {"block", fmt::format("{}x{}", b.block_rows, b.block_cols)},
            {"summary", text(b.summary)}};
}

report::record shared_record(const format::shared_format& f) {
    const auto recipe = codec::parse_recipe(f.element.name);
    return {{"kind", text("shared")},
            {"name", text(f.element.name)},
            {"bits_per_element", real(codec::bits_per_element(recipe))},
            {"block", fmt::format("1x{}", f.block)},
            {"summary", text(f.element.summary)}};
}

}  // namespace

report::document formats() {
    std::vector<report::record> elements;
    for (const auto& f : format::element_formats) elements.push_back(pages::limits_of(f));
    std::vector<report::record> scales;
    for (const auto& f : format::scale_formats) scales.push_back(pages::limits_of(f));
    std::vector<report::record> presets;
    for (const auto& b : format::block_formats) presets.push_back(preset_record(b));

    std::vector<report::record> shared;
    for (const auto& f : format::shared_formats()) shared.push_back(shared_record(f));

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

}  // namespace mx::documents
