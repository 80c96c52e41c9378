// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/quantized_operand.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <span>

#include "libmx/base/parallel.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/amax_pass.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/panel_quantizer.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/shared_formats.hpp"
#include "libmx/format/wide_formats.hpp"
#include "libmx/gemm/operand_formats.hpp"
#include "libmx/studies/products/conversions.hpp"

namespace mx::products {
namespace {

// The position in the operand of an element of the stored matrix.
struct place_in_operand {
    std::size_t depth;
    reduction over;
    std::size_t row(std::size_t r, std::size_t c) const { return over == reduction::last ? r : c; }
    std::size_t k(std::size_t r, std::size_t c) const { return over == reduction::last ? c : r; }
    std::size_t at(std::size_t r, std::size_t c) const { return row(r, c) * depth + k(r, c); }
};

// The kind of scales for accumulator models, or 0.
std::uint32_t scaling_of(const codec::recipe& r, std::size_t block) {
    if (r.offset != codec::offset_kind::none) return 0;
    const gemm::operand_scale* row = gemm::find_operand_scale(r.scale_format->name, block);
    return row == nullptr ? 0u : std::uint32_t{row->bit};
}

// Whether the codes of a block determine its values: a dialect can return others.
bool same_values(const codec::block_params& p, float scale, std::span<const std::uint8_t> codes,
                 std::span<const float> values) {
    for (std::size_t i = 0; i < codes.size(); ++i) {
        const float own =
            static_cast<float>(static_cast<double>(scale) * static_cast<double>(p.value[codes[i]]));
        if (!(own == values[i]) && !(std::isnan(own) && std::isnan(values[i]))) return false;
    }
    return true;
}

// `r` for the stored matrix: blocks along k run along its columns if these are summed over. Tiles
// are those of the matrix.
codec::recipe as_stored(codec::recipe r, reduction over) {
    using kind = codec::outer_choice::kind;
    if (over == reduction::last || (r.block.rows != 1 && r.block.cols != 1)) return r;
    std::swap(r.block.rows, r.block.cols);
    std::swap(r.outer.rows, r.outer.cols);
    if (r.outer.what == kind::row) {
        r.outer.what = kind::column;
    } else if (r.outer.what == kind::column) {
        r.outer.what = kind::row;
    }
    return r;
}

block::grid grid_of(const matrix& m, const codec::recipe& stored) {
    block::grid g{{1, m.rows, m.cols},
                  static_cast<std::uint64_t>(stored.block.rows),
                  static_cast<std::uint64_t>(stored.block.cols)};
    std::string reason;
    if (codec::has_outer_areas(stored) && !engine::lay_areas(g, stored, reason)) {
        base::refuse(reason, {m.file, m.name, {}});
    }
    return g;
}

// `x`: the stored matrix, rotated.
void quantize_blocks(const matrix& m, std::span<const float> x, reduction over,
                     const codec::recipe& r, const engine::run_control& control,
                     quantized_operand& q) {
    const bool along = r.block.rows == 1;
    const auto length = static_cast<std::size_t>(r.block.cols);
    const block::grid grid = grid_of(m, as_stored(r, over));
    const bool areas = grid.has_areas();
    q.scaled_along_k = areas && (over == reduction::last ? grid.area_cols() : grid.area_rows()) > 1;

    const codec::block_params params = codec::params_of(r, {engine::finite_amax(x)});
    const place_in_operand to{q.depth, over};
    const gemm::operand_format* format = gemm::find_operand_format(r.element->name);
    const std::uint32_t scaling = along && !q.scaled_along_k ? scaling_of(r, length) : 0;
    const bool coded = format != nullptr && scaling != 0;
    const std::size_t scales_per_row = (q.depth + length - 1) / length;
    if (coded) {
        q.coded.rows = q.rows;
        q.coded.depth = q.depth;
        q.coded.codes.resize(x.size());
        q.coded.scaling = scaling;
        q.coded.scale_block = length;
        q.coded.scales.resize(q.rows * scales_per_row);
        q.coded.tensor_scale = params.tensor.decode;
        if (areas) q.coded.row_scales.resize(q.rows);
    }
    // Only for power-of-two scales: with a tensor scale, `values` are rounded but codes are not.
    const bool checked = coded && r.scale_format->power_of_two();
    std::atomic<bool> faithful{true};
    const std::uint64_t tensor = base::tensor_id(m.name);
    const engine::panel_plan panels(grid.over, std::span(&grid, 1));
    const codec::recipe_request request{&params, codec::detail::codes, false, true, false, false};
    std::deque<engine::panel_quantizer> quantizers;  // by thread
    for (int i = 0; i < base::thread_count(control.threads); ++i) quantizers.emplace_back(control);
    const auto on_segment = [&](const engine::panel& where, const engine::quantized_segment& s) {
        const codec::block_results& d = s.by_recipe.front().of_blocks;
        std::vector<float> values;
        if (coded && areas) {  // a segment covers all of k for some rows of the operand
            const auto r0 = static_cast<std::size_t>(where.row + s.at.row);
            const auto c0 = static_cast<std::size_t>(where.col + s.at.col);
            const std::uint64_t count = over == reduction::last ? s.at.rows : s.at.cols;
            std::fill_n(q.coded.row_scales.begin() + static_cast<std::ptrdiff_t>(to.row(r0, c0)),
                        count, s.by_recipe.front().outer.decode);
        }
        for (std::size_t b = 0; b < d.blocks; ++b) {
            const codec::block_extent e = codec::extent_of(s.place, b);
            const auto r0 = static_cast<std::size_t>(where.row + s.at.row + e.row);
            const auto c0 = static_cast<std::size_t>(where.col + s.at.col + e.col);
            const auto across = static_cast<std::size_t>(e.cols);
            const std::span codes(d.codes + b * d.stride, e.size());
            values.resize(e.size());
            codec::values_of_block(params, d, b, values);
            for (std::size_t i = 0; i < e.size(); ++i) {
                const std::size_t at = to.at(r0 + i / across, c0 + i % across);
                q.values[at] = values[i];
                if (coded) q.coded.codes[at] = codes[i];
            }
            if (!coded) continue;
            q.coded.scales[to.row(r0, c0) * scales_per_row + to.k(r0, c0) / length] =
                d.scale_code[b];
            if (checked &&
                !same_values(params, codec::scale_of_block(params, d, b), codes, values)) {
                faithful = false;
            }
        }
    };
    base::parallel_for(
        panels.count(), control.threads, control.cancel, [&](std::uint64_t i, int thread) {
            const engine::panel where = panels.at(i);
            const codec::stored_values all{tensor::dtype::f32, std::as_bytes(x).data(), m.cols};
            quantizers[static_cast<std::size_t>(thread)].run(
                grid, where, all.from(where.row * m.cols + where.col), tensor, {&request, 1},
                [&](const engine::quantized_segment& s) { on_segment(where, s); });
        });
    if (coded && faithful) q.coded.format = format;
}

// Codes of an element format without blocks; `x` is in the operand's layout.
void cast_elements(std::span<const float> x, const operand_recipe& r, quantized_operand& q) {
    const format::element_format& f = *r.plain->element;
    const format::element_params params = format::params_of(f, false);
    const format::rounding_mode mode{format::rounding::rtne, format::tie_rule::up, 32};
    const float amax = base::float_from_bits(engine::finite_amax(x));
    const float scale = r.tensor_scaled ? codec::whole_scale(f, amax) : 1.0f;
    q.coded.rows = q.rows;
    q.coded.depth = q.depth;
    q.coded.format = gemm::find_operand_format(f.name);
    q.coded.codes.resize(x.size());
    q.coded.tensor_scale = scale;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::uint32_t code =
            format::cast_code(params, mode, base::bits_of(x[i] / scale), true, 0);
        q.coded.codes[i] = code;
        q.values[i] = format::decode(f, code) * scale;
    }
}

}  // namespace

