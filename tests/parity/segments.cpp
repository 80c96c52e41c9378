// SPDX-License-Identifier: Apache-2.0
#include "tests/parity/segments.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "libmx/base/half.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/panels.hpp"
#include "libmx/io/widen.hpp"

namespace mx::tests {
namespace {

std::uint16_t to_bf16(float x) {
    const std::uint32_t u = base::bits_of(x);
    // NaN keeps a mantissa bit; other values may be truncated.
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

// Member by member: padding has no meaning. Without the sums, which a segment may leave to the next
// of its run.
void append(std::vector<std::byte>& to, const block::segment_stats& s) {
    append(to, &s.count, 1);
    append(to, &s.block, 1);
    append(to, &s.max_error, 1);
    append(to, &s.counted_max, 1);
}
void append(std::vector<std::byte>& to, const block::exact_totals& sums) {
    block::each_exact_sum(
        [&](const base::exact_sum& s) {
            const std::string text = s.text() + ' ';
            append(to, text.data(), text.size());
        },
        sums);
}
void append(std::vector<std::byte>& to, const block::block_stats& s) {
    append(to, &s.count, 1);
    append(to, &s.sum, 1);
    append(to, &s.is, 1);
    append(to, &s.scale_code, 1);
    append(to, &s.scale, 1);
    append(to, &s.offset, 1);
    append(to, &s.amax, 1);
    append(to, &s.x_max, 1);
    append(to, &s.x_min, 1);
    append(to, &s.counted_max, 1);
}

// Appends the requested results; codes and values without the padding of blocks.
void append(std::vector<std::byte>& to, const codec::segment_place& place,
            const codec::segment_result& r, bool sums = true) {
    if (sums) append(to, *r.stats);
    const codec::block_results& d = r.of_blocks;
    append(to, &d.blocks, 1);
    append(to, &d.stride, 1);
    if (d.scale_code == nullptr) return;
    append(to, d.scale_code, d.blocks);
    append(to, d.offset, d.blocks);
    append(to, d.amax, d.blocks);
    append(to, d.x_max, d.blocks);
    append(to, d.x_min, d.blocks);
    for (std::size_t b = 0; b < d.blocks; ++b) {
        const std::size_t size = codec::extent_of(place, b).size();
        if (d.codes != nullptr) append(to, d.codes + b * d.stride, size);
        if (d.stats != nullptr) append(to, d.stats[b]);
        if (d.values != nullptr) append(to, d.values + b * d.stride, size);
        if (d.inputs != nullptr) append(to, d.inputs + b * d.stride, size);
    }
}

}  // namespace

codec::tensor_facts facts_of(const stored_matrix& m) {
    std::vector<float> values(m.rows * m.cols);
    io::widen(m.type, m.bytes, 0, values);
    std::uint32_t amax = 0;
    for (const float x : values) {
        if (base::is_finite(x)) amax = std::max(amax, base::bits_of(x) & base::f32_magnitude_mask);
    }
    return {amax};
}

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

std::vector<const codec::backend*> backends_here() {
    std::vector<const codec::backend*> here;
    for (const codec::backend& b : codec::backends()) {
        if (b.available()) here.push_back(&b);
    }
    return here;
}

std::vector<std::byte> everything(const codec::backend& b, const stored_matrix& m,
                                  const codec::recipe& r, codec::detail wanted, bool parts,
                                  bool sums) {
    std::string reason;
    const block::grid grid = engine::lay_out({m.rows, m.cols}, r, reason).value().grid;
    const block::view& v = grid.over;
    const codec::block_params params = codec::params_of(r, facts_of(m));
    const codec::value_rectangle all{{m.type, m.bytes.data(), v.cols}, v.batch * v.rows, v.cols};
    const bool stats = wanted == codec::detail::stats;
    const bool values = wanted >= codec::detail::codes;
    const codec::recipe_request request{&params, wanted, parts, values, stats, sums};
    const auto by = b.make_quantizer();
    std::vector<std::byte> out;
    block::exact_totals total;
    const engine::panel whole{0, v.batch, 0, v.rows, 0, v.cols};
    engine::for_each_segment(grid, whole, [&](const engine::segment_in_panel& s) {
        const codec::placed_segment segment{
            {77, s.first, v.cols, s.rows, s.cols, grid.block_rows, grid.block_cols},
            s.batch * v.rows + s.row,
            s.col};
        by->run(all, {&segment, 1}, {&request, 1},
                [&](std::size_t, std::span<const codec::segment_result> results) {
                    append(out, segment.place, results.front(), sums);
                    if (sums) total.merge(results.front().stats->sum);
                });
    });
    if (sums) append(out, total);
    return out;
}

std::string disagreement(const stored_matrix& m, const codec::recipe& r, codec::detail wanted,
                         bool parts) {
    const auto backends = backends_here();
    for (const bool sums : {true, false}) {
        // What is asked for without sums has kernels of its own.
        if (!sums && wanted == codec::detail::none) continue;
        const auto expected = everything(*backends.front(), m, r, wanted, parts, sums);
        for (const codec::backend* d : backends) {
            const auto got = everything(*d, m, r, wanted, parts, sums);
            if (got == expected) continue;
            std::size_t at = 0;
            while (at < got.size() && got[at] == expected[at]) ++at;
            return std::string(d->name) + (sums ? "" : " without sums") + " from byte " +
                   std::to_string(at);
        }
    }
    return "";
}

codec::recipe_request asked_of(const codec::block_params& params, std::size_t turn) {
    const bool codes = turn % 2 == 0;
    return {&params, codes ? codec::detail::codes : codec::detail::none, codes, turn % 4 == 2};
}

std::vector<std::byte> everything(codec::quantizer& by, const stored_matrix& m,
                                  const matrix_part& part,
                                  const std::vector<codec::recipe>& recipes) {
    std::string reason;
    const block::grid grid =
        engine::lay_out({m.rows, m.cols}, recipes.front(), reason).value().grid;
    const codec::stored_values all{m.type, m.bytes.data(), m.cols};
    std::vector<codec::placed_segment> segments;
    engine::for_each_segment(grid, {0, 1, part.row, part.rows, part.col, part.cols},
                             [&](const engine::segment_in_panel& s) {
                                 segments.push_back({{77, s.first, m.cols, s.rows, s.cols,
                                                      grid.block_rows, grid.block_cols},
                                                     s.row,
                                                     s.col});
                             });
    std::vector<codec::block_params> params;
    const codec::tensor_facts facts = facts_of(m);
    for (const codec::recipe& r : recipes) params.push_back(codec::params_of(r, facts));
    std::vector<codec::recipe_request> asked;
    for (std::size_t r = 0; r < params.size(); ++r) asked.push_back(asked_of(params[r], r));
    std::vector<std::byte> out;
    std::vector<block::exact_totals> totals(recipes.size());
    by.run({all.from(part.row * m.cols + part.col), part.rows, part.cols}, segments, asked,
           [&](std::size_t s, std::span<const codec::segment_result> results) {
               append(out, &s, 1);  // each of them once, in order
               for (std::size_t r = 0; r < results.size(); ++r) {
                   append(out, segments[s].place, results[r]);
                   totals[r].merge(results[r].stats->sum);
               }
           });
    for (const block::exact_totals& t : totals) append(out, t);
    return out;
}

}  // namespace mx::tests
