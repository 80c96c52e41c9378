// SPDX-License-Identifier: Apache-2.0
// The matrix that passes read, and its size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "libmx/analysis/analyze.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::bench {

/// Bytes over which bandwidth is measured: 512 MiB, or twice the largest cache.
std::uint64_t memory_to_measure();

/// The number of elements that fill that memory.
std::uint64_t default_elements(tensor::dtype type);

constexpr std::uint64_t bytes_of(tensor::dtype type) {
    return static_cast<std::uint64_t>(tensor::row_of(type).bits / 8);
}

/// A matrix in memory. Every pass takes the next rows, so that no pass finds its values in a cache.
class row_source {
  public:
    row_source(tensor::dtype type, std::span<const std::byte> values, std::uint64_t elements,
               const codec::tensor_facts& facts)
        : type_(type),
          facts_(facts),
          values_(values),
          cols_(std::min(widest, elements)),
          rows_(elements / cols_) {}

    std::uint64_t elements() const { return rows_ * cols_; }

    /// About `elements` elements: at least one row, at most all of them.
    analysis::matrix next(double elements) {
        std::uint64_t rows = rows_;
        if (elements < static_cast<double>(this->elements())) {
            const auto want = static_cast<std::uint64_t>(elements) / cols_ / row_step * row_step;
            rows = std::min(rows_, std::max(row_step, want));
        }
        if (at_ + rows > rows_) at_ = 0;
        const std::uint64_t first = at_ * cols_ * bytes_of(type_);
        at_ += rows;
        return {type_, values_.data() + first, rows, cols_, "bench", facts_};
    }

  private:
    static constexpr std::uint64_t widest = 4096;
    static constexpr std::uint64_t row_step = 256;  // whole panels
    tensor::dtype type_;
    codec::tensor_facts facts_;
    std::span<const std::byte> values_;
    std::uint64_t cols_, rows_;
    std::uint64_t at_ = 0;
};

}  // namespace mx::bench
