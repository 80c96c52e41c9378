// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/product.hpp"

#include <algorithm>

#include "libmx/lab/cuda/device_arrays.hpp"

namespace mx::lab {
namespace {

constexpr std::size_t most_rows = 16, most_columns = 32;  // of a tile
constexpr std::size_t depth_at_once = 256;  // so that a panel of B stays in the nearest cache
constexpr std::size_t rows_at_once = 96;    // and the rows of A in the next one

template <typename T>
std::size_t columns_of(const simd::kernels& by) {
    return by.tile_columns * sizeof(float) / sizeof(T);
}
void run_tile(const simd::kernels& by, const simd::product_tile<float>& t) { by.product(t); }
void run_tile(const simd::kernels& by, const simd::product_tile<double>& t) {
    by.product_float64(t);
}

// Panels of B: element (k, j) of panel p at (p * depth + k) * columns + j, zeros beyond the rows.
template <typename T>
void pack(const operand_view_of<T>& b, std::size_t columns, std::size_t begin, std::size_t end,
          T* to) {
    for (std::size_t p = begin; p < end; ++p) {
        T* const panel = to + p * b.depth * columns;
        const std::size_t first = p * columns;
        const std::size_t count = std::min(columns, b.rows - first);
        if (count < columns) std::fill_n(panel, b.depth * columns, T{0});
        if (b.transposed) {
            for (std::size_t k = 0; k < b.depth; ++k) {
                std::copy_n(b.data + k * b.rows + first, count, panel + k * columns);
            }
            continue;
        }
        for (std::size_t j = 0; j < count; ++j) {
            const T* const row = b.data + (first + j) * b.depth;
            for (std::size_t k = 0; k < b.depth; ++k) panel[k * columns + j] = row[k];
        }
    }
}

template <typename T>
struct tile_maker {
    const simd::kernels& by;
    const operand_view_of<T>& a;
    const T* panels;      // of B
    std::size_t columns;  // of C
    T* c;
    std::size_t wide_tile = columns_of<T>(by);

