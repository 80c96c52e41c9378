// SPDX-License-Identifier: Apache-2.0
// Products that need no model: small integers, exact in every matrix unit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/mx_capture/parts.hpp"

namespace mx::capture {

struct known_product {
    vectors::mma_tile tile;
    std::vector<std::uint32_t> d;  ///< bits, as device::multiply gives them
};

/// Elements of 0, +-1 and +-2, scales of 1/2, 1 and 2, integer accumulators up to 100.
known_product known_product_of(const vectors::mma_case& what, std::uint64_t index);

/// Calls settle(), and writes to the metadata whether `i` then gives the known products.
void note_placement(instruction& i, const vectors::mma_case& what, device& d, recording& to);

/// Finds where operands of `i` must be placed on the device when it multiplies `what` (i.what with
/// steps), and stores that in `i`. Returns the placement's name, or no_placement with `i` as
/// documented. Throws base::error (unavailable) if no placement gives the products and the device
/// rejected one.
std::string settle(instruction& i, const vectors::mma_case& what, device& d);

}  // namespace mx::capture
