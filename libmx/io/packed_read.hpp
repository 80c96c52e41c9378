// SPDX-License-Identifier: Apache-2.0
// Reading runs of packed codes and of the arrays with them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "libmx/block/packing.hpp"
#include "libmx/io/reader.hpp"

namespace mx::io {

/// Codes [first, first + out.size()), which need not start at a byte border.
inline void read_codes(const byte_source& source, int bits, std::uint64_t first,
                       std::span<std::uint8_t> out) {
    const std::uint64_t unit = block::packing_unit(bits);
    const std::uint64_t begin = first / unit * unit;
    const std::uint64_t lead = first - begin;
    std::vector<std::byte> bytes(block::packed_bytes(bits, lead + out.size()));
    source.read(block::packed_bytes(bits, begin), bytes);
    if (lead == 0) return block::unpack(bits, bytes, out);
    std::vector<std::uint8_t> codes(lead + out.size());
    block::unpack(bits, bytes, codes);
    std::copy(codes.begin() + static_cast<std::ptrdiff_t>(lead), codes.end(), out.begin());
}

/// Values [first, first + count) of an array of T.
template <typename T>
std::vector<T> read_run(const byte_source& source, std::uint64_t first, std::uint64_t count) {
    std::vector<T> out(count);
    source.read(first * sizeof(T), std::as_writable_bytes(std::span(out)));
    return out;
}

}  // namespace mx::io
