// SPDX-License-Identifier: Apache-2.0
// Values of a tensor that is stored as codes in blocks, computed as they are read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "libmx/block/view.hpp"
#include "libmx/io/packed_read.hpp"
#include "libmx/io/sources.hpp"

namespace mx::io {

/// A source of T (float or double) that finds the block of every code; the derived class computes
/// the values of a block.
template <class T>
class coded_blocks : public byte_source {
  public:
    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        read_whole_elements(
            offset, out, sizeof(T),
            [this](std::uint64_t first, std::span<std::byte> bytes) { fill(first, bytes); });
    }

    void expect(std::uint64_t offset, std::uint64_t bytes) const override {
        const auto codes = [this](std::uint64_t at) {
            return block::packed_bytes(bits_, at / sizeof(T));
        };
        codes_->expect(codes(offset), codes(bytes));
    }

  protected:
    /// Neighbouring codes of one row.
    struct run {
        std::uint64_t block;  ///< linear index of the first code's block in the grid
        std::uint64_t lead;   ///< codes of that block's row that come before the first
        std::span<const std::uint8_t> codes;
    };

    /// `codes`: `bits` each, packed over the whole tensor (block/packing.hpp).
    coded_blocks(shared_source codes, int bits, const block::grid& g)
        : codes_(std::move(codes)), bits_(bits), grid_(g) {
        // Rows of whole blocks one behind the other are one long row.
        if (grid_.block_rows == 1 && grid_.over.cols % grid_.block_cols == 0) {
            grid_.over = {1, 1, grid_.over.elements()};
        }
    }

    virtual void decode(const run& r, std::span<T> out) const = 0;
    std::uint64_t block_cols() const { return grid_.block_cols; }
    /// Blocks that a run is in.
    std::uint64_t blocks_of(const run& r) const {
        return (r.lead + r.codes.size() + grid_.block_cols - 1) / grid_.block_cols;
    }
    /// Calls body(i, codes, values) for the part of a run in its i-th block.
    template <class Body>
    void for_each_block(const run& r, std::span<T> out, Body&& body) const {
        std::uint64_t lead = r.lead;
        std::size_t at = 0;
        for (std::size_t i = 0; at < r.codes.size(); ++i) {
            const auto left = static_cast<std::size_t>(grid_.block_cols - lead);
            const std::size_t count = std::min(left, r.codes.size() - at);
            body(i, r.codes.subspan(at, count), out.subspan(at, count));
            at += count;
            lead = 0;
        }
    }

  private:
    static constexpr std::size_t piece = std::size_t{1} << 16;  // elements decoded at a time

    void fill(std::uint64_t first, std::span<std::byte> bytes) const {
        std::vector<std::uint8_t> codes;
        std::vector<T> values;
        while (!bytes.empty()) {
            const std::size_t count = std::min(bytes.size() / sizeof(T), piece);
            codes.resize(count);
            read_codes(*codes_, bits_, first, codes);
            // Directly to the destination, unless it is not aligned for T.
            const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) == 0;
            if (!aligned) values.resize(count);
            const std::span<T> to = aligned ? std::span(reinterpret_cast<T*>(bytes.data()), count)
                                            : std::span<T>(values);
            for (std::size_t done = 0; done < count;) {
                const std::uint64_t row = (first + done) / grid_.over.cols;
                const std::uint64_t col = (first + done) % grid_.over.cols;
                const auto size = static_cast<std::size_t>(
                    std::min<std::uint64_t>(count - done, grid_.over.cols - col));
                const std::uint64_t grid_row =
                    row / grid_.over.rows * grid_.rows() + row % grid_.over.rows / grid_.block_rows;
                decode({grid_row * grid_.cols() + col / grid_.block_cols, col % grid_.block_cols,
                        std::span<const std::uint8_t>(codes).subspan(done, size)},
                       to.subspan(done, size));
                done += size;
            }
            if (!aligned) std::memcpy(bytes.data(), values.data(), count * sizeof(T));
            bytes = bytes.subspan(count * sizeof(T));
            first += count;
        }
    }

    shared_source codes_;
    int bits_;
    block::grid grid_;
};

}  // namespace mx::io
