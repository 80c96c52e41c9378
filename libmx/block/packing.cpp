// SPDX-License-Identifier: Apache-2.0
#include "libmx/block/packing.hpp"

#include <algorithm>

namespace mx::block {

void pack(int bits, std::span<const std::uint8_t> codes, std::span<std::byte> out) {
    const auto width = static_cast<unsigned>(packed_bits(bits));
    const std::size_t unit = packing_unit(bits);
    std::size_t at = 0;
    for (std::size_t i = 0; i < codes.size(); i += unit) {
        std::uint32_t word = 0;
        const std::size_t n = std::min(unit, codes.size() - i);
        for (std::size_t j = 0; j < n; ++j) {
            word |= static_cast<std::uint32_t>(codes[i + j]) << (width * j);
        }
        for (unsigned used = 0; used < width * n; used += 8) {
            out[at++] = static_cast<std::byte>((word >> used) & 0xffu);
        }
    }
}

void unpack(int bits, std::span<const std::byte> bytes, std::span<std::uint8_t> codes) {
    const auto width = static_cast<unsigned>(packed_bits(bits));
    const std::size_t unit = packing_unit(bits);
    const std::uint32_t mask = (1u << width) - 1u;
    std::size_t at = 0;
    for (std::size_t i = 0; i < codes.size(); i += unit) {
        std::uint32_t word = 0;
        const std::size_t n = std::min(unit, codes.size() - i);
        for (unsigned used = 0; used < width * n; used += 8) {
            word |= std::to_integer<std::uint32_t>(bytes[at++]) << used;
        }
        for (std::size_t j = 0; j < n; ++j) {
            codes[i + j] = static_cast<std::uint8_t>((word >> (width * j)) & mask);
        }
    }
}

}  // namespace mx::block
