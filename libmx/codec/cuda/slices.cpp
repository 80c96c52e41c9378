// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/cuda/slices.hpp"

#include <algorithm>

#include "libmx/codec/cuda/batch_layout.hpp"

namespace mx::codec::cuda {
namespace {

std::size_t half(std::size_t count) { return (count + 1) / 2; }

struct bounds {
    std::uint64_t row, row_end, col, col_end;
};

bounds bounds_of(std::span<const placed_segment> segments) {
    const placed_segment& first = segments.front();
    bounds b{first.row, first.row, first.col, first.col};
    for (const placed_segment& s : segments) {
        b.row = std::min(b.row, s.row);
        b.col = std::min(b.col, s.col);
        b.row_end = std::max(b.row_end, s.row + s.place.rows);
        b.col_end = std::max(b.col_end, s.col + s.place.cols);
    }
    return b;
}

value_rectangle inside(const value_rectangle& values, const bounds& b) {
    return {values.values.from(b.row * values.values.stride + b.col), b.row_end - b.row,
            b.col_end - b.col};
}

}  // namespace

slice_values cut_out(const value_rectangle& values, std::span<const placed_segment> segments) {
    const bounds b = bounds_of(segments);
    slice_values out{inside(values, b), {segments.begin(), segments.end()}};
    for (placed_segment& s : out.segments) {
        s.row -= b.row;
        s.col -= b.col;
    }
    return out;
}

slice slicer::from(std::size_t first) const {
    slice s{first, row_end(first) - first, 0, recipes_.size()};
    const bool whole_row = first == 0 || segments_[first - 1].row != segments_[first].row;
    if (whole_row && fits(s)) {
        // As many rows as take no more than so many times the first one; the last rows of a matrix
        // may be lower than others.
        std::size_t rows = static_cast<std::size_t>(std::min<std::uint64_t>(
            limits_.bytes / bytes_of(s), limits_.elements / elements_of(s)));
        for (;; rows = half(rows)) {
            slice all = s;
            for (std::size_t r = 1; r < rows && first + all.segments < segments_.size(); ++r) {
                all.segments = row_end(first + all.segments) - first;
            }
            if (rows == 1 || fits(all)) return all;
        }
    }
    while (s.segments > 1 && !fits(s)) s.segments = half(s.segments);
    while (s.recipes > 1 && bytes_of(s) > limits_.bytes) s.recipes = half(s.recipes);
    return s;
}

bool slicer::fits(const slice& s) const {
    return elements_of(s) <= limits_.elements && bytes_of(s) <= limits_.bytes;
}

std::uint64_t slicer::elements_of(const slice& s) const {
    const bounds b = bounds_of(segments_.subspan(s.segment, s.segments));
    return (b.row_end - b.row) * (b.col_end - b.col);
}

std::size_t slicer::bytes_of(const slice& s) const {
    const auto segments = segments_.subspan(s.segment, s.segments);
    const batch_layout l = lay_out(inside(values_, bounds_of(segments)), segments,
                                   recipes_.subspan(s.recipe, s.recipes));
    return l.there_bytes + l.back_bytes + l.scratch_bytes;
}

std::size_t slicer::row_end(std::size_t first) const {
    std::size_t end = first + 1;
    while (end < segments_.size() && segments_[end].row == segments_[first].row) ++end;
    return end;
}

}  // namespace mx::codec::cuda
