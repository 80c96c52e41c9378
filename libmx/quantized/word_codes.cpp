// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantized/word_codes.hpp"

#include <algorithm>
#include <vector>

#include "libmx/quantized/layouts.hpp"

namespace mx::io {
namespace {

constexpr std::uint64_t word_bytes = 4;
constexpr std::size_t codes_at_once = std::size_t{1} << 16;

}  // namespace

std::unique_ptr<byte_source> codes_in_words(shared_source words, std::uint64_t row_words,
                                            std::uint64_t cols, int bits, word_order order) {
    const auto width = static_cast<std::uint64_t>(bits);
    return make_source([=](std::uint64_t offset, std::span<std::byte> out) {
        std::vector<std::byte> stored;
        while (!out.empty()) {
            const std::uint64_t row = offset / cols;
            const std::uint64_t col = offset % cols;
            const auto count = static_cast<std::size_t>(
                std::min<std::uint64_t>({out.size(), cols - col, codes_at_once}));
            // Planes share the words of 32 codes.
            const bool planes = order == word_order::planes;
            const std::uint64_t first = planes ? col / 32 * width : col * width / 32;
            const std::uint64_t last =
                planes ? (col + count + 31) / 32 * width : ((col + count) * width + 31) / 32;
            // One byte more than needed, so that a code can be read from two.
            stored.assign(static_cast<std::size_t>((last - first) * word_bytes) + 1, std::byte{0});
            words->read((row * row_words + first) * word_bytes,
                        std::span(stored).first(stored.size() - 1));
            const auto field = [&](std::uint64_t bit, std::uint64_t wide) {
                const auto byte = static_cast<std::size_t>((bit - first * 32) / 8);
                const unsigned two = std::to_integer<unsigned>(stored[byte]) |
                                     std::to_integer<unsigned>(stored[byte + 1]) << 8;
                return two >> bit % 8 & ((1u << wide) - 1u);
            };
            for (std::size_t i = 0; i < count; ++i) {
                const std::uint64_t at = col + i;
                unsigned code = 0;
                if (planes) {
                    std::uint64_t start = at / 32 * 32 * width, above = 0;
                    for (std::uint64_t wide = 8; wide != 0; wide /= 2) {
                        if ((width & wide) == 0) continue;
                        code |= field(start + at % 32 * wide, wide) << above;
                        start += 32 * wide;
                        above += wide;
                    }
                } else {
                    code =
                        field((order == word_order::stream ? at : at / 8 * 8 + awq_places[at % 8]) *
                                  width,
                              width);
                }
                out[i] = static_cast<std::byte>(code);
            }
            out = out.subspan(count);
            offset += count;
        }
    });
}

std::unique_ptr<byte_source> nibbles_down(shared_source bytes, std::uint64_t cols) {
    return make_source([=](std::uint64_t offset, std::span<std::byte> out) {
        while (!out.empty()) {
            const std::uint64_t row = offset / cols, col = offset % cols;
            const auto count =
                static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), cols - col));
            bytes->read(row / 2 * cols + col, out.first(count));
            for (std::byte& code : out.first(count)) {
                code = row % 2 == 0 ? code & std::byte{15} : code >> 4;
            }
            offset += count;
            out = out.subspan(count);
        }
    });
}

std::unique_ptr<byte_source> high_nibble_first(shared_source bytes) {
    return make_source([=](std::uint64_t offset, std::span<std::byte> out) {
        std::vector<std::byte> stored;
        while (!out.empty()) {
            const std::size_t count = std::min(out.size(), codes_at_once);
            const std::uint64_t first = offset / 2;
            stored.resize(static_cast<std::size_t>((offset + count + 1) / 2 - first));
            bytes->read(first, stored);
            for (std::size_t i = 0; i < count; ++i) {
                const std::byte both = stored[static_cast<std::size_t>((offset + i) / 2 - first)];
                out[i] = (offset + i) % 2 == 0 ? both >> 4 : both & std::byte{15};
            }
            out = out.subspan(count);
            offset += count;
        }
    });
}

}  // namespace mx::io
