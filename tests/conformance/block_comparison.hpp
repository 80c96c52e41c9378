// SPDX-License-Identifier: Apache-2.0
// One block quantized by the kernel and by the oracle, and everything that should be equal.
#pragma once

#include <cstdint>
#include <string>

#include "libmx/codec/recipe.hpp"
#include "libmx/oracle/block.hpp"
#include "tests/conformance/block_inputs.hpp"

namespace mx::tests {

struct comparison {
    std::uint64_t blocks = 0;
    std::uint64_t differences = 0;
    std::uint64_t dequant_overflow = 0;  ///< elements that the oracle counts so
    std::string first;                   ///< the first difference, with its position

    void expect(bool same, const std::string& what, block_kind kind, std::uint64_t seed);
};

/// Quantizes make_block(kind, ...) under `r` and under `stated`, the same recipe for the oracle, in
/// a tensor with largest magnitude `tensor_amax`. Scales, offsets, codes, values, counts and exact
/// sums must be bit-identical.
void compare_block(const codec::recipe& r, const oracle::recipe& stated,
                   const oracle::value_list& list, block_kind kind, std::size_t size,
                   std::uint64_t seed, float tensor_amax, comparison& result);

}  // namespace mx::tests
