// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "libmx/analysis/result.hpp"
#include "libmx/base/half.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/show/scale_family.hpp"
#include "libmx/studies/show/tensor_view.hpp"

namespace mx::show {
namespace {

using report::tally;
using report::to_value;

report::value finite(double x) { return std::isfinite(x) ? report::value(x) : report::value(); }
report::value finite(float x) { return finite(static_cast<double>(x)); }

template <typename Range, typename Make>
report::list list_of(const Range& range, Make&& make) {
    report::list list;
    for (const auto& x : range) list.emplace_back(make(x));
    return list;
}

report::list integers(const std::vector<std::uint64_t>& numbers) {
    return list_of(numbers, [](std::uint64_t n) { return tally(n); });
}

report::value scale_code(const codec::recipe& r, const block::block_stats& s) {
    if (!codec::scales_have_codes(r)) return {};
    return fmt::format("0x{:02x}", s.scale_code);
}

report::record element_record(const element& e, int bits) {
    return {{"index", tally(e.index)},
            {"stored", finite(e.stored)},
            {"x", finite(e.x)},
            {"y", finite(e.y)},
            {"code", fmt::format("0x{:0{}x}", e.code, (bits + 3) / 4)},
            {"q", finite(e.q)},
            {"value", finite(e.value)},
            {"error", finite(e.error())},
            {"clamped", e.clamped},
            {"underflow", e.underflow},
            {"largest", e.largest}};
}

// Counts and figures of a block under a recipe.
void add_figures(report::record& to, const codec::recipe& r, const block::block_stats& s,
                 double scale) {
    const region f = region_of(s);
    to.emplace_back("scale", finite(scale));
    to.emplace_back("scale_code", scale_code(r, s));
    to.emplace_back("nan", tally(s.count.nan));
    to.emplace_back("inf", tally(s.count.inf));
    to.emplace_back("poisoned", tally(s.count.poisoned));
    to.emplace_back("clamp", tally(s.count.clamp));
    to.emplace_back("top_code", tally(s.count.top_code));
    to.emplace_back("underflow", tally(s.count.underflow));
    to.emplace_back("nrmse", f.x2 > 0 ? report::value(f.error()) : report::value());
    to.emplace_back("squared_error", s.sum.error2);
    to.emplace_back("max_abs_error", s.sum.max_error);
}

report::record rule_record(const tensor_view& v, const rule_outcome& o) {
    const codec::recipe& r = v.family[o.recipe];
    report::record record{{"rule", rule_words(r)}, {"recipe", codec::to_string(r)}};
    add_figures(record, r, o.stats, o.scale);
    record.emplace_back("tensor_sqnr_db", to_value(v.results[o.recipe].sqnr_db));
    return record;
}

report::record region_record(const region& r) {
    return {{"blocks", tally(r.blocks)},
            {"elements", tally(r.elements)},
            {"not_finite", tally(r.not_finite)},
            {"poisoned", tally(r.poisoned)},
            {"clamp", tally(r.clamp)},
            {"underflow", tally(r.underflow)},
            {"saturated_blocks", tally(r.saturated)},
            {"squared_error", r.error2},
            {"nrmse", r.x2 > 0 ? report::value(r.error()) : report::value()},
            {"max_nrmse", r.max_error},
            {"max_clamp_share", r.max_clamp},
            {"max_underflow_share", r.max_underflow}};
}

report::record map_record(const tensor_view& v) {
    const map_layout& l = v.layout;
    return {{"block_rows", tally(l.lines)},
            {"block_columns", tally(l.across)},
            {"folded", l.folded},
            {"rows", tally(l.rows)},
            {"columns", tally(l.columns)},
            {"cell_block_rows", tally(l.tall)},
            {"cell_block_columns", tally(l.wide)},
            {"cells", list_of(v.cells, region_record)}};
}

}  // namespace

report::record block_record(const tensor_view& v, const block_view& b) {
    const codec::recipe& r = v.recipe();
    const io::tensor_info& info = v.tensor.info();
    report::record record{
        {"file", info.file},
        {"tensor", info.name},
        {"recipe", codec::to_string(r)},
        {"block", tally(b.index)},
        {"first", integers(b.first)},
        {"last", integers(b.last)},
        {"rows", tally(b.rows)},
        {"columns", tally(b.cols)},
        {"elements", tally(b.size)},
        {"amax", finite(base::float_from_bits(b.stats.x_max))},
        {"offset", r.offset == codec::offset_kind::none ? report::value() : finite(b.offset)}};
    add_figures(record, r, b.stats, b.scale);
    record.emplace_back("rules",
                        list_of(b.rules, [&](const auto& o) { return rule_record(v, o); }));
    record.emplace_back("values", list_of(b.elements, [&](const element& e) {
                            return element_record(e, r.element->bits());
                        }));
    return record;
}

report::record tensor_record(const tensor_view& v) {
    report::record record = analysis::record_of(v.results.front());
    record.emplace_back("block_grid", integers(v.geometry.grid_shape));
    record.emplace_back("map", map_record(v));
    record.emplace_back("band_block_rows", tally(v.band_lines));
    record.emplace_back("bands", list_of(v.bands, region_record));
    return record;
}

}  // namespace mx::show
