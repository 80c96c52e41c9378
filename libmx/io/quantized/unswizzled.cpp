// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/quantized/unswizzled.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "libmx/block/scale_swizzle.hpp"

namespace mx::io {
namespace {

// Tiles read at a time: 32 KiB.
constexpr std::uint64_t tiles_at_once = 64;

class unswizzled_source final : public byte_source {
  public:
    unswizzled_source(shared_source source, std::uint64_t rows, std::uint64_t cols)
        : source_(std::move(source)), rows_(rows), cols_(cols) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        // Rows of one matrix that lie in one row of tiles share a read.
        while (!out.empty()) {
            const std::uint64_t row = offset / cols_;  // counted over all matrices
            const std::uint64_t in_matrix = row % rows_;
            const std::uint64_t band_end =
                row - in_matrix % block::swizzle_rows +
                std::min(block::swizzle_rows,
                         rows_ - in_matrix / block::swizzle_rows * block::swizzle_rows);
            const auto count = static_cast<std::size_t>(
                std::min<std::uint64_t>(out.size(), band_end * cols_ - offset));
            read_band(offset, out.first(count));
            offset += count;
            out = out.subspan(count);
        }
    }

  private:
    void read_band(std::uint64_t offset, std::span<std::byte> out) const {
        const std::uint64_t first_row = offset / cols_;
        const std::uint64_t last_row = (offset + out.size() - 1) / cols_;
        // A part of one row needs the tiles around it only.
        const bool one = first_row == last_row;
        const std::uint64_t begin = one ? offset % cols_ / block::swizzle_cols : 0;
        const std::uint64_t end = one ? (offset + out.size() - 1) % cols_ / block::swizzle_cols + 1
                                      : block::swizzle_tiles(cols_, block::swizzle_cols);
        const std::uint64_t matrix = first_row / rows_;
        const std::uint64_t start = matrix * block::swizzled_bytes(rows_, cols_) +
                                    first_row % rows_ / block::swizzle_rows *
                                        block::swizzle_tiles(cols_, block::swizzle_cols) *
                                        block::swizzle_tile;
        std::vector<std::byte> tiles;
        for (std::uint64_t tile = begin; tile < end; tile += tiles_at_once) {
            const std::uint64_t count = std::min(tiles_at_once, end - tile);
            tiles.resize(static_cast<std::size_t>(count * block::swizzle_tile));
            source_->read(start + tile * block::swizzle_tile, tiles);
            const std::uint64_t left = tile * block::swizzle_cols;
            const std::uint64_t right = std::min(cols_, left + count * block::swizzle_cols);
            for (std::uint64_t row = first_row; row <= last_row; ++row) {
                const std::uint64_t from = std::max(row * cols_ + left, offset);
                const std::uint64_t to = std::min(row * cols_ + right, offset + out.size());
                for (std::uint64_t at = from; at < to; ++at) {
                    const std::uint64_t col = at - row * cols_ - left;
                    const std::uint64_t place =
                        col / block::swizzle_cols * block::swizzle_tile +
                        block::place_in_tile(row % rows_ % block::swizzle_rows,
                                             col % block::swizzle_cols);
                    out[static_cast<std::size_t>(at - offset)] = tiles[place];
                }
            }
        }
    }

    shared_source source_;
    std::uint64_t rows_;
    std::uint64_t cols_;
};

}  // namespace

std::unique_ptr<byte_source> unswizzled(shared_source source, std::uint64_t rows,
                                        std::uint64_t cols) {
    return std::make_unique<unswizzled_source>(std::move(source), rows, cols);
}

}  // namespace mx::io
