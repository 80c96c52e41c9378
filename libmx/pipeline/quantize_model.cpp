// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "libmx/pipeline/code_stream.hpp"
#include "libmx/pipeline/convert.hpp"
#include "libmx/pipeline/destination.hpp"
#include "libmx/pipeline/packed_file.hpp"
#include "libmx/pipeline/quantize_panel.hpp"
#include "libmx/pipeline/run_buffer.hpp"
#include "libmx/pipeline/skip.hpp"
#include "libmx/pipeline/sweep.hpp"

namespace mx::pipeline {
namespace {

// Where the parts of a tensor stand in the writer's plan.
struct parts {
    geometry layout;
    std::size_t data = 0;  // values, or codes when packed
    std::size_t scales = 0;
    std::size_t offsets = 0;
    std::unique_ptr<code_stream> codes;
};

// Copies a block's results into a panel-shaped buffer.
template <typename T>
void scatter(std::span<const T> from, const block_in_panel& b, std::uint64_t panel_cols,
             std::vector<T>& to) {
    const auto cols = static_cast<std::size_t>(b.cols);
    for (std::size_t r = 0; r < static_cast<std::size_t>(b.rows); ++r) {
        const auto row = from.subspan(r * cols, cols);
        std::copy(row.begin(), row.end(),
                  to.begin() + static_cast<std::ptrdiff_t>(b.at + r * panel_cols));
    }
}

// Calls write(first element, offset in the panel, count) for every contiguous run of a panel.
template <typename Write>
void for_each_run(const panel& p, const block::view& v, Write&& write) {
    const std::uint64_t start = (p.batch * v.rows + p.row) * v.cols + p.col;
    if (p.cols == v.cols) return write(start, std::uint64_t{0}, p.elements());
    for (std::uint64_t r = 0; r < p.rows; ++r) write(start + r * v.cols, r * p.cols, p.cols);
}

}  // namespace

conversion quantize_model(const std::vector<tensor_ref>& tensors, const quantize::recipe& recipe,
                          bool packed, const std::string& out, const run_control& control) {
    conversion result;
    std::vector<tensor_ref> chosen;
    std::vector<parts> layouts;
    std::vector<io::planned_array> plan;
    std::vector<pass> passes;
    const bool has_offset = recipe.offset == quantize::offset_kind::fp16;
    io::metadata_map metadata{{recipe_key_name, quantize::to_string(recipe)}};
    if (packed) metadata[schema_key_name] = packed_schema;
    for (const tensor_ref& t : numeric_only(tensors, result.skipped)) {
        const io::tensor_info& info = t.info();
        std::string reason;
        std::optional<geometry> layout = lay_out(info.shape, recipe, reason);
        if (!layout) {
            result.skipped.push_back({info.file, info.name, quantize::to_string(recipe), reason});
            continue;
        }
        parts p;
        p.layout = *layout;
        p.data = plan.size();
        if (packed) {
            plan.push_back(codes_array(info.name, recipe.element->safetensors,
                                       recipe.element->bits(), info.shape));
            p.scales = plan.size();
            plan.push_back({info.name + ".scales", tensor::dtype::f8_e8m0, layout->grid_shape});
            p.offsets = plan.size();
            if (has_offset) {
                plan.push_back({info.name + ".offsets", tensor::dtype::f16, layout->grid_shape});
            }
            metadata[tensor_key(info.name)] = tensor_entry(info);
        } else {
            plan.push_back({info.name, tensor::dtype::f32, info.shape});
        }
        const grid_job job{chosen.size(), layout->grid};
        if (info.elements != 0) {
            passes.push_back(plan_passes(chosen.size(), std::span(&job, 1)).front());
        }
        result.elements += info.elements;
        chosen.push_back(t);
        layouts.push_back(std::move(p));
    }
    result.tensors = chosen.size();
    for (const io::planned_array& a : plan) {
        result.bytes_written += *tensor::byte_count(a.type, *tensor::element_count(a.shape));
    }

    const std::unique_ptr<io::array_writer> writer = create_destination(out, plan, metadata);
    for (std::size_t t = 0; t < chosen.size(); ++t) {
        layouts[t].codes = std::make_unique<code_stream>(
            *writer, layouts[t].data, recipe.element->bits(), chosen[t].info().elements);
    }
    const quantize::block_params params = quantize::params_of(recipe);

    sweep(chosen, passes, control, panel_form::widened, [&](const loaded_panel& p) {
        const parts& to = layouts[p.of->tensor];
        const block::grid& grid = to.layout.grid;
        block_scratch scratch;
        std::vector<std::uint8_t> panel_codes(packed ? p.x.size() : 0);
        std::vector<float> panel_values(packed ? 0 : p.x.size());
        std::vector<float> values;
        run_buffer<std::uint8_t> scales(*writer, to.scales);
        run_buffer<std::uint16_t> offsets(*writer, to.offsets);
        quantize_panel(
            params, base::tensor_id(chosen[p.of->tensor].info().name), grid, p.where, p.x, scratch,
            [&](const block_in_panel& at, const block::block_stats& stats,
                std::span<const std::uint8_t> codes) {
                if (packed) {
                    scatter(codes, at, p.where.cols, panel_codes);
                    scales.put(at.index, stats.scale_code);
                    if (has_offset) offsets.put(at.index, stats.offset);
                } else {
                    values.resize(codes.size());
                    quantize::dequantize_block(params, stats.scale, stats.offset, codes, values);
                    scatter(std::span<const float>(values), at, p.where.cols, panel_values);
                }
            },
            [] {});
        scales.flush();
        offsets.flush();
        for_each_run(p.where, grid.over,
                     [&](std::uint64_t first, std::uint64_t at, std::uint64_t count) {
                         if (packed) {
                             to.codes->put(first, std::span(panel_codes).subspan(at, count));
                         } else {
                             const auto run = std::span(panel_values).subspan(at, count);
                             writer->write(to.data, first * sizeof(float), std::as_bytes(run));
                         }
                     });
    });
    writer->commit();
    return result;
}

}  // namespace mx::pipeline
