// SPDX-License-Identifier: Apache-2.0
// What the files of tokenizers contain, in one form.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/tokens/tokenizer.hpp"

namespace mx::tokens {

constexpr std::uint32_t no_token = 0xffffffff;
constexpr std::uint32_t most_tokens = 1 << 22;

/// Two neighbours that become one token; `rank` counts from the first that is merged.
struct merge_rule {
    std::uint32_t left, right, rank, merged;
};

/// A token that is found in the text before anything else is done with it.
struct added_token {
    std::string text;
    std::uint32_t id = 0;
    std::string_view unsupported;  ///< an option that mx does not follow; texts with it are refused
};

/// How GGUF and SentencePiece class tokens (src/sentencepiece_model.proto).
enum class token_type : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

/// Where a space is put before a text that becomes words: nowhere, before the text, or also after
/// each added token.
enum class space_prefix { never, first, always };

struct tables {
    std::string_view kind;
    /// Each token as its file spells it, empty for ids without one, and its type.
    std::vector<std::string> spelled;
    std::vector<token_type> types;
    /// The bytes of each token; U+2581 of SentencePiece as a space.
    std::vector<std::string> pieces;
    /// Per token: it can be in a word. Others are added tokens, bytes, or not used.
    std::vector<bool> in_words;
    std::vector<added_token> added;
    /// The token of each byte, no_token for none: of byte-level BPE what words begin as, otherwise
    /// what characters without a token become.
    std::array<std::uint32_t, 256> bytes{};
    bool byte_level = false;
    bool whole_words = false;  ///< a word that is a token is not merged (ignore_merges)
    /// Pairs to merge; or the score of each token, of which the highest is merged first.
    std::vector<merge_rule> merges;
    std::vector<float> scores;

    bool nfc = false;                      ///< text is normalized to NFC
    std::vector<std::string_view> splits;  ///< patterns that divide text, in this order
    bool escaped_spaces = false;           ///< U+2581 in a text stands for a space
    space_prefix prefix = space_prefix::never;
    bool single_prefix = false;   ///< and not before a text that begins with one
    bool prepared_first = false;  ///< both before added tokens are found, as SentencePiece does
    std::optional<std::uint32_t> bos;

    tables() { bytes.fill(no_token); }
};

/// The character that stands for a space in SentencePiece, U+2581.
constexpr std::string_view escaped_space = "\xe2\x96\x81";

/// A part of a tokenizer that mx does not know; of the kind input.
struct tokenizer_error : base::error {
    using base::error::error;
};
[[noreturn]] void refuse_tokenizer(const std::string& path, const std::string& what);

/// The readers; `file` is a GGUF file, a tokenizer.json, a tokenizer.model, a tokenizer of
/// llama2.c. They throw tokenizer_error, base::error (input) for files that cannot be read, and
/// check all ids.
tables gguf_tables(const io::shared_file& file);
tables json_tables(const io::shared_file& file);
tables sentencepiece_tables(const io::shared_file& file);
tables llama2c_tables(const io::shared_file& file);

/// A pair of tokens as they are spelled: the first `left` bytes of `text`, and the others.
struct spelled_merge {
    std::string text;
    std::size_t left = 0;
};

/// Sets pieces, bytes and merges of `t` from tokens as their file spells them (t.spelled):
/// byte-level BPE with a character for each byte (openai/gpt-2, encoder.py), others with U+2581 for
/// spaces and <0x0A> for bytes. Throws base::error (input) for two tokens of one spelling and for a
/// merge of what are no tokens.
void set_tokens(tables& t, const std::string& path, const std::vector<spelled_merge>& merges);

/// `text` with each U+2581 as a space.
std::string with_spaces(const std::string& text);

/// Divides UTF-8 into what the first pattern matches and what is between, these by the next one,
/// and so on; in order, and together they are the text.
using splitter = std::function<std::vector<std::string_view>(std::string_view)>;

/// `patterns` are of known_patterns (pre_tokenizers.hpp). Throws base::error (unavailable) in a
/// build without PCRE2, unless there is none.
splitter make_splitter(const std::vector<std::string_view>& patterns);

/// `text`, which is UTF-8, in Unicode's normalization form C. Throws base::error (unavailable) in a
/// build without utf8proc.
std::string to_nfc(const std::string& text);

/// The tokenizer of these tables (bpe_tokenizer.cpp). Throws base::error: input for two merges of
/// one pair, unavailable if the tables have patterns and this build no PCRE2.
std::unique_ptr<tokenizer> make_bpe_tokenizer(tables t);

}  // namespace mx::tokens
