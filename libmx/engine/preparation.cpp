// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/preparation.hpp"

#include "libmx/io/widen.hpp"

namespace mx::engine {
namespace {

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

void prepare(const preparation& how, const block::grid& g, const panel& where, std::span<float> x) {
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

codec::stored_values prepare(const preparation& how, const block::grid& g, const panel& where,
                             const codec::stored_values& from, base::aligned_buffer<float>& room) {
    const std::span<float> x(room.room_for(where.elements()), where.elements());
    const auto bytes = static_cast<std::uint64_t>(tensor::row_of(from.type).bits / 8);
    const bool whole = from.stride == where.cols;
    const std::uint64_t count = whole ? where.elements() : where.cols;
    for (std::uint64_t r = 0; r * count < where.elements(); ++r) {
        const std::span<const std::byte> stored(from.from(r * from.stride).data, count * bytes);
        io::widen(from.type, stored, 0, x.subspan(r * count, count));
    }
    prepare(how, g, where, x);
    return {tensor::dtype::f32, std::as_bytes(x).data(), where.cols};
}

bool alike(const preparation& how, const block::grid& a, const block::grid& b) {
    return !how.rotates() || (a.over == b.over && axis_of(a) == axis_of(b));
}

std::vector<float> prepared(const preparation& how, const block::grid& g,
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
