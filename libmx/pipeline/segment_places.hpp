// SPDX-License-Identifier: Apache-2.0
// Segments of panels as drivers see them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "libmx/pipeline/panels.hpp"
#include "libmx/quantize/segment_batch.hpp"

namespace mx::pipeline {

/// A segment of a grid. Its blocks are no larger than the matrix, which changes none of them:
/// drivers have room for whole ones.
inline quantize::segment_place place_of(const segment_in_panel& s, const block::grid& g,
                                        std::uint64_t tensor_id) {
    return {tensor_id,
            s.first,
            g.over.cols,
            s.rows,
            s.cols,
            std::min(g.block_rows, g.over.rows),
            std::min(g.block_cols, g.over.cols)};
}

/// The same among the values of a panel, whose matrices follow one another.
inline quantize::batch_segment batch_segment_of(const segment_in_panel& s, const block::grid& g,
                                                const panel& where, std::uint64_t tensor_id) {
    return {place_of(s, g, tensor_id), s.batch * where.rows + s.row, s.col};
}

}  // namespace mx::pipeline
