// SPDX-License-Identifier: Apache-2.0
// Shares of whole numbers whose products do not fit 64 bits.
#pragma once

#include <cstdint>

namespace mx::base {

__extension__ using wide_product = unsigned __int128;

/// floor(n * part / whole) and the same rounded up, for part <= whole != 0.
constexpr std::uint64_t scaled_down(std::uint64_t n, std::uint64_t part, std::uint64_t whole) {
    return static_cast<std::uint64_t>(wide_product{n} * part / whole);
}
constexpr std::uint64_t scaled_up(std::uint64_t n, std::uint64_t part, std::uint64_t whole) {
    return static_cast<std::uint64_t>((wide_product{n} * part + (whole - 1)) / whole);
}

}  // namespace mx::base
