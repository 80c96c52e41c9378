// SPDX-License-Identifier: Apache-2.0
#include "libmx/block/view.hpp"

#include <algorithm>
#include <bit>

namespace mx::block {

segmentation segments_of(const grid& g) {
    if (g.has_areas()) {
        return {(g.outer_rows + g.block_rows - 1) / g.block_rows,
                (g.outer_cols + g.block_cols - 1) / g.block_cols};
    }
    const std::uint64_t per_block = g.block_rows * g.block_cols;
    const std::uint64_t blocks = std::max<std::uint64_t>(1, segment_elements / per_block);
    const std::uint64_t row = std::max<std::uint64_t>(1, g.cols());
    if (row >= blocks) return {1, g.whole_rows ? row : blocks};
    return {std::bit_floor(blocks / row), row};
}

}  // namespace mx::block
