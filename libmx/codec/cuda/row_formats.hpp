// SPDX-License-Identifier: Apache-2.0
// Which body takes a recipe: that of segments, or that of rows with one number for each element
// format that some device converts by an instruction, and one more where codes are wanted.
#pragma once

#include <array>
#include <string_view>

#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/format/element_formats.hpp"

namespace mx::codec::cuda {

inline constexpr int segment_body = 0;
inline constexpr int first_row_body = 1;

/// Body first_row_body + i is that of format i; there are no others that takes_rows() approves.
inline constexpr std::array<std::string_view, 5> row_formats{"e4m3", "e5m2", "e2m1", "e2m3",
                                                             "e3m2"};

/// The body of an element format of the list.
constexpr int row_body_of(std::string_view format) {
    int body = first_row_body;
    for (const std::string_view f : row_formats) {
        if (f == format) break;
        ++body;
    }
    return body;
}

/// The body of the same format that also writes codes: that many bits higher.
inline constexpr int coded_rows = static_cast<int>(row_formats.size());
inline constexpr std::uint32_t row_bodies = ((1u << coded_rows) - 1u) << first_row_body;

/// Bodies, as bits, and those of the same formats that write codes.
constexpr std::uint32_t with_codes(std::uint32_t bodies) { return bodies | bodies << coded_rows; }

inline int body_of(const plain_params& p, std::uint64_t block_rows, std::uint64_t block_cols) {
    if (!takes_rows(p, block_rows, block_cols)) return segment_body;
    for (std::size_t i = 0; i < row_formats.size(); ++i) {
        const format::element_format& f = *format::find_element_format(row_formats[i]);
        const bool same = f.bits() == p.element.bits &&
                          f.mantissa_bits == p.element.mantissa_bits &&
                          f.emin() == p.element.emin && f.max_code() == p.element.max_positive;
        if (same) return first_row_body + static_cast<int>(i);
    }
    return segment_body;
}

}  // namespace mx::codec::cuda
