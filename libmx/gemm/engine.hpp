// SPDX-License-Identifier: Apache-2.0
// Engines advance the accumulators of a tile of outputs through a range of steps. The arrangement
// of steps (slices, promotion, alpha and beta) is up to multiply() and the same for every engine.
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

/// Steps [first, first + count) of step_length() products each, in ascending or descending order.
/// The last step may extend beyond K; it is filled with zeros.
struct step_range {
    std::size_t first = 0, count = 0;
    bool descending = false;

    /// The `i`-th step in processing order.
    constexpr std::size_t at(std::size_t i) const {
        return descending ? first + count - 1 - i : first + i;
    }
};

/// Immutable; walk() is safe to call from several threads.
class engine {
  public:
    virtual ~engine() = default;

    /// Advances the accumulators acc[r * cols + c] of the tile (bits in the model's format) through
    /// the steps of the range.
    virtual void walk(const tile& where, const step_range& steps, std::uint32_t* acc) const = 0;

    /// The preferred tile size of walk().
    virtual std::size_t tile_rows() const { return 32; }
    virtual std::size_t tile_cols() const { return 32; }
};

/// Products per step of `m`; 1 for models without steps.
std::size_t step_length(const accumulator& m);

/// The scalar loop for every model: the reference of other engines, bit for bit.
std::unique_ptr<engine> make_plain_engine(const operand& a, const operand& b, const accumulator& m);

}  // namespace mx::gemm
