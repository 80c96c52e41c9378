// SPDX-License-Identifier: Apache-2.0
// The tokenizer of a model's folder as GGUF stores it.
#pragma once

#include <cstddef>
#include <string>

#include "libmx/io/gguf/gguf_writer.hpp"

namespace mx::tokens {

/// Adds tokenizer.ggml.* and tokenizer.chat_template to `to`, from tokenizer.model or
/// tokenizer.json in `folder` and from tokenizer_config.json, config.json and the chat template
/// beside it, with `vocabulary` tokens: ids that the tokenizer lacks are unused. Throws base::error
/// (input) if there is no tokenizer, if GGUF has no form for it, as for a pre-tokenizer without a
/// name in pre_tokenizers.hpp and for SentencePiece's merges without scores, and if it has more
/// tokens.
void put_gguf_vocabulary(io::gguf_metadata& to, const std::string& folder, std::size_t vocabulary);

}  // namespace mx::tokens
