// SPDX-License-Identifier: Apache-2.0
// The basis of the figures: inputs, recipes, and the meaning of the recipes' parts, one line each.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "libmx/format/decode.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/pages/views/words.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

using report::cell;

report::section inputs_section(const review_data& e, const review_options& o) {
    report::section s{.heading = "Inputs", .columns = columns_of({"path", "bytes", "sha256"})};
    for (const input_file& f : e.inputs) {
        s.add(f.path, f.bytes, f.sha256.empty() ? "not recorded" : f.sha256);
    }
    if (s.rows.empty()) s.columns.clear();
    s.notes.push_back(fmt::format("Measured by {}; page made by {}.",
                                  e.measured_by.empty() ? "an unnamed tool" : listed(e.measured_by),
                                  o.made_by));
    if (!e.table.tensors.empty()) {
        s.notes.push_back(fmt::format(
            "{} of {} under {}: {}.", report::plural(e.table.tensors.size(), "tensor"),
            report::plural(e.tensor_files, "file"), report::plural(e.plan.recipes.size(), "recipe"),
            report::plural(e.measured, "result")));
    }
    if (!o.digested.empty()) {
        s.notes.push_back(fmt::format(
            "The results do not record the SHA-256 of {}: it was computed when this page was "
            "made, from the file, whose size was unchanged.",
            fmt::join(o.digested, ", ")));
    }
    return s;
}

std::string block_text(const codec::recipe& r) {
    if (!codec::has_blocks(r) && codec::bits_per_block(r) == 0) return "none";
    std::string text = fmt::format("{}x{}", r.block.rows, r.block.cols);
    using kind = codec::axis_choice::kind;
    if (r.axis.what == kind::flat) text += " flat";
    if (r.axis.what == kind::index) text += fmt::format(" axis {}", r.axis.value);
    return text;
}

std::string rounding_text(const codec::recipe& r) {
    std::string text(format::row_of(r.round).name);
    if (r.round == format::rounding::stochastic) text += fmt::format(", {} bits", r.random_bits);
    if (compare::is_random(r)) text += fmt::format(", seed {}", r.seed);
    return text;
}

// What takes the place of a scale format and a scale rule without blocks.
std::string_view whole_scale_text(const codec::recipe& r) {
    return r.scope == codec::scale_scope::tensor ? "tensor" : "none";
}

std::string rotation_text(const codec::recipe& r) {
    std::string text = r.rotate.what == transform::kind::none ? "" : "rotated";
    if (r.offset == codec::offset_kind::fp16) text += text.empty() ? "offset" : ", offset";
    return text.empty() ? "none" : text;
}

report::section recipes_section(const review_data& e) {
    report::section s{
        .heading = "Recipes",
        .columns = columns_of({"recipe", "element", "scale", column_of("rule", "scale\nrule"),
                               column_of("round", "rounding"), "block",
                               column_of("before", "offset,\nrotation"), "dialect"}),
        .folded = true};
    for (const codec::recipe& r : e.plan.recipes) {
        const bool blocks = codec::has_blocks(r);
        s.add(codec::to_string(r), r.element->name,
              blocks ? r.scale_format->name : whole_scale_text(r),
              blocks ? r.rule->name : whole_scale_text(r), rounding_text(r), block_text(r),
              rotation_text(r), r.by->name);
    }
    s.notes.push_back(
        "Omitted settings have the defaults of the preset; a seed is shown only if something is "
        "random. mx explain RECIPE describes a recipe.");
    const bool seeds =
        std::ranges::any_of(e.plan.cells, [](const compare::cell& c) { return c.runs.size() > 1; });
    if (seeds) {
        s.notes.push_back(
            "Recipes that differ only in their seed are combined under the name of the first: "
            "errors and rates are means over the seeds.");
    }
    return s;
}

