// SPDX-License-Identifier: Apache-2.0
// Finds the accumulator model that fits recorded outputs best, to explain a recording that differs.
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

/// Starts from the row of the list that differs in the fewest outputs (`model`, if given, among
/// equals) and changes one field at a time as long as that reduces the differences. nullopt if no
/// row multiplies such operands.
std::optional<model_fit> best_fit(const vectors::mma_case& what,
                                  std::span<const recorded_tile> tiles,
                                  const std::optional<gemm::accumulator>& model);

}  // namespace mx::conformance::verify
