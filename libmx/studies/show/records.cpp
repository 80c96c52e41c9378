// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <string>

#include "libmx/analysis/result.hpp"
#include "libmx/base/half.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/show/scale_family.hpp"
#include "libmx/studies/show/tensor_view.hpp"

namespace mx::show {
namespace {

using report::finite_or_null;
using report::to_list;

report::value nrmse_of(const region& r) {
    return r.x2 > 0 ? report::value(r.error()) : report::value();
}

struct shown_element {
    const element& e;
    int bits;
};
constexpr std::array element_members = std::to_array<report::declared<shown_element>>({
    {"index", "count", "in the tensor, C order", [](auto& x) { return x.e.index; }},
    {"stored", "number?", "as the file holds it; null, as in the others: NaN or Inf",
     [](auto& x) { return finite_or_null(double{x.e.stored}); }},
    {"x", "number?", "as it was quantized: with --norm-bias, rotated",
     [](auto& x) { return finite_or_null(double{x.e.x}); }},
    {"y", "number?", "x, less the offset, over the scale",
     [](auto& x) { return finite_or_null(x.e.y); }},
    {"code", "/^0x[0-9a-f]+$/", "",
     [](auto& x) { return fmt::format("0x{:0{}x}", x.e.code, (x.bits + 3) / 4); }},
    {"q", "number?", "the number that the code stands for",
     [](auto& x) { return finite_or_null(double{x.e.q}); }},
    {"value", "number?", "dequantized; of a recipe that rotates, not yet turned back",
     [](auto& x) { return finite_or_null(double{x.e.value}); }},
    {"error", "number?", "value - x", [](auto& x) { return finite_or_null(x.e.error()); }},
    {"clamped", "boolean", "", [](auto& x) { return x.e.clamped; }},
    {"underflow", "boolean", "", [](auto& x) { return x.e.underflow; }},
    {"largest", "boolean", "has the largest code of its sign", [](auto& x) { return x.e.largest; }},
});

// Counts and figures of a block under a recipe.
struct quantized_block {
    const codec::recipe& r;
    const block::block_stats& s;
    double scale;
};
constexpr std::array figure_members = std::to_array<report::declared<quantized_block>>({
    {"scale", "number?", "with the tensor's; null: NaN",
     [](auto& b) { return finite_or_null(b.scale); }},
    {"scale_code", "/^0x[0-9a-f]{2}$/?", "the byte of the scale; null where it is a float32",
     [](auto& b) -> report::value {
         if (!codec::scales_have_codes(b.r)) return {};
         return fmt::format("0x{:02x}", b.s.scale_code);
     }},
    {"nan", "count", "", [](auto& b) { return b.s.count.nan; }},
    {"inf", "count", "", [](auto& b) { return b.s.count.inf; }},
    {"poisoned", "count", "finite elements that are NaN with the block",
     [](auto& b) { return b.s.count.poisoned; }},
    {"clamp", "count", "elements that saturation changes", [](auto& b) { return b.s.count.clamp; }},
    {"top_code", "count", "elements that take the largest code of their sign",
     [](auto& b) { return b.s.count.top_code; }},
    {"underflow", "count", "elements that become zero without having been",
     [](auto& b) { return b.s.count.underflow; }},
    {"nrmse", "amount?",
     "sqrt(squared_error / sum of x^2); null where every x is 0, or none counts",
     [](auto& b) { return nrmse_of(region_of(b.s)); }},
    {"squared_error", "amount", "", [](auto& b) { return b.s.sum.error2; }},
    {"max_abs_error", "amount", "", [](auto& b) { return b.s.sum.max_error; }},
});

struct shown_rule {
    const tensor_view& v;
    const rule_outcome& o;
    const codec::recipe& r = v.family[o.recipe];
};
using rule_member = report::declared<shown_rule>;
constexpr std::array rule_members{
    rule_member{"rule", "string", "", [](auto& x) { return rule_text(x.r); }},
    rule_member{"recipe", "string", "", [](auto& x) { return codec::to_string(x.r); }}};
constexpr std::array rule_ends{rule_member{
    "tensor_sqnr_db", "number?", "of the whole tensor; null where the error or the tensor is zero",
    [](auto& x) { return x.v.results[x.o.recipe].sqnr_db; }}};

report::record rule_record(const shown_rule& x) {
    report::record record = report::written(rule_members, x);
    report::append(record, figure_members, {x.r, x.o.stats, x.o.scale});
    report::append(record, rule_ends, x);
    return record;
}

constexpr std::array region_members = std::to_array<report::declared<region>>({
    {"blocks", "count", "an empty cell has none", [](auto& r) { return r.blocks; }},
    {"elements", "count", "", [](auto& r) { return r.elements; }},
    {"not_finite", "count", "NaN and Inf", [](auto& r) { return r.not_finite; }},
    {"poisoned", "count", "finite elements that are NaN with their block",
     [](auto& r) { return r.poisoned; }},
    {"clamp", "count", "", [](auto& r) { return r.clamp; }},
    {"underflow", "count", "", [](auto& r) { return r.underflow; }},
    {"saturated_blocks", "count", "blocks whose non-zero elements all take the largest value",
     [](auto& r) { return r.saturated; }},
    {"squared_error", "amount", "", [](auto& r) { return r.error2; }},
    {"nrmse", "amount?", "", [](auto& r) { return nrmse_of(r); }},
    {"max_nrmse", "amount", "of a single block, as the next two",
     [](auto& r) { return r.max_error; }},
    {"max_clamp_share", "share", "", [](auto& r) { return r.max_clamp; }},
    {"max_underflow_share", "share", "", [](auto& r) { return r.max_underflow; }},
});

constexpr std::array map_members = std::to_array<report::declared<tensor_view>>({
    {"block_rows", "count", "of the block grid, matrices below each other",
     [](auto& v) { return v.layout.lines; }},
    {"block_columns", "count", "", [](auto& v) { return v.layout.across; }},
    {"folded", "boolean", "a grid of one row or column: blocks go on from row to row",
     [](auto& v) { return v.layout.folded; }},
    {"rows", "count", "", [](auto& v) { return v.layout.rows; }},
    {"columns", "count", "", [](auto& v) { return v.layout.columns; }},
    {"cell_block_rows", "count", "blocks of a cell", [](auto& v) { return v.layout.tall; }},
    {"cell_block_columns", "count", "blocks of a cell", [](auto& v) { return v.layout.wide; }},
    {"cells", "[#region]", "row by row",
     [](auto& v) { return report::listed(region_members, v.cells); }},
});

// What is shown of a tensor besides its result.
constexpr std::array view_members = std::to_array<report::declared<tensor_view>>({
    {"block_grid", "[count]", "blocks along each axis of the tensor",
     [](auto& v) { return to_list(v.geometry.grid_shape); }},
    {"map", "#map", "", [](auto& v) { return report::written(map_members, v); }},
    {"band_block_rows", "count", "rows of blocks in a band", [](auto& v) { return v.band_lines; }},
    {"bands", "[#region]", "rows of blocks across the grid",
     [](auto& v) { return report::listed(region_members, v.bands); }},
});

struct shown_block {
    const tensor_view& v;
    const block_view& b;
};
constexpr std::array block_members = std::to_array<report::declared<shown_block>>({
    {"file", "@members#file", "", [](auto& x) { return x.v.tensor.info().file; }},
    {"tensor", "@members#tensor", "", [](auto& x) { return x.v.tensor.info().name; }},
    {"recipe", "@members#recipe", "", [](auto& x) { return codec::to_string(x.v.recipe()); }},
    {"block", "count", "index in the tensor's block grid, C order",
     [](auto& x) { return x.b.index; }},
    {"first", "[count]", "coordinates of its first element",
     [](auto& x) { return to_list(x.b.first); }},
    {"last", "[count]", "of its last element", [](auto& x) { return to_list(x.b.last); }},
    {"rows", "count", "extent in elements", [](auto& x) { return x.b.rows; }},
    {"columns", "count", "extent in elements", [](auto& x) { return x.b.cols; }},
    {"elements", "count", "", [](auto& x) { return x.b.size; }},
    {"amax", "amount?", "largest magnitude; null: NaN or Inf",
     [](auto& x) { return finite_or_null(double{base::float_from_bits(x.b.stats.x_max)}); }},
    {"offset", "number?", "null: the recipe has none",
     [](auto& x) {
         return x.v.recipe().offset == codec::offset_kind::none
                    ? report::value()
                    : finite_or_null(double{x.b.offset});
     }},
});
constexpr std::array block_ends = std::to_array<report::declared<shown_block>>({
    {"rules", "[#rule]",
     "the block under each scale rule of the recipe's family, the recipe's first",
     [](auto& x) { return to_list(x.b.rules, [&](auto& o) {
                       return rule_record({x.v, o});
                   }); }},
    {"values", "[#element]", "its elements, at most 1024: those with the largest errors",
     [](auto& x) {
         return to_list(x.b.elements, [&](auto& e) {
             return report::written(element_members, {e, x.v.recipe().element->bits()});
         });
     }},
});

}  // namespace

report::record block_record(const tensor_view& v, const block_view& b) {
    report::record record = report::written(block_members, {v, b});
    report::append(record, figure_members, {v.recipe(), b.stats, b.scale});
    report::append(record, block_ends, {v, b});
    return record;
}

report::record tensor_record(const tensor_view& v) {
    report::record record = analysis::record_of(v.results.front());
    report::append(record, view_members, v);
    return record;
}

report::document_schema show_schema() {
    report::member_list block, rule;
    block.add(block_members).add(figure_members).add(block_ends);
    rule.add(rule_members).add(figure_members).add(rule_ends);
    return report::document_schema(
               "mx.show/2", "mx show",
               "Blocks of a tensor, or of the worst tensors of a model, and the tensors with maps "
               "of their blocks.")
        .member({"inputs", "[@common#input]", "files that were read, in the order given"})
        .member({"results", "[#block]", "blocks, by tensor, worst first"})
        .member({"tensors", "[#tensor]", "what the blocks are of: results of mx analyze, and maps"})
        .define("block", block)
        .define("rule", rule)
        .define("element", element_members)
        .define_more("tensor", "@members#result", view_members)
        .define("map", map_members)
        .define("region", region_members);
}

}  // namespace mx::show