report::record part(std::string_view kind, std::string name, std::string meaning,
                    std::string_view source) {
    return {{"part", text(kind)},
            {"name", std::move(name)},
            {"meaning", std::move(meaning)},
            {"source", text(source)}};
}

report::record element_part(const codec::recipe& r) {
    const format::element_format& f = *r.element;
    std::string meaning = fmt::format("largest value {}", double{format::decode(f, f.max_code())});
    if (f.floating()) meaning += fmt::format(", smallest normal {}", std::ldexp(1.0, f.emin()));
    meaning += fmt::format(", smallest step {}", std::ldexp(1.0, f.quantum()));
    // Full-range and symmetric integers have different grids.
    const bool full = !f.floating() && r.minimum == codec::int_min::full;
    return part("element format", fmt::format("{}{}", f.name, full ? " (full range)" : ""),
                std::move(meaning), f.summary);
}

report::record rule_part(const codec::recipe& r) {
    if (r.scope == codec::scale_scope::none) {
        return part("scale rule", "none", "elements are rounded as they are", "");
    }
    if (r.scope == codec::scale_scope::tensor) {
        return part("scale rule", "tensor", "amax / max in float32, amax that of the tensor", "");
    }
    return part("scale rule", std::string(r.rule->name), std::string(r.rule->definition),
                r.rule->source);
}

report::record rounding_part(const codec::recipe& r) {
    const auto& row = format::row_of(r.round);
    return part("rounding", std::string(row.name), std::string(row.summary), "");
}

report::record dialect_part(const codec::recipe& r) {
    return part("dialect", std::string(r.by->name), std::string(r.by->summary), r.by->source);
}

// The parts that occur, each once in the order of the recipes.
report::section parts_section(const review_data& e) {
    report::section s{
        .heading = "Terms of the recipes",
        .columns = columns_of({"part", "name", "meaning", column_of("source", "after")}),
        .folded = true};
    for (const auto make : {element_part, rule_part, rounding_part, dialect_part}) {
        std::set<std::string> seen;
        for (const codec::recipe& r : e.plan.recipes) {
            report::record row = make(r);
            if (seen.insert(report::text_of(row, "name")).second) s.rows.push_back(std::move(row));
        }
    }
    s.notes.push_back(
        "emax is the exponent of the element's largest value, max that value, amax a block's "
        "largest magnitude.");
    return s;
}

}  // namespace

std::vector<report::section> basis_sections(const review_data& e, const review_options& o) {
    std::vector<report::section> all{inputs_section(e, o)};
    if (e.plan.recipes.empty()) return all;
    all.push_back(recipes_section(e));
    all.push_back(parts_section(e));
    return all;
}

std::vector<report::section> definition_sections(const review_data& e) {
    if (e.plan.recipes.empty()) return {};
    report::section s{.heading = "Definitions",
                      .columns = columns_of({column_of("name", "metric"), "unit", "definition"}),
                      .folded = true};
    for (const metrics::metric& m : metrics::all()) {
        if (m.collected == metrics::when::decompose && !e.decomposed()) continue;
        if (m.collected == metrics::when::histograms && e.sums.empty()) continue;
        if (m.collected == metrics::when::regret && !e.has_regret()) continue;
        s.add(m.name, m.unit, m.definition);
    }
    s.notes = {
        "With S the block's scale and O its offset (0 without): y = (x - O) / S, q the element "
        "that y becomes, d = O + S q. Rates are shares of finite elements in blocks whose scale is "
        "a "
        "number, or of blocks where they say so.",
        "Figures of a class are over all of its elements together, errors with each tensor "
        "divided by its RMS. Normal data: the same recipe on standard normal numbers. Lost are "
        "elements that become zero (except under stochastic rounding, which preserves the mean), "
        "and those that clamp or are in blocks where all do.",
        "bits per element: of the elements and their share of scale and offset, including short "
        "blocks."};
    return {std::move(s)};
}

}  // namespace mx::pages
