// SPDX-License-Identifier: Apache-2.0
// Products that need no model: small whole numbers, exact in every matrix unit.
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

/// Elements of 0, +-1 and +-2, scales of 1/2, 1 and 2, whole accumulators up to 100.
known_product known_product_of(const vectors::mma_case& what, std::uint64_t index);

/// settle(), and whether the known products come out of `i` as it is then, into the metadata.
void note_placement(instruction& i, const vectors::mma_case& what, device& d, recording& to);

/// Asks the device where operands of `i` lie when it multiplies `what` (i.what with steps), and
/// leaves that in `i`; the placement's name, or no_placement, with `i` as documented.
/// Throws base::error (unavailable) when none gives the products and the device refused one.
std::string settle(instruction& i, const vectors::mma_case& what, device& d);

}  // namespace mx::capture
