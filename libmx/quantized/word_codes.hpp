// SPDX-License-Identifier: Apache-2.0
// Codes that fill 32-bit words, one byte each.
#pragma once

#include <cstdint>
#include <memory>

#include "libmx/io/sources.hpp"

namespace mx::io {

/// Where the codes of a row are in its words.
enum class word_order : std::uint8_t {
    stream,  ///< one after the other from the low end on, across the borders of words
    planes,  ///< GPTQModel's gptq_p: of 32 codes the lower bits, then the others, in fields of as
             ///< many bits as the powers of two that add up to those of a code, the largest first
    awq,     ///< awq_places of quantized/layouts.hpp; 4 bits
};

/// `words` holds rows of `row_words` words, each of `cols` codes of `bits` (at most 8) and padding.
/// The result is the matrix of codes in C order, a byte each.
std::unique_ptr<byte_source> codes_in_words(shared_source words, std::uint64_t row_words,
                                            std::uint64_t cols, int bits, word_order order);

/// Codes of 4 bits, of which a byte holds two neighbours in a column of `cols`, the upper one in
/// its low nibble, as one byte each. The number of rows must be even.
std::unique_ptr<byte_source> nibbles_down(shared_source bytes, std::uint64_t cols);

/// Codes of 4 bits, the high nibble of a byte first, as one byte each.
std::unique_ptr<byte_source> high_nibble_first(shared_source bytes);

}  // namespace mx::io
