// SPDX-License-Identifier: Apache-2.0
// The two parts of the list in mma_inputs.hpp.
#pragma once

#include "libmx/conformance/vectors/mma_tile_maker.hpp"

namespace mx::conformance::vectors {

std::span<const mma_distribution> random_distributions();
std::span<const mma_distribution> directed_probes();

/// Whether products of a case can be small enough for the exponent floor to affect the sum.
bool reaches_floor(const mma_case& what);

}  // namespace mx::conformance::vectors
