// SPDX-License-Identifier: Apache-2.0
// Hadamard rotations, deterministic and with random signs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mx::transform {

enum class kind : std::uint8_t {
    none,
    hadamard,         ///< H / sqrt(n), H the Sylvester matrix
    random_hadamard,  ///< H D / sqrt(n), D a diagonal of random signs
};

/// What is done to a tensor before quantization: `size` neighbours along the block axis are rotated
/// together. Members that cannot matter hold their defaults.
struct rotation {
    kind what = kind::none;
    int size = 0;            ///< 16, 32, 64 or 128; 0 with kind::none
    std::uint64_t seed = 0;  ///< of the signs

    friend bool operator==(const rotation&, const rotation&) = default;
};

inline constexpr int least_size = 16;
inline constexpr int largest_size = 128;

}  // namespace mx::transform