    // Rows [row, row + rows) of A against one panel, for `depth` elements from `k`.
    void run(std::size_t row, std::size_t rows, std::size_t panel, std::size_t k,
             std::size_t depth) const {
        const std::size_t col = panel * wide_tile;
        const std::size_t wide = std::min(wide_tile, columns - col);
        simd::product_tile<T> t;
        t.a_row = a.transposed ? 1 : a.depth;
        t.a_depth = a.transposed ? a.rows : 1;
        t.a = a.data + row * t.a_row + k * t.a_depth;
        t.b = panels + (panel * a.depth + k) * wide_tile;
        t.depth = depth;
        t.c = c + row * columns + col;
        t.c_row = columns;
        t.first = k == 0;
        if (rows == by.tile_rows && wide == wide_tile) return run_tile(by, t);
        // At the edge, in a buffer of its own.
        T some[most_rows * depth_at_once];
        T sums[most_rows * most_columns] = {};
        if (rows < by.tile_rows) {
            std::fill_n(some, by.tile_rows * depth, T{0});
            for (std::size_t r = 0; r < rows; ++r) {
                for (std::size_t i = 0; i < depth; ++i) {
                    some[r * depth + i] = t.a[r * t.a_row + i * t.a_depth];
                }
            }
            t.a = some;
            t.a_row = depth;
            t.a_depth = 1;
        }
        T* const to = t.c;
        if (!t.first) {
            for (std::size_t r = 0; r < rows; ++r) {
                std::copy_n(to + r * columns, wide, sums + r * wide_tile);
            }
        }
        t.c = sums;
        t.c_row = wide_tile;
        run_tile(by, t);
        for (std::size_t r = 0; r < rows; ++r) {
            std::copy_n(sums + r * wide_tile, wide, to + r * columns);
        }
    }
};

// Panels [begin, end) of C from the same panels of B.
template <typename T>
void multiply_panels(const tile_maker<T>& make, std::size_t rows, std::size_t depth,
                     std::size_t first_row, std::size_t begin, std::size_t end) {
    const std::size_t chunk = rows_at_once / make.by.tile_rows * make.by.tile_rows;
    for (std::size_t from = first_row; from < rows; from += chunk) {
        const std::size_t to = std::min(rows, from + chunk);
        for (std::size_t k = 0; k < depth; k += depth_at_once) {
            const std::size_t deep = std::min(depth_at_once, depth - k);
            for (std::size_t p = begin; p < end; ++p) {
                for (std::size_t row = from; row < to; row += make.by.tile_rows) {
                    make.run(row, std::min(make.by.tile_rows, to - row), p, k, deep);
                }
            }
        }
    }
}

template <typename T>
void pack_panels(const execution_context& on, const operand_view_of<T>& b,
                 base::aligned_buffer<T>& buffer) {
    const std::size_t columns = columns_of<T>(on.kernels());
    const std::size_t panels = (b.rows + columns - 1) / columns;
    T* const packed = buffer.reserve(panels * b.depth * columns);
    on.split(
        panels, std::max<std::size_t>(1, 200'000 / (b.depth * columns + 1)),
        [&](std::size_t begin, std::size_t end, int) { pack(b, columns, begin, end, packed); });
}

template <typename T>
void multiply_packed(const execution_context& on, const operand_view_of<T>& a, std::size_t b_rows,
                     const T* packed, T* c) {
    if (a.rows == 0 || b_rows == 0) return;
    if (a.depth == 0) return std::fill_n(c, a.rows * b_rows, T{0}), void();
    const simd::kernels& by = on.kernels();
    const std::size_t columns = columns_of<T>(by);
    const std::size_t panels = (b_rows + columns - 1) / columns;
    // Threads only where each has some tenths of a millisecond to do.
    constexpr std::size_t least_work = 8'000'000;
    const std::size_t least = std::max<std::size_t>(1, least_work / (b_rows * a.depth));
    const std::size_t rows_each = (least + by.tile_rows - 1) / by.tile_rows * by.tile_rows;
    const tile_maker<T> make{by, a, packed, b_rows, c};
    if (a.rows <= rows_each) {  // few rows: by columns
        const std::size_t some =
            std::max<std::size_t>(1, least_work / (a.rows * a.depth * columns));
        return on.split(panels, some, [&](std::size_t begin, std::size_t end, int) {
            multiply_panels(make, a.rows, a.depth, 0, begin, end);
        });
    }
    on.split(a.rows, rows_each, [&](std::size_t begin, std::size_t end, int) {
        multiply_panels(make, end, a.depth, begin, 0, panels);
    });
}

void multiply_there(execution_context& on, const operand_view& a, const operand_view& b, float* c,
                    bool beside) {
    if (a.rows == 0 || b.rows == 0) return;
    if (a.depth == 0) return on.run(jobs::fill{{}, 0.0f, c}, a.rows * b.rows);
    const cuda::product_launch l{
        {a.data, a.rows, a.transposed}, {b.data, b.rows, b.transposed}, a.depth, c};
    beside ? on.device()->multiply_beside(l) : on.device()->multiply(l);
}

}  // namespace

void multiply_beside(execution_context& on, const operand_view& a, const operand_view& b,
                     float* c) {
    if (on.device() == nullptr) return multiply(on, a, b, c);
    multiply_there(on, a, b, c, true);
}

void multiply(execution_context& on, const operand_view& a, const operand_view& b, float* c) {
    if (on.device() != nullptr) return multiply_there(on, a, b, c, false);
    pack_panels(on, b, on.packed());
    multiply_packed(on, a, b.rows, on.packed().data(), c);
}

void multiply(execution_context& on, const operand_view_of<double>& a,
              const operand_view_of<double>& b, double* c) {
    pack_panels(on, b, on.packed_float64());
    multiply_packed(on, a, b.rows, on.packed_float64().data(), c);
}

template <typename T>
void pack(const execution_context& on, const operand_view_of<T>& b, packed_operand<T>& to) {
    to.rows = b.rows;
    to.depth = b.depth;
    pack_panels(on, b, to.panels);
}
template void pack(const execution_context&, const operand_view_of<float>&, packed_operand<float>&);
template void pack(const execution_context&, const operand_view_of<double>&,
                   packed_operand<double>&);

template <typename T>
void multiply(execution_context& on, const operand_view_of<T>& a, const packed_operand<T>& b,
              T* c) {
    multiply_packed(on, a, b.rows, b.panels.data(), c);
}
template void multiply(execution_context&, const operand_view_of<float>&,
                       const packed_operand<float>&, float*);
template void multiply(execution_context&, const operand_view_of<double>&,
                       const packed_operand<double>&, double*);

}  // namespace mx::lab
