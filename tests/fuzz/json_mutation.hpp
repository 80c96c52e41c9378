// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace mx::fuzz {

/// Replaces, removes or repeats one value of a JSON document, or swaps two; false if the bytes are
/// not one, which leaves them as they are. Documents remain JSON, so that what reads their members
/// is reached.
bool mutate_json(std::vector<std::uint8_t>& input, std::mt19937_64& random);

}  // namespace mx::fuzz
