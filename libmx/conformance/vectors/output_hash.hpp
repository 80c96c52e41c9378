// SPDX-License-Identifier: Apache-2.0
// Hashes of many outputs, defined as a sum over positions so that threads and devices can add their
// terms in any order.
#pragma once

#include <cstdint>

#include "libmx/base/macros.hpp"

namespace mx::conformance::vectors {

/// The finalizer of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", OOPSLA 2014): a bijection of 64-bit words.
MX_HD constexpr std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/// The hash term of `output` at `place`; a hash is the sum of its terms modulo 2^64.
MX_HD constexpr std::uint64_t hash_term(std::uint64_t place, std::uint32_t output) {
    return mixed(mixed(place) ^ output);
}

}  // namespace mx::conformance::vectors
