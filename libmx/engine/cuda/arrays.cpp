// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/cuda/arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "libmx/base/status.hpp"
#include "libmx/block/packing.hpp"
#include "libmx/engine/geometry.hpp"

namespace mx::engine::cuda {
namespace {

using base::cuda::held_memory;
using base::cuda::memory_kind;
using codec::cuda::array_results;

geometry laid_out(const tensor::shape& extents, const codec::recipe& r) {
    codec::require_blocks(r);
    std::string reason;
    std::optional<geometry> g = lay_out(extents, r, reason);
    if (!g) base::refuse(codec::to_string(r) + ": " + reason);
    return *std::move(g);
}

// Rotates every matrix in place, or back.
void rotate(array_quantizer& by, const codec::recipe& r, const block::grid& g, float* x,
            bool back) {
    const block::view& v = g.over;
    if (g.joint_rows == 1) {
        return by.rotate(r.rotate, x, v.batch * v.rows, v.cols, transform::run::row, back);
    }
    for (std::uint64_t m = 0; m < v.batch; ++m) {
        by.rotate(r.rotate, x + m * v.rows * v.cols, v.rows, v.cols, transform::run::column, back);
    }
}

// float32 numbers that live until the work that was queued with them is done.
class numbers {
  public:
    numbers(array_quantizer& by, std::uint64_t count) : memory_(by.memory(), memory_kind::device) {
        memory_.reserve(std::max<std::size_t>(1, count) * sizeof(float));
    }
    float* data() const { return reinterpret_cast<float*>(memory_.data()); }
    device_numbers all() const { return codec::cuda::numbers_at(data()); }

  private:
    held_memory memory_;
};

// An array, rotated if the recipe says so, and the parameters that follow from its values.
struct prepared {
    geometry layout;
    std::uint64_t count;
    std::optional<numbers> rotated;
    device_numbers x;
    codec::block_params params;

    prepared(array_quantizer& by, const array& a, const codec::recipe& r)
        : layout(laid_out(a.extents, r)), count(layout.grid.over.elements()), x(a.values) {
        if (r.rotate.what != transform::kind::none && count != 0) {
            rotated.emplace(by, count);
            by.start(codec::cuda::converted_numbers{a.values, rotated->all(), count});
            rotate(by, r, layout.grid, rotated->data(), false);
            x = rotated->all();
        }
        codec::tensor_facts facts;
        if (codec::needs_tensor_facts(r)) facts.amax_bits = by.finite_amax(x, count);
        params = codec::params_of(r, facts);
    }
};

}  // namespace

std::string obstacle(const codec::recipe& r, const tensor::shape& extents, bool packed) {
    if (!codec::has_blocks(r)) return "formats without blocks";
    if (codec::has_outer_areas(r)) return "outer scales of rows, columns and tiles";
    if (!r.outer.file.empty()) return "outer scales from a file";
    if (r.rotate.what == transform::kind::matrix) return "rotations by a matrix";
    if (packed && !codec::scales_have_codes(r)) return "scales without codes";
    if (packed && codec::bumps_positions(r)) return "scales that differ within a block";
    const block::grid g = laid_out(extents, r).grid;
    if (g.over.elements() == 0) return {};
    const block::segmentation s = block::segments_of(g);
    const std::uint64_t rows = std::min(g.over.rows, s.rows * g.block_rows);
    const std::uint64_t cols = std::min(g.over.cols, s.cols * g.block_cols);
    if (rows * cols > std::numeric_limits<std::int32_t>::max()) {
        return fmt::format("{} elements that belong together", rows * cols);
    }
    return {};
}

void fake_quantize(array_quantizer& by, const array& x, const codec::recipe& r, device_numbers to) {
    const prepared p(by, x, r);
    array_results results;
    results.values = p.rotated ? p.rotated->all() : to;
    results.row_step = p.layout.grid.over.cols;
    results.col_step = 1;
    by.quantize(p.params, p.layout.grid, x.tensor_id, p.x, results);
    if (!p.rotated) return;
    rotate(by, r, p.layout.grid, p.rotated->data(), true);
    by.start(codec::cuda::converted_numbers{p.rotated->all(), to, p.count});
}

codec::tensor_scale quantize(array_quantizer& by, const array& x, const codec::recipe& r,
                             const packed_array& to) {
    const prepared p(by, x, r);
    const int bits = block::packed_bits(r.element->bits());
    held_memory codes(by.memory(), memory_kind::device);
    array_results results;
    results.codes = to.codes;
    results.scale_codes = to.scale_codes;
    results.offsets = to.offsets;
    if (bits != 8 && p.count != 0) {
        results.codes = reinterpret_cast<std::uint8_t*>(codes.reserve(p.count));
    }
    by.quantize(p.params, p.layout.grid, x.tensor_id, p.x, results);
    if (bits != 8) {
        by.start(codec::cuda::packed_codes{results.codes, p.count, static_cast<std::uint32_t>(bits),
                                           to.codes});
    }
    return p.params.tensor;
}

void dequantize(array_quantizer& by, const codec::recipe& r, const tensor::shape& extents,
                const packed_array& from, float tensor_scale, device_numbers to) {
    const geometry layout = laid_out(extents, r);
    const std::uint64_t count = layout.grid.over.elements();
    codec::block_params params = codec::params_of(r);
    if (codec::has_tensor_scale(r)) codec::set_tensor_scale(params, tensor_scale);
    if (r.rotate.what == transform::kind::none || count == 0) {
        return by.dequantize(params, layout.grid, r.element->bits(), from, to);
    }
    const numbers rotated(by, count);
    by.dequantize(params, layout.grid, r.element->bits(), from, rotated.all());
    rotate(by, r, layout.grid, rotated.data(), true);
    by.start(codec::cuda::converted_numbers{rotated.all(), to, count});
}

measured measure(array_quantizer& by, const array& x, const codec::recipe& r) {
    const prepared p(by, x, r);
    measured m;
    m.tensor = p.params.tensor;
    array_results results;
    results.stats = &m.stats;
    by.quantize(p.params, p.layout.grid, x.tensor_id, p.x, results);
    return m;
}

}  // namespace mx::engine::cuda
