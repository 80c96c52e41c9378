// SPDX-License-Identifier: Apache-2.0
// The values of one synthetic tensor, any range of them at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "datasets/generators/tensor_spec.hpp"
#include "libmx/base/random.hpp"

namespace mx::synth {

/// A value depends on (seed, tensor name, element index) and on the spec, never on the range it is
/// asked for in. Draws are Philox4x32-10 words, one per element, put through the law's
/// quantile_table; the rest is float32 multiplication and addition, then rounding to nearest even
/// (F16 saturates at 65504). Calls from several threads at once are safe.
class tensor_source {
  public:
    /// Holds one float32 per column where the spec has outlier columns.
    tensor_source(const tensor_spec& spec, std::uint64_t seed);

    const tensor_spec& spec() const { return spec_; }
    std::uint64_t elements() const { return elements_; }
    std::uint64_t bytes_per_element() const { return element_bytes_; }

    /// Writes elements [first, first + count) as little-endian bytes; `out` holds exactly
    /// count * bytes_per_element() bytes, and the range lies inside the tensor.
    void fill(std::uint64_t first, std::span<std::byte> out) const;

    /// The same values in float32, before they are rounded to the tensor's type; content::random
    /// only.
    void fill_f32(std::uint64_t first, std::span<float> out) const;

  private:
    float row_factor(std::uint64_t row) const;

    tensor_spec spec_;
    std::uint64_t elements_;
    std::uint64_t element_bytes_;
    std::uint64_t columns_;  ///< extent of the last axis
    std::uint64_t rows_;     ///< extent of the axis before it
    base::random_key key_;
    base::random_key row_key_;
    std::vector<float> column_factors_;  ///< empty: all 1
};

}  // namespace mx::synth
