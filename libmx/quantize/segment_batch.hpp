// SPDX-License-Identifier: Apache-2.0
// Many segments and recipes at once, for drivers whose device wants more than a segment to work on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "libmx/quantize/driver.hpp"

namespace mx::quantize {

/// Rows of values that are handed over together.
struct value_rectangle {
    stored_values values;
    std::uint64_t rows = 0, cols = 0;
};

/// A segment of it, its first element at (row, col).
struct batch_segment {
    segment_place place;
    std::uint64_t row = 0, col = 0;
};

struct batch_recipe {
    const block_params* params = nullptr;  ///< not owned
    detail wanted = detail::none;
    bool parts = false;
    bool values = false;  ///< also dequantized values, unless codes tell them (codes_tell_values)
};

/// What driver::quantize would have delivered.
struct batch_result {
    const block::segment_stats* stats;
    details_view details;
};

/// Of one thread. Every method throws base::error (unavailable) when the device fails or has no
/// room.
class segment_batch {
  public:
    virtual ~segment_batch() = default;
    /// Quantizes all segments, which share their block extents, under all recipes.
    virtual void run(const value_rectangle& values, std::span<const batch_segment> segments,
                     std::span<const batch_recipe> recipes) = 0;
    /// What became of a segment under a recipe, by their places in the last run; valid until the
    /// next one.
    virtual batch_result result(std::size_t segment, std::size_t recipe) const = 0;
};

}  // namespace mx::quantize
