// SPDX-License-Identifier: Apache-2.0
// The scale layout of NVIDIA's block-scaled matrix products: tiles of 128 rows x 4 columns, 512
// bytes each, tile after tile along a row of tiles. Inside a tile, row r and column c are at byte
// (r % 32) * 16 + r / 32 * 4 + c. Missing rows and columns are padding. Sources: cuBLAS
// documentation, "1D block scaling factors layout"; pytorch/ao@d3a0add,
// torchao/prototype/mx_formats/utils.py, to_blocked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mx::block {

inline constexpr std::uint64_t swizzle_rows = 128;
inline constexpr std::uint64_t swizzle_cols = 4;
inline constexpr std::uint64_t swizzle_tile = swizzle_rows * swizzle_cols;

/// Tiles along an axis of `extent` scales.
constexpr std::uint64_t swizzle_tiles(std::uint64_t extent, std::uint64_t side) {
    return extent / side + (extent % side != 0 ? 1 : 0);
}

/// Bytes of a swizzled matrix of rows x cols scales, padding included.
constexpr std::uint64_t swizzled_bytes(std::uint64_t rows, std::uint64_t cols) {
    return swizzle_tiles(rows, swizzle_rows) * swizzle_tiles(cols, swizzle_cols) * swizzle_tile;
}

/// Byte offset of a scale in its tile; row and column are relative to the tile.
constexpr std::uint64_t place_in_tile(std::uint64_t row, std::uint64_t col) {
    return row % 32 * 16 + row / 32 * swizzle_cols + col;
}

/// Byte offset of scale (row, col) in a swizzled matrix with `cols` columns of scales.
constexpr std::uint64_t swizzled_index(std::uint64_t row, std::uint64_t col, std::uint64_t cols) {
    const std::uint64_t tile =
        row / swizzle_rows * swizzle_tiles(cols, swizzle_cols) + col / swizzle_cols;
    return tile * swizzle_tile + place_in_tile(row % swizzle_rows, col % swizzle_cols);
}

/// Writes rows x cols scales in C order to `out` (swizzled_bytes(rows, cols) bytes) in swizzled
/// order; padding becomes zero.
inline void swizzle(std::span<const std::byte> scales, std::uint64_t rows, std::uint64_t cols,
                    std::span<std::byte> out) {
    for (std::byte& b : out) b = std::byte{0};
    for (std::uint64_t r = 0; r < rows; ++r) {
        for (std::uint64_t c = 0; c < cols; ++c) {
            out[swizzled_index(r, c, cols)] = scales[r * cols + c];
        }
    }
}

/// Inverse of swizzling: rows x cols scales in C order.
inline void unswizzle(std::span<const std::byte> swizzled, std::uint64_t rows, std::uint64_t cols,
                      std::span<std::byte> out) {
    for (std::uint64_t r = 0; r < rows; ++r) {
        for (std::uint64_t c = 0; c < cols; ++c) {
            out[r * cols + c] = swizzled[swizzled_index(r, c, cols)];
        }
    }
}

}  // namespace mx::block
