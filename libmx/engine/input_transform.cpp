// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/input_transform.hpp"

#include <algorithm>

#include "libmx/codec/simd/values.hpp"
#include "libmx/io/widen.hpp"

namespace mx::engine {
namespace {

// Elements that stay in the core's first cache from one step of a transform to the next.
constexpr std::uint64_t cached_elements = 8192;

void widen_values(const codec::stored_values& from, std::span<float> to) {
    if (from.type == tensor::dtype::bf16) {
        codec::simd::from_bf16(reinterpret_cast<const std::uint16_t*>(from.data), to.data(),
                               to.size());
        return;
    }
    io::widen(from.type, {from.data, tensor::stored_bytes(from.type, to.size())}, 0, to);
}

transform::run axis_of(const block::grid& g) {
    return g.joint_rows > 1 ? transform::run::column : transform::run::row;
}

// Calls turn(rows, axis) for the matrices of a panel; if rows are rotated, once for the rows of all
// matrices.
template <typename Turn>
void for_each_matrix(const block::grid& g, const panel& where, std::span<float> x, Turn&& turn) {
    const transform::run along = axis_of(g);
    if (along == transform::run::row) {
        turn(transform::float_rows{x.data(), where.batches * where.rows, where.cols, where.cols},
             along);
        return;
    }
    for (std::uint64_t b = 0; b < where.batches; ++b) {
        turn(transform::float_rows{x.data() + b * where.rows * where.cols, where.rows, where.cols,
                                   where.cols},
             along);
    }
}

}  // namespace

void prepare(const input_transform& how, const block::grid& g, const panel& where,
             std::span<float> x) {
    if (how.bias != 0) {
        for (float& v : x) v += how.bias;
    }
    if (how.factor != 1) {
        for (float& v : x) v *= how.factor;
    }
    if (!how.rotates()) return;
    for_each_matrix(g, where, x, [&](const transform::float_rows& rows, transform::run along) {
        transform::rotate(how.rotate, rows, along);
    });
}

codec::stored_values prepare(const input_transform& how, const block::grid& g, const panel& where,
                             const codec::stored_values& from,
                             base::aligned_buffer<float>& buffer) {
    const std::span<float> x(buffer.reserve(where.elements()), where.elements());
    const auto widen = [&](std::uint64_t first, std::uint64_t rows) {
        const bool whole = from.stride == where.cols;
        const std::uint64_t count = whole ? rows * where.cols : where.cols;
        for (std::uint64_t r = first; r < first + rows; r += count / where.cols) {
            widen_values(from.from(r * from.stride), x.subspan(r * where.cols, count));
        }
    };
    const std::uint64_t rows = where.batches * where.rows;
    if (axis_of(g) == transform::run::column) {
        widen(0, rows);
        prepare(how, g, where, x);
    } else {
        const std::uint64_t step = std::max<std::uint64_t>(1, cached_elements / where.cols);
        for (std::uint64_t r = 0; r < rows; r += step) {
            panel some = where;
            some.batches = 1;
            some.rows = std::min(step, rows - r);
            widen(r, some.rows);
            prepare(how, g, some, x.subspan(r * where.cols, some.elements()));
        }
    }
    return {tensor::dtype::f32, std::as_bytes(x).data(), where.cols};
}

bool alike(const input_transform& how, const block::grid& a, const block::grid& b) {
    return !how.rotates() || (a.over == b.over && axis_of(a) == axis_of(b));
}

std::vector<float> prepared(const input_transform& how, const block::grid& g,
                            std::span<const float> values) {
    std::vector<float> x(values.begin(), values.end());
    const block::view& v = g.over;
    prepare(how, g, {0, v.batch, 0, v.rows, 0, v.cols}, x);
    return x;
}

void rotate_back(const transform::rotation& r, const block::grid& g, const panel& where,
                 std::span<float> x) {
    for_each_matrix(g, where, x, [&](const transform::float_rows& rows, transform::run along) {
        transform::rotate_back(r, rows, along);
    });
}

}  // namespace mx::engine
