// SPDX-License-Identifier: Apache-2.0
// Packed codes of one tensor, written in runs that need not start or end at a byte border.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "libmx/io/writer.hpp"

namespace mx::convert {

/// Writes runs of codes to array `array` of `writer`, packed as block::pack does over the whole
/// tensor. put() may be called from several threads for disjoint runs; codes that share a byte
/// with a run not yet seen wait for it.
class code_stream {
  public:
    code_stream(io::array_writer& writer, std::size_t array, int bits, std::uint64_t elements);
    void put(std::uint64_t first, std::span<const std::uint8_t> codes);

  private:
    // Codes of one packing unit that arrive in pieces.
    struct piece {
        std::array<std::uint8_t, 4> code{};
        unsigned present = 0;
    };
    void put_edge(std::uint64_t first, std::span<const std::uint8_t> codes);

    io::array_writer& writer_;
    std::size_t array_;
    int bits_;
    std::uint64_t elements_;
    std::uint64_t unit_;
    std::mutex guard_;
    std::map<std::uint64_t, piece> waiting_;  // by index of the unit
};

}  // namespace mx::convert
