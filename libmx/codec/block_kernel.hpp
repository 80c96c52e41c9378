// SPDX-License-Identifier: Apache-2.0
// Quantizes one block: the reference that every backend must equal byte for byte.
#pragma once

#include <cstdint>
#include <span>

#include "libmx/base/half.hpp"
#include "libmx/base/random.hpp"
#include "libmx/block/exact_totals.hpp"
#include "libmx/codec/block_params.hpp"

namespace mx::codec {

/// The position of a block's elements in their tensor (C order), which is the key of random
/// numbers.
struct block_place {
    std::uint64_t tensor_id = 0;   ///< base::tensor_id(name)
    std::uint64_t first = 0;       ///< index of the block's first element
    std::uint64_t row_stride = 0;  ///< elements from one row of the block to the next
    int cols = 1;                  ///< columns of this block
    /// Dialect systems-scaling: per column, whether the exponent is raised by one; else null.
    const std::uint8_t* bump = nullptr;

    MX_HD std::uint64_t index(int position) const {
        const auto p = static_cast<std::uint64_t>(position);
        const auto c = static_cast<std::uint64_t>(cols);
        return first + p / c * row_stride + p % c;
    }
};

/// Quantizes the block `x` (row-major, 1 to max_block_elements values) into `codes` (as many).
///
/// Adds the exact sums of the finite, unpoisoned elements, with d = O + S*q, to `sums` unless it is
/// null; those of the parts of the squared error if `parts` is set. Of block_stats::sum only
/// max_error is written, from d - x with one rounding (error_of).
///
/// If `values` is not empty, it receives the dequantized values as the dialect returns them,
/// including those without a code. For dialect recipes see dialect_block.hpp.
///
/// A NaN or Inf element gives scale code 255; finite elements are then `poisoned`, codes are the
/// format's NaN (or its encoding of NaN), and the block is excluded from all sums and rates.
block::block_stats quantize_block(const block_params& p, std::span<const float> x,
                                  const block_place& place, std::span<std::uint8_t> codes,
                                  std::span<float> values = {}, block::exact_totals* sums = nullptr,
                                  bool parts = false);

/// As quantize_block; also writes the sums of this block, each rounded once, to block_stats::sum.
block::block_stats measure_block(const block_params& p, std::span<const float> x,
                                 const block_place& place, std::span<std::uint8_t> codes,
                                 std::span<float> values = {}, block::exact_totals* sums = nullptr,
                                 bool parts = false);

/// Whether dequantize_block returns the same as `values` of quantize_block. Dialects other than ocp
/// may return values without a code under E8M0 (Quark also under UE5M3) or raise the scale of some
/// elements, and rows may have separate outer scales.
bool codes_tell_values(const block_params& p);

/// Dequantized values d = O + S*q rounded to float32 once; NaN if the scale is NaN. `scale` is
/// block_stats::scale.
void dequantize_block(const block_params& p, float scale, std::uint16_t offset,
                      std::span<const std::uint8_t> codes, std::span<float> values);
/// The same before the rounding to float32, where the dialect's arithmetic is exact.
void dequantize_block(const block_params& p, float scale, std::uint16_t offset,
                      std::span<const std::uint8_t> codes, std::span<double> values);

}  // namespace mx::codec
