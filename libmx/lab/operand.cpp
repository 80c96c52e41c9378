// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/operand.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "libmx/codec/block_params.hpp"
#include "libmx/codec/quantizer.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/engine/amax_pass.hpp"
#include "libmx/studies/products/quantized_operand.hpp"
#include "libmx/transform/rotation.hpp"

namespace mx::lab {
namespace {

constexpr std::size_t segment_elements = std::size_t{1} << 14;

// `x` (rows x cols) transposed.
void transpose(const execution_context& on, const float* x, std::size_t rows, std::size_t cols,
               float* y) {
    on.run(jobs::transpose{{rows}, x, cols, y}, cols);
}

// The bits of the largest finite magnitude.
std::uint32_t finite_amax(execution_context& on, const float* x, std::size_t count) {
    if (on.device() == nullptr) return engine::finite_amax(std::span(x, count));
    return on.device()->quantizer().finite_amax(codec::cuda::numbers_at(x), count);
}

// Rotates in place, or back.
void turn(execution_context& on, const transform::rotation& rotate, float* x, std::size_t rows,
          std::size_t cols, axis over, bool back) {
    const auto along = over == axis::last ? transform::run::row : transform::run::column;
    const auto turned = [&](float* here) {
        (back ? transform::rotate_back : transform::rotate)(rotate, {here, rows, cols, cols},
                                                            along);
    };
    if (on.device() == nullptr) return turned(x);
    if (rotate.what != transform::kind::matrix) {
        return on.device()->quantizer().rotate(rotate, x, rows, cols, along, back);
    }
    on.note_copies("rotations by a matrix");
    std::vector<float> here = fetched(on, std::span<const float>(x, rows * cols));
    turned(here.data());
    send(on, std::span<const float>(here), x);
}

// Placement of a recipe's blocks in the matrix and of their values in the result.
struct layout {
    std::size_t block_rows, block_cols;
    bool across;  // blocks are columns, and each becomes a segment of a row of the result
};

codec::block_params params_of(execution_context& on, const codec::recipe& r, const matrix_view& m) {
    codec::tensor_facts facts;
    if (codec::needs_tensor_facts(r)) {
        facts.amax_bits = finite_amax(on, m.data, m.rows * m.cols);
    }
    codec::block_params p = codec::params_of(r, facts);
    p.seed ^= m.key.seed * 0x9e3779b97f4a7c15u;
    return p;
}

// Quantizes and decodes a matrix of the host. `to` is laid out like it, or transposed with
// layout::across.
template <typename T>
void quantize_here(execution_context& on, const codec::block_params& p, const matrix_view& m,
                   const layout& l, T* to) {
    const codec::recipe_request request{&p, codec::detail::codes, false, true, false, false};
    const std::size_t block_rows = std::min(l.block_rows, m.rows);
    const std::size_t block_cols = std::min(l.block_cols, m.cols);
    const float* const x = m.data;
    const std::size_t at_once =
        std::max<std::size_t>(1, segment_elements / (block_rows * m.cols)) * block_rows;
    on.split(m.rows, 2 * at_once, [&](std::size_t begin, std::size_t end, int thread) {
        std::vector<codec::placed_segment> segments;
        for (std::size_t row = begin; row < end; row += at_once) {
            codec::placed_segment s;
            s.place = {m.key.tensor, std::uint64_t{row} * m.cols,
                       m.cols,       std::min(at_once, end - row),
                       m.cols,       block_rows,
                       block_cols};
            s.row = row - begin;
            segments.push_back(s);
        }
        const codec::value_rectangle values{
            {tensor::dtype::f32, reinterpret_cast<const std::byte*>(x + begin * m.cols), m.cols},
            end - begin,
            m.cols};
        std::vector<T> tile;
        on.quantizer(thread).run(
            values, segments, std::span(&request, 1),
            [&](std::size_t i, std::span<const codec::segment_result> by_recipe) {
                const codec::block_results& d = by_recipe.front().of_blocks;
                const codec::segment_place& place = segments[i].place;
                const std::size_t first = begin + segments[i].row;
                const std::size_t across = (m.cols + block_cols - 1) / block_cols;
                const auto decode = [&](std::size_t b, std::size_t count, T* at) {
                    codec::values_of_block(p, d, b, std::span(at, count));
                };
                for (std::size_t b = 0; b < d.blocks; ++b) {
                    const std::size_t row = b / across * block_rows;
                    const std::size_t col = b % across * block_cols;
                    const std::size_t high =
                        std::min(block_rows, static_cast<std::size_t>(place.rows) - row);
                    const std::size_t wide = std::min(block_cols, m.cols - col);
                    const std::size_t at = first + row;
                    if (l.across && wide == 1) {
                        decode(b, high, to + col * m.rows + at);
                    } else if (high == 1) {
                        decode(b, wide, to + at * m.cols + col);
                    } else {
                        tile.resize(high * wide);
                        decode(b, tile.size(), tile.data());
                        for (std::size_t k = 0; k < high; ++k) {
                            std::copy_n(tile.data() + k * wide, wide, to + (at + k) * m.cols + col);
                        }
                    }
                }
            });
    });
}

// The same where `on` computes; on a device, recipes that trainings take, without outer scales of
// areas.
void quantize_blocks(execution_context& on, const codec::recipe& r, const matrix_view& m,
                     const layout& l, float* to) {
    const codec::block_params p = params_of(on, r, m);
    if (on.device() == nullptr) return quantize_here(on, p, m, l, to);
    codec::cuda::array_results results;
    results.values = codec::cuda::numbers_at(to);
    results.row_step = l.across ? 1 : m.cols;
    results.col_step = l.across ? m.rows : 1;
    const block::grid grid{{1, m.rows, m.cols}, l.block_rows, l.block_cols};
    on.device()->quantizer().quantize(p, grid, m.key.tensor, codec::cuda::numbers_at(m.data),
                                      results);
}

operand_view plain_view(const float* data, const matrix_view& m, axis over) {
    if (over == axis::last) return {data, m.rows, m.cols, false};
    return {data, m.cols, m.rows, true};
}

products::matrix as_matrix(execution_context& on, const matrix_view& m) {
    products::matrix copy;
    copy.rows = m.rows;
    copy.cols = m.cols;
    copy.shape = {m.rows, m.cols};
    copy.values = fetched(on, std::span(m.data, m.rows * m.cols));
    return copy;
}

}  // namespace

operand_view quantized(execution_context& on, const operand_rule& rule,
                       const transform::rotation& rotate, const matrix_view& given, axis over,
                       array& buffer) {
    const bool rotated = rotate.what != transform::kind::none;
    const bool plain = !rule.recipe || !rule.recipe->blocks;
    const bool as_it_is = plain && (!rule.recipe || rule.recipe->plain->name == "f32");
    if (as_it_is && !rotated) return plain_view(given.data, given, over);
    const std::size_t count = given.rows * given.cols;
    float* const to = buffer.reserve(on, rotated ? 2 * count : count);
    matrix_view m = given;
    if (rotated) {
        float* const turned = as_it_is ? to : to + count;
        copy_there(on, given.data, count, turned);
        turn(on, rotate, turned, m.rows, m.cols, over, false);
        m.data = turned;
        if (as_it_is) return plain_view(turned, m, over);
    }
    if (plain && rule.recipe->plain->name == "bf16") {
        on.run(jobs::round{{}, rounding::bf16_even, m.data, to}, count);
        return plain_view(to, m, over);
    }
    if (plain) {
        // Other formats without blocks, which no scheme uses, are converted as in mx layer.
        on.note_copies("formats without blocks");
        const products::quantized_operand q = products::quantize_operand(
            as_matrix(on, m),
            over == axis::last ? products::reduction::last : products::reduction::first,
            *rule.recipe, {}, engine::run_control());
        send(on, std::span<const float>(q.values), to);
        return {to, q.rows, q.depth, false};
    }
    const codec::recipe& r = *rule.recipe->blocks;
    if (over == axis::first && codec::bumps_positions(r)) {
        // Exponents are raised along rows of blocks, so these blocks must be rows.
        array turned;
        float* const rows = turned.reserve(on, count);
        transpose(on, m.data, m.rows, m.cols, rows);
        quantize_blocks(on, r, {rows, m.cols, m.rows, m.key},
                        {1, static_cast<std::size_t>(r.block.cols), false}, to);
        return {to, m.cols, m.rows, false};
    }
    layout l{static_cast<std::size_t>(r.block.rows), static_cast<std::size_t>(r.block.cols), false};
    if (over == axis::first) {
        if (l.block_rows == 1) {
            l = {l.block_cols, 1, true};
        } else if (l.block_cols == 1) {
            l = {1, l.block_rows, false};
        }
    }
    quantize_blocks(on, r, m, l, to);
    return l.across ? operand_view{to, m.cols, m.rows, false} : plain_view(to, m, over);
}

operand_view_of<double> quantized(execution_context& on, const operand_rule& rule,
                                  const transform::rotation& rotate, const matrix_view& given,
                                  array_of<double>& buffer) {
    const std::size_t count = given.rows * given.cols;
    double* const to = buffer.reserve(on, count);
    array narrow;
    const bool rotated = rotate.what != transform::kind::none;
    if (!rule.recipe || !rule.recipe->blocks) {
        std::copy_n(quantized(on, rule, rotate, given, axis::last, narrow).data, count, to);
        return {to, given.rows, given.cols, false};
    }
    matrix_view m = given;
    if (rotated) {
        float* const turned = narrow.reserve(on, count);
        copy_there(on, given.data, count, turned);
        turn(on, rotate, turned, m.rows, m.cols, axis::last, false);
        m.data = turned;
    }
    const codec::recipe& r = *rule.recipe->blocks;
    quantize_here(
        on, params_of(on, r, m), m,
        {static_cast<std::size_t>(r.block.rows), static_cast<std::size_t>(r.block.cols), false},
        to);
    return {to, m.rows, m.cols, false};
}

const float* quantized_copy(execution_context& on, const operand_rule& rule,
                            const transform::rotation& rotate, const matrix_view& m, axis over,
                            array& buffer) {
    const operand_view v = quantized(on, rule, rotate, m, over, buffer);
    if (v.data == m.data) return m.data;
    float* to = const_cast<float*>(v.data);  // points into `buffer`
    if (over == axis::first && !v.transposed) {
        array turned;
        float* const rows = turned.reserve(on, m.rows * m.cols);
        transpose(on, v.data, m.cols, m.rows, rows);
        copy_there(on, rows, m.rows * m.cols, to);
    }
    if (rotate.what != transform::kind::none) turn(on, rotate, to, m.rows, m.cols, over, true);
    return to;
}

}  // namespace mx::lab
