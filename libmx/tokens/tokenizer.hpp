// SPDX-License-Identifier: Apache-2.0
// From text to the token ids of a model, by the tables that the model comes with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mx::tokens {

/// The ids of texts. Objects are constant: any number of threads may use one.
class tokenizer {
  public:
    virtual ~tokenizer() = default;

    /// The ids of `utf8`, without a token at the beginning or the end that is not in the text.
    /// Tokens that the model's file declares as added or special, as <|im_start|>, are recognised
    /// in the text; of tokenizer.model the user-defined ones only, as its library does. The same
    /// text gives the same ids on any machine. Time grows with n log n. Throws base::error (input)
    /// with the byte if the text is not UTF-8, if a part of it has no token, or if it contains an
    /// added token whose options mx does not follow.
    virtual std::vector<std::uint32_t> encode(std::string_view utf8) const = 0;
    /// The number of ids: each is less.
    virtual std::size_t vocabulary() const = 0;
    /// The bytes that a token stands for, to be shown; these need not be UTF-8. Empty for an id
    /// that has none.
    virtual std::string piece(std::uint32_t id) const = 0;
    /// "byte-level BPE", "SentencePiece BPE" or "llama2.c BPE".
    virtual std::string_view kind() const = 0;
    /// The token that the model's file puts before a text; none if it puts none.
    virtual std::optional<std::uint32_t> bos() const = 0;
};

/// The tokenizer of a model: `path` is a GGUF file, a folder with tokenizer.json or else
/// tokenizer.model (SentencePiece), a file of a model in such a folder, one of these two files, or
/// a tokenizer of llama2.c (tok*.bin). Limits on length and padding in tokenizer.json, which are
/// for batches, are ignored. Throws base::error: input if there is no tokenizer, or if it has a
/// part that could change ids and that mx does not know; unavailable for byte-level BPE in a build
/// without PCRE2 and utf8proc.
std::unique_ptr<tokenizer> tokenizer_of(const std::string& path);

/// The versions of the libraries that byte-level BPE needs; empty in a build without them.
std::string unicode_support();

}  // namespace mx::tokens
