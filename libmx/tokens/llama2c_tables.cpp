// SPDX-License-Identifier: Apache-2.0
// tokenizer.bin of karpathy/llama2.c: the length of the longest token, then per token its score,
// its length and its bytes; all numbers have four bytes, the least significant first.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <span>

#include "libmx/tokens/tables.hpp"

namespace mx::tokens {
namespace {

constexpr std::uint64_t most_bytes = 64 << 20;
constexpr std::uint32_t begin_of_text = 1;
constexpr std::uint32_t first_byte_token = 3;

}  // namespace

tables llama2c_tables(const io::shared_file& file) {
    const auto refuse = [&](std::size_t at) {
        io::input_error("is no tokenizer of llama2.c", {file->path(), {}, at});
    };
    if (file->size() > most_bytes) refuse(0);
    const std::string bytes = file->head(static_cast<std::size_t>(file->size()));
    std::size_t at = 0;
    const auto number = [&] {
        if (bytes.size() - at < 4) refuse(at);
        std::uint32_t value = 0;
        for (std::size_t i = 4; i-- > 0;) {
            value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
        }
        at += 4;
        return value;
    };
    tables t;
    t.kind = "llama2.c BPE";
    const std::uint32_t longest = number();
    while (at < bytes.size()) {
        const auto score = std::bit_cast<float>(number());
        const std::uint32_t length = number();
        if (std::isnan(score) || length > longest || length > bytes.size() - at ||
            t.pieces.size() == most_tokens) {
            refuse(at);
        }
        // run.c merges nothing of a lower score.
        t.in_words.push_back(score > -1e10F);
        t.scores.push_back(score);
        t.pieces.push_back(bytes.substr(at, length));
        at += length;
    }
    if (t.pieces.size() < first_byte_token + 256) refuse(at);
    for (std::uint32_t b = 0; b < 256; ++b) {
        t.bytes[b] = first_byte_token + b;
        t.pieces[first_byte_token + b] = static_cast<char>(b);
        t.in_words[first_byte_token + b] = false;
    }
    for (std::uint32_t id = 0; id < first_byte_token; ++id) t.in_words[id] = false;
    t.prefix = space_prefix::first;
    t.bos = begin_of_text;
    return t;
}

}  // namespace mx::tokens
