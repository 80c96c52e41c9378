// SPDX-License-Identifier: Apache-2.0
// Which accumulator model fits recorded outputs best: what the reader of a recording that differs
// asks first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "libmx/conformance/vectors/mma_inputs.hpp"
#include "libmx/conformance/verify/comparison.hpp"
#include "libmx/gemm/accumulator.hpp"

namespace mx::conformance::verify {

struct recorded_tile {
    vectors::mma_tile inputs;
    bool accumulate = true;                  ///< see mma_distribution
    std::span<const std::uint32_t> outputs;  ///< bits, rows x columns
};

/// Starts from the row of the list that differs in the fewest outputs (`model`, if there is one, of
/// those that differ in as few) and changes one field at a time for as long as that helps. None
/// where no row multiplies such operands.
std::optional<model_fit> best_fit(const vectors::mma_case& what,
                                  std::span<const recorded_tile> tiles,
                                  const std::optional<gemm::accumulator>& model);

}  // namespace mx::conformance::verify
