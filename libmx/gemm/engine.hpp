// SPDX-License-Identifier: Apache-2.0
// What multiplies: takes the accumulators of a tile of outputs through a range of steps. How steps
// are arranged (slices, promotion, alpha and beta) is multiply()'s, the same for every engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/operand.hpp"

namespace mx::gemm {

/// A rectangle of outputs.
struct tile {
    std::size_t row = 0, rows = 0;
    std::size_t col = 0, cols = 0;
};

/// Steps [first, first + count) of step_length() products each, walked upward or downward. The
/// last step of all may stick out of K; it is filled with zeros.
struct step_range {
    std::size_t first = 0, count = 0;
    bool descending = false;

    /// The `i`-th step of the walk.
    constexpr std::size_t at(std::size_t i) const {
        return descending ? first + count - 1 - i : first + i;
    }
};

/// Immutable once made; any number of threads may walk at once.
class engine {
  public:
    virtual ~engine() = default;

    /// Replaces the accumulators acc[r * cols + c] of the tile (bits as the model gives them) by
    /// those after the steps of the range.
    virtual void walk(const tile& where, const step_range& steps, std::uint32_t* acc) const = 0;

    /// The rectangle that walk() likes best.
    virtual std::size_t tile_rows() const { return 32; }
    virtual std::size_t tile_cols() const { return 32; }
};

/// Products per step of `m`; 1 for models that take k as it comes.
std::size_t step_length(const accumulator& m);

/// The plain loop, for every model: what other engines must agree with to the bit.
std::unique_ptr<engine> make_plain_engine(const operand& a, const operand& b, const accumulator& m);

}  // namespace mx::gemm
