// SPDX-License-Identifier: Apache-2.0
#include "tests/parity/segments.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "libmx/base/half.hpp"
#include "libmx/pipeline/geometry.hpp"
#include "libmx/pipeline/panels.hpp"

namespace mx::tests {
namespace {

std::uint16_t to_bf16(float x) {
    const std::uint32_t u = base::bits_of(x);
    // NaN keeps a mantissa; the rest may be cut off.
    const bool is_nan = (u & base::f32_magnitude_mask) > base::f32_infinity;
    return static_cast<std::uint16_t>((u >> 16) | (is_nan ? 0x40u : 0u));
}

std::uint16_t to_half(float x) {
    const std::uint32_t magnitude = base::bits_of(x) & base::f32_magnitude_mask;
    const auto sign = static_cast<std::uint16_t>((base::bits_of(x) >> 16) & 0x8000u);
    if (magnitude > base::f32_infinity) return 0x7e01;
    if (magnitude == base::f32_infinity) return static_cast<std::uint16_t>(sign | 0x7c00u);
    return base::half_saturated(x);
}

template <class T>
void append(std::vector<std::byte>& to, const T* values, std::size_t count) {
    const auto* bytes = reinterpret_cast<const std::byte*>(values);
    to.insert(to.end(), bytes, bytes + count * sizeof(T));
}

// Member by member: padding has no meaning.
void append(std::vector<std::byte>& to, const block::segment_stats& s) {
    append(to, &s.count, 1);
    append(to, &s.block, 1);
    append(to, &s.sum, 1);
    append(to, &s.part, 1);
    append(to, &s.counted_max, 1);
}
void append(std::vector<std::byte>& to, const block::block_stats& s) {
    append(to, &s.count, 1);
    append(to, &s.sum, 1);
    append(to, &s.part, 1);
    append(to, &s.is, 1);
    append(to, &s.scale_code, 1);
    append(to, &s.offset, 1);
    append(to, &s.amax, 1);
    append(to, &s.x_max, 1);
    append(to, &s.x_min, 1);
    append(to, &s.counted_max, 1);
}

}  // namespace

stored_matrix make_matrix(tensor::dtype type, std::uint64_t rows, std::uint64_t cols,
                          const std::vector<block_kind>& kinds, const format::element_format& f,
                          std::uint64_t seed) {
    stored_matrix m{type, rows, cols, {}};
    const auto count = static_cast<std::size_t>(rows * cols);
    const std::size_t size = type == tensor::dtype::f32 ? 4 : 2;
    m.bytes.resize(count * size);
    for (std::size_t i = 0; i < count; i += 32) {
        const block_kind kind = kinds[i / 32 % kinds.size()];
        const std::vector<float> piece = make_block(kind, f, 32, seed + i);
        for (std::size_t k = i; k < std::min(i + 32, count); ++k) {
            const float x = piece[k - i];
            if (type == tensor::dtype::f32) {
                std::memcpy(m.bytes.data() + k * 4, &x, 4);
            } else {
                const std::uint16_t h = type == tensor::dtype::bf16 ? to_bf16(x) : to_half(x);
                std::memcpy(m.bytes.data() + k * 2, &h, 2);
            }
        }
    }
    return m;
}

std::vector<const quantize::driver*> drivers_here() {
    std::vector<const quantize::driver*> here;
    for (const quantize::driver& d : quantize::drivers()) {
        if (d.available()) here.push_back(&d);
    }
    return here;
}

std::vector<std::byte> everything(const quantize::driver& d, const stored_matrix& m,
                                  const quantize::recipe& r, quantize::detail wanted, bool parts) {
    std::string reason;
    const block::grid grid = pipeline::lay_out({m.rows, m.cols}, r, reason).value().grid;
    const block::view& v = grid.over;
    const quantize::block_params params = quantize::params_of(r);
    const quantize::stored_values all{m.type, m.bytes.data(), v.cols};
    quantize::block_run run;
    quantize::block_details details;
    details.wanted = wanted;
    details.parts = parts;
    std::vector<std::byte> out;
    const pipeline::panel whole{0, v.batch, 0, v.rows, 0, v.cols};
    pipeline::for_each_segment(grid, whole, [&](const pipeline::segment_in_panel& s) {
        const quantize::segment_place place{77,     s.first,         v.cols,         s.rows,
                                            s.cols, grid.block_rows, grid.block_cols};
        d.load(all.from((s.batch * v.rows + s.row) * v.cols + s.col), place, run);
        append(out, d.quantize(params, run, details));
        if (wanted == quantize::detail::none) return;
        append(out, details.scale_code.data(), run.blocks);
        append(out, details.offset.data(), run.blocks);
        append(out, details.amax.data(), run.blocks);
        append(out, details.x_max.data(), run.blocks);
        append(out, details.x_min.data(), run.blocks);
        for (std::size_t b = 0; b < run.blocks; ++b) {
            append(out, details.codes.data() + b * run.stride,
                   quantize::extent_of(place, b).size());
            if (wanted == quantize::detail::stats) append(out, details.stats.data()[b]);
        }
    });
    return out;
}

std::vector<std::byte> everything(quantize::segment_batch& batch, const stored_matrix& m,
                                  const matrix_part& part,
                                  const std::vector<quantize::recipe>& recipes) {
    std::string reason;
    const block::grid grid =
        pipeline::lay_out({m.rows, m.cols}, recipes.front(), reason).value().grid;
    const quantize::stored_values all{m.type, m.bytes.data(), m.cols};
    std::vector<quantize::batch_segment> segments;
    pipeline::for_each_segment(grid, {0, 1, part.row, part.rows, part.col, part.cols},
                               [&](const pipeline::segment_in_panel& s) {
                                   segments.push_back({{77, s.first, m.cols, s.rows, s.cols,
                                                        grid.block_rows, grid.block_cols},
                                                       s.row,
                                                       s.col});
                               });
    std::vector<quantize::block_params> params;
    for (const quantize::recipe& r : recipes) params.push_back(quantize::params_of(r));
    std::vector<quantize::batch_recipe> asked;
    for (std::size_t r = 0; r < params.size(); ++r) {
        asked.push_back({&params[r], static_cast<quantize::detail>((r + 2) % 3), r % 2 == 0});
    }
    batch.run({all.from(part.row * m.cols + part.col), part.rows, part.cols}, segments, asked);
    std::vector<std::byte> out;
    for (std::size_t s = 0; s < segments.size(); ++s) {
        for (std::size_t r = 0; r < asked.size(); ++r) {
            const quantize::batch_result got = batch.result(s, r);
            append(out, *got.stats);
            const quantize::details_view& d = got.details;
            append(out, &d.blocks, 1);
            append(out, &d.stride, 1);
            if (asked[r].wanted == quantize::detail::none) continue;
            append(out, d.scale_code, d.blocks);
            append(out, d.offset, d.blocks);
            append(out, d.amax, d.blocks);
            append(out, d.x_max, d.blocks);
            append(out, d.x_min, d.blocks);
            for (std::size_t b = 0; b < d.blocks; ++b) {
                append(out, d.codes + b * d.stride,
                       quantize::extent_of(segments[s].place, b).size());
                if (asked[r].wanted == quantize::detail::stats) append(out, d.stats[b]);
            }
        }
    }
    return out;
}

}  // namespace mx::tests
