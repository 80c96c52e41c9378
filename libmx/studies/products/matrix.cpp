// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/io/widen.hpp"

namespace mx::products {
namespace {

constexpr std::uint64_t piece = std::uint64_t{1} << 20;  // elements read at a time

}  // namespace

matrix read_matrix(const engine::tensor_ref& t, const engine::run_control& control) {
    const io::tensor_info& info = t.info();
    const base::error_place place{info.file, info.name, {}};
    std::vector<engine::skipped_tensor> skipped;
    if (engine::numeric_only({t}, skipped).empty()) {
        throw base::error(base::error_kind::input,
                          fmt::format("no matrix of numbers: {}", skipped.front().reason), place);
    }
    if (info.elements == 0) base::refuse("it is empty; a product needs elements", place);
    if (info.elements > largest_matrix) {
        throw base::error(base::error_kind::input,
                          fmt::format("{} elements are more than the {} that a matrix of a product "
                                      "may have; take a part of it",
                                      info.elements, largest_matrix),
                          place);
    }
    matrix m;
    m.file = info.file;
    m.name = info.name;
    m.type = info.type;
    m.shape = info.shape;
    m.cols = info.shape.empty() ? 1 : static_cast<std::size_t>(info.shape.back());
    m.rows = static_cast<std::size_t>(info.elements) / m.cols;
    const std::unique_ptr<io::byte_source> source = t.file->open(t.index);
    std::vector<std::byte> scratch;
    // Grows with the data read, so that a header alone allocates nothing.
    for (std::uint64_t at = 0; at < info.elements; at += piece) {
        base::stop_if(control.cancel);
        const std::uint64_t count = std::min(piece, info.elements - at);
        m.values.resize(static_cast<std::size_t>(at + count));
        m.inexact +=
            io::read_f32(*source, info.type, at,
                         std::span(m.values).subspan(static_cast<std::size_t>(at)), scratch);
    }
    return m;
}

std::vector<float> reduction_last(const std::vector<float>& values, std::size_t rows,
                                  std::size_t cols, reduction over) {
    if (over == reduction::last) return values;
    constexpr std::size_t tile = 32;  // both sides fit in the cache
    std::vector<float> out(values.size());
    for (std::size_t r0 = 0; r0 < rows; r0 += tile) {
        for (std::size_t c0 = 0; c0 < cols; c0 += tile) {
            for (std::size_t c = c0; c < std::min(cols, c0 + tile); ++c) {
                for (std::size_t r = r0; r < std::min(rows, r0 + tile); ++r) {
                    out[c * rows + r] = values[r * cols + c];
                }
            }
        }
    }
    return out;
}

}  // namespace mx::products
