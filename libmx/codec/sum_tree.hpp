// SPDX-License-Identifier: Apache-2.0
// The shape of a block's sums, fixed by position alone (docs/design/determinism.md).
//
// Positions of a block, in row-major order, are cut into chunks of 32; the last one is filled with
// zeros. Inside a chunk terms are added pairwise at distance 16, 8, 4, 2, 1. Chunk sums are added
// in order, in double. A vector unit adds whole registers at the first steps and many blocks at
// once at the last ones, and gets the same bits.
#pragma once

#include "libmx/base/macros.hpp"

namespace mx::codec {

inline constexpr int chunk_size = 32;

/// Adds the 32 terms of a chunk pairwise; destroys `term`.
template <typename T>
MX_HD T sum_chunk(T* term) {
    for (int distance = chunk_size / 2; distance > 0; distance /= 2) {
        for (int i = 0; i < distance; ++i) term[i] += term[i + distance];
    }
    return term[0];
}

}  // namespace mx::codec
