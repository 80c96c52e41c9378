// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/gguf/gguf_mxfp4.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "libmx/base/bits.hpp"

namespace mx::io {
namespace {

constexpr std::size_t block_elements = 32;
constexpr std::size_t block_bytes = 17;
constexpr std::uint64_t piece_blocks = 4096;

using bf16_block = std::array<std::uint16_t, block_elements>;

// All values, by scale byte and code. ggml keeps twice the value of a code as an integer, and
// multiplies it by half the scale in float32: exact down to 2^-128, and Inf when too large.
struct value_table {
    std::array<std::array<std::uint16_t, 16>, 256> rows{};

    value_table() {
        constexpr std::array<int, 16> doubled{0, 1,  2,  3,  4,  6,  8,  12,
                                              0, -1, -2, -3, -4, -6, -8, -12};
        for (int scale = 0; scale < 256; ++scale) {
            const float half = std::ldexp(1.0f, scale - 128);
            for (std::size_t code = 0; code < 16; ++code) {
                const float value = static_cast<float>(doubled[code]) * half;
                rows[static_cast<std::size_t>(scale)][code] =
                    static_cast<std::uint16_t>(base::bits_of(value) >> 16);
            }
        }
    }
};

class mxfp4_source final : public byte_source {
  public:
    explicit mxfp4_source(shared_source blocks) : blocks_(std::move(blocks)) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        std::vector<std::byte> stored;
        while (!out.empty()) {
            const std::uint64_t first = offset / sizeof(bf16_block);
            auto skip = static_cast<std::size_t>(offset % sizeof(bf16_block));
            const std::uint64_t wanted =
                (skip + out.size() + sizeof(bf16_block) - 1) / sizeof(bf16_block);
            stored.resize(static_cast<std::size_t>(std::min(wanted, piece_blocks)) * block_bytes);
            blocks_->read(first * block_bytes, stored);
            for (std::size_t at = 0; at < stored.size(); at += block_bytes) {
                const bf16_block values = decode(stored.data() + at);
                const std::size_t count = std::min(sizeof values - skip, out.size());
                std::memcpy(out.data(), reinterpret_cast<const char*>(values.data()) + skip, count);
                out = out.subspan(count);
                offset += count;
                skip = 0;
            }
        }
    }

    void expect(std::uint64_t offset, std::uint64_t bytes) const override {
        blocks_->expect(offset / sizeof(bf16_block) * block_bytes,
                        bytes / sizeof(bf16_block) * block_bytes + block_bytes);
    }

  private:
    // The low nibbles are the first half of the block, the high ones the second.
    static bf16_block decode(const std::byte* block) {
        static const value_table table;
        const auto& row = table.rows[std::to_integer<std::size_t>(block[0])];
        bf16_block values;
        for (std::size_t i = 0; i < block_elements / 2; ++i) {
            const auto byte = std::to_integer<std::size_t>(block[1 + i]);
            values[i] = row[byte & 15u];
            values[block_elements / 2 + i] = row[byte >> 4];
        }
        return values;
    }

    shared_source blocks_;
};

}  // namespace

std::unique_ptr<byte_source> gguf_mxfp4_values(shared_source blocks) {
    return std::make_unique<mxfp4_source>(std::move(blocks));
}

}  // namespace mx::io
