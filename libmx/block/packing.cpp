// SPDX-License-Identifier: Apache-2.0
#include "libmx/block/packing.hpp"

#include <algorithm>

namespace mx::block {

namespace {

// Two codes per byte, in a loop that compilers vectorize.
void pack_pairs(const std::uint8_t* codes, std::size_t pairs, std::byte* out) {
    for (std::size_t i = 0; i < pairs; ++i) {
        const unsigned both = codes[2 * i] | static_cast<unsigned>(codes[2 * i + 1]) << 4;
        out[i] = static_cast<std::byte>(both & 0xffu);
    }
}

// Inverse of the above.
void unpack_pairs(const std::byte* bytes, std::size_t pairs, std::uint8_t* codes) {
    for (std::size_t i = 0; i < pairs; ++i) {
        const auto both = std::to_integer<unsigned>(bytes[i]);
        codes[2 * i] = static_cast<std::uint8_t>(both & 0xfu);
        codes[2 * i + 1] = static_cast<std::uint8_t>(both >> 4);
    }
}

}  // namespace

void pack(int bits, std::span<const std::uint8_t> codes, std::span<std::byte> out) {
    if (packed_bits(bits) == 8) {
        std::transform(codes.begin(), codes.end(), out.begin(),
                       [](std::uint8_t c) { return static_cast<std::byte>(c); });
        return;
    }
    if (packed_bits(bits) == 4) {
        const std::size_t pairs = codes.size() / 2;
        pack_pairs(codes.data(), pairs, out.data());
        codes = codes.subspan(2 * pairs);
        out = out.subspan(pairs);
    }
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
    if (packed_bits(bits) == 8) {
        std::transform(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(codes.size()),
                       codes.begin(), [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
        return;
    }
    if (packed_bits(bits) == 4) {
        const std::size_t pairs = codes.size() / 2;
        unpack_pairs(bytes.data(), pairs, codes.data());
        codes = codes.subspan(2 * pairs);
        bytes = bytes.subspan(pairs);
    }
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
