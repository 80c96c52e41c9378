// SPDX-License-Identifier: Apache-2.0
// THE LIST of patterns that divide text into words before byte-level BPE, as tokenizer.json spells
// them, and of the names that GGUF files have for them. A pattern that is not here is refused: two
// libraries of regular expressions agree on these, not on all.
#pragma once

#include <array>
#include <string_view>

namespace mx::tokens {

namespace patterns {

inline constexpr std::string_view gpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view llama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view o200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view tekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view deepseek_cjk = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
inline constexpr std::string_view deepseek = R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
                                             "|[^\r\n"
                                             R"(\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+)"
                                             "[\r\n]*|"
                                             R"(\s*)"
                                             "[\r\n]+"
                                             R"(|\s+(?!\S)|\s+)";
inline constexpr std::string_view digit = R"(\p{N})";
inline constexpr std::string_view three_digits = R"(\p{N}{1,3})";
inline constexpr std::string_view digits = R"(\p{N}+)";

}  // namespace patterns

inline constexpr std::array known_patterns{
    patterns::gpt2,         patterns::llama3,       patterns::qwen2,
    patterns::o200k,        patterns::tekken,       patterns::digit,
    patterns::three_digits, patterns::deepseek_cjk, patterns::deepseek,
};

/// What a name of tokenizer.ggml.pre stands for.
struct pre_tokenizer {
    std::string_view names;  ///< separated by spaces
    std::array<std::string_view, 3> splits;
    bool nfc = false;          ///< the model's tokenizer.json normalizes; GGUF does not say so
    bool whole_words = false;  ///< ignore_merges
    bool bos = false;          ///< a text begins with the BOS token if the file does not say
};

/// By the same names as llama.cpp (src/llama-vocab.cpp).
inline constexpr std::array pre_tokenizers{
    pre_tokenizer{"gpt-2 phi-2", {patterns::gpt2}},
    pre_tokenizer{"olmo", {patterns::gpt2}, true},
    pre_tokenizer{"smollm starcoder", {patterns::digit, patterns::gpt2}},
    pre_tokenizer{"llama-bpe llama-v3 llama3", {patterns::llama3}, false, true, true},
    pre_tokenizer{"dbrx smaug-bpe", {patterns::llama3}},  // dbrx is also that of OLMo 2
    pre_tokenizer{"qwen2 deepseek-r1-qwen", {patterns::qwen2}, true},
    pre_tokenizer{"gpt-4o", {patterns::o200k}},
    pre_tokenizer{"tekken", {patterns::tekken}, false, true, true},
    pre_tokenizer{"deepseek-v3",
                  {patterns::three_digits, patterns::deepseek_cjk, patterns::deepseek}},
};

}  // namespace mx::tokens
