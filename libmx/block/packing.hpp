// SPDX-License-Identifier: Apache-2.0
// Codes in bytes: 4-bit two per byte, low nibble first; 6-bit four in three bytes, least
// significant first; any other width one code per byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mx::block {

/// Bits one code of `bits` occupies in a packed file: 4, 6 or 8.
constexpr int packed_bits(int bits) { return bits == 4 || bits == 6 ? bits : 8; }

/// Bytes that `count` codes occupy, the last one padded with zero bits.
constexpr std::uint64_t packed_bytes(int bits, std::uint64_t count) {
    const auto width = static_cast<std::uint64_t>(packed_bits(bits));
    return count / 8 * width + (count % 8 * width + 7) / 8;
}

/// The number of codes that fill whole bytes: a run that starts at a multiple of it is
/// byte-aligned.
constexpr std::uint64_t packing_unit(int bits) {
    return packed_bits(bits) == 4 ? 2 : packed_bits(bits) == 6 ? 4 : 1;
}

/// Packs codes that start at a byte boundary into out (packed_bytes(bits, codes.size()) bytes).
void pack(int bits, std::span<const std::uint8_t> codes, std::span<std::byte> out);

/// Inverse of pack(): reads codes.size() codes, and no bytes beyond them.
void unpack(int bits, std::span<const std::byte> bytes, std::span<std::uint8_t> codes);

}  // namespace mx::block