quantized_operand quantize_operand(const matrix& m, reduction over, const operand_recipe& recipe,
                                   const transform::rotation& rotate,
                                   const engine::run_control& control) {
    quantized_operand q;
    q.recipe = recipe;
    q.rotated = rotate;
    q.rows = operand_rows(m, over);
    q.depth = operand_depth(m, over);
    std::vector<float> x = m.values;
    if (rotate.what != transform::kind::none) {
        transform::rotate(rotate, {x.data(), m.rows, m.cols, m.cols},
                          over == reduction::last ? transform::run::row : transform::run::column);
    }
    if (recipe.blocks) {
        q.values.resize(x.size());
        quantize_blocks(m, x, over, *recipe.blocks, control, q);
        x = reduction_last(x, m.rows, m.cols, over);
    } else {
        x = reduction_last(x, m.rows, m.cols, over);
        q.values = x;
        if (recipe.plain->element != nullptr) {
            cast_elements(x, recipe, q);
        } else if (const auto* const f = format::find_shared_format(recipe.plain->name)) {
            const float amax = base::float_from_bits(engine::finite_amax(x));
            format::round_to_shared(*f, amax, q.depth, q.values);
            q.coded = values_operand("f32", q.values, q.rows, q.depth);
        } else {
            format::round_to_wide(recipe.plain->name, q.values);
            q.coded = values_operand(recipe.plain->name, q.values, q.rows, q.depth);
        }
    }
    q.error = compare_values(x, q.values);
    return q;
}

std::vector<float> values_as_stored(const quantized_operand& q, reduction over) {
    // In the operand's layout the rotated axis is the last one.
    std::vector<float> x = q.values;
    if (q.rotated.what != transform::kind::none) {
        transform::rotate_back(q.rotated, {x.data(), q.rows, q.depth, q.depth},
                               transform::run::row);
    }
    // Transposing the operand once more gives the matrix.
    return reduction_last(x, q.rows, q.depth, over);
}

}  // namespace mx::products
