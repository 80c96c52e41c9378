// SPDX-License-Identifier: Apache-2.0
// tokenizer.bin of karpathy/llama2.c: the length of the longest token, then per token its score,
// its length and its bytes; all numbers have four bytes, the least significant first.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "libmx/tokens/tables.hpp"

namespace mx::tokens {

tables llama2c_tables(const io::shared_file& file) {
    constexpr std::uint64_t most_bytes = 64 << 20;
    constexpr std::uint32_t begin_of_text = 1;
    constexpr std::uint32_t first_byte = 3;  // the token of byte 0; before it are special ones
    const std::string bytes = file->head(most_bytes);
    std::size_t at = 0;
    const auto refuse = [&] {
        io::input_error("is no tokenizer of llama2.c", {file->path(), {}, at});
    };
    const auto number = [&] {
        if (bytes.size() - at < 4) refuse();
        std::uint32_t value = 0;
        for (std::size_t i = 4; i-- > 0;) {
            value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
        }
        at += 4;
        return value;
    };
    tables t;
    t.kind = "llama2.c BPE";
    t.prefix = space_prefix::first;
    t.bos = begin_of_text;
    const std::uint32_t longest = number();
    while (at < bytes.size()) {
        const auto id = static_cast<std::uint32_t>(t.pieces.size());
        const auto score = std::bit_cast<float>(number());
        const std::uint32_t length = number();
        if (std::isnan(score) || length > longest || length > bytes.size() - at) refuse();
        const bool is_byte = id >= first_byte && id < first_byte + 256;
        // run.c merges nothing of a lower score.
        t.in_words.push_back(id >= first_byte + 256 && score > -1e10F);
        t.scores.push_back(score);
        t.pieces.push_back(is_byte ? std::string(1, static_cast<char>(id - first_byte))
                                   : bytes.substr(at, length));
        if (is_byte) t.bytes[id - first_byte] = id;
        at += length;
    }
    if (t.pieces.size() < first_byte + 256 || file->size() > most_bytes) refuse();
    return t;
}

}  // namespace mx::tokens
