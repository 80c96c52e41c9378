// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/pipeline/convert.hpp"
#include "libmx/pipeline/destination.hpp"
#include "libmx/pipeline/geometry.hpp"
#include "libmx/pipeline/packed_file.hpp"
#include "libmx/pipeline/packed_read.hpp"
#include "libmx/pipeline/panels.hpp"
#include "libmx/pipeline/preparation.hpp"
#include "libmx/quantize/block_kernel.hpp"

namespace mx::pipeline {
namespace {

// The open parts of one packed tensor.
struct parts {
    std::unique_ptr<io::byte_source> codes, scales, offsets;
};

// Scales as numbers, whatever holds them.
std::vector<float> read_scales(const io::byte_source& source, const quantize::block_params& p,
                               std::uint64_t first, std::uint64_t count) {
    const bool has_codes =
        p.scale_format->has_codes() && p.by->storage.value == quantize::scale_storage::code;
    if (!has_codes) return read_run<float>(source, first, count);
    std::vector<float> scales;
    for (const std::uint8_t code : read_run<std::uint8_t>(source, first, count)) {
        scales.push_back(format::decode_scale(*p.scale_format, code));
    }
    return scales;
}

// The parameters of one tensor of a packed file, whose tensor scale the file holds.
quantize::block_params params_of(const io::reader& file, const packed_model& model,
                                 const packed_tensor& t) {
    quantize::block_params params = quantize::params_of(model.recipe);
    if (!t.tensor_scale) return params;
    const float stored = read_run<float>(*file.open(*t.tensor_scale), 0, 1).front();
    try {
        quantize::set_tensor_scale(params, stored);
    } catch (const base::error& e) {
        throw base::error(e.kind(), e.message(), {path_of(file), t.name, {}});
    }
    return params;
}

void dequantize_panel(const quantize::block_params& params, const transform::rotation& rotated,
                      const block::grid& g, const panel& p, const parts& from, int bits,
                      io::array_writer& writer, std::size_t array) {
    const block::view& v = g.over;
    std::vector<std::uint8_t> codes(p.elements());
    for (std::uint64_t r = 0; r < p.batches * p.rows; ++r) {
        const std::uint64_t first = (p.batch * v.rows + p.row + r) * v.cols + p.col;
        read_codes(*from.codes, bits, first, std::span(codes).subspan(r * p.cols, p.cols));
    }
    const std::uint64_t run = (p.cols + g.block_cols - 1) / g.block_cols;
    std::uint64_t run_first = ~std::uint64_t{0};
    std::vector<float> scales;
    std::vector<std::uint16_t> offsets;
    std::vector<float> values(p.elements());
    std::vector<std::uint8_t> block_codes;
    std::vector<float> block_values;
    for_each_block(
        g, {1, run}, p,
        [&](const block_in_panel& b) {
            if (run_first == ~std::uint64_t{0} || b.index - run_first >= run) {
                run_first = b.index;
                scales = read_scales(*from.scales, params, run_first, run);
                if (from.offsets) offsets = read_run<std::uint16_t>(*from.offsets, run_first, run);
            }
            const std::size_t i = b.index - run_first;
            const auto cols = static_cast<std::size_t>(b.cols);
            block_codes.resize(static_cast<std::size_t>(b.rows) * cols);
            block_values.resize(block_codes.size());
            for (std::size_t r = 0; r < static_cast<std::size_t>(b.rows); ++r) {
                const auto row = std::span(codes).subspan(b.at + r * p.cols, cols);
                std::copy(row.begin(), row.end(),
                          block_codes.begin() + static_cast<std::ptrdiff_t>(r * cols));
            }
            const std::uint16_t offset = from.offsets ? offsets[i] : std::uint16_t{0};
            quantize::dequantize_block(params, scales[i], offset, block_codes, block_values);
            for (std::size_t r = 0; r < static_cast<std::size_t>(b.rows); ++r) {
                const auto row = std::span(block_values).subspan(r * cols, cols);
                std::copy(row.begin(), row.end(),
                          values.begin() + static_cast<std::ptrdiff_t>(b.at + r * p.cols));
            }
        },
        [] {});
    if (rotated.what != transform::kind::none) rotate_back(rotated, g, p, values);
    for (std::uint64_t r = 0; r < p.batches * p.rows; ++r) {
        const std::uint64_t first = (p.batch * v.rows + p.row + r) * v.cols + p.col;
        writer.write(array, first * sizeof(float),
                     std::as_bytes(std::span(values).subspan(r * p.cols, p.cols)));
    }
}

}  // namespace

conversion dequantize_model(const io::reader& file, const std::string& out,
                            const run_control& control) {
    const packed_model model = read_packed(file);
    conversion result;
    std::vector<io::planned_array> plan;
    for (const packed_tensor& t : model.tensors) {
        plan.push_back({t.name, tensor::dtype::f32, t.shape});
        result.elements += *tensor::element_count(t.shape);
    }
    result.tensors = model.tensors.size();
    result.bytes_written = result.elements * sizeof(float);
    const std::unique_ptr<io::array_writer> writer =
        create_destination(out, plan, {{recipe_key_name, quantize::to_string(model.recipe)}});
    std::uint64_t done = 0;
    for (std::size_t i = 0; i < model.tensors.size(); ++i) {
        const packed_tensor& t = model.tensors[i];
        std::string reason;
        const block::grid g = lay_out(t.shape, model.recipe, reason)->grid;
        if (g.over.elements() == 0) continue;
        parts from{file.open(t.codes), file.open(t.scales),
                   t.offsets ? file.open(*t.offsets) : nullptr};
        const quantize::block_params params = params_of(file, model, t);
        const panel_plan panels(g.over, std::span(&g, 1));
        base::parallel_for(panels.count(), control.threads, control.cancel,
                           [&](std::uint64_t at, int) {
                               dequantize_panel(params, model.recipe.rotate, g, panels.at(at), from,
                                                model.recipe.element->bits(), *writer, i);
                           });
        done += g.over.elements();
        if (control.on_progress) control.on_progress({done, result.elements});
    }
    writer->commit();
    return result;
}

}  // namespace mx::pipeline
