// SPDX-License-Identifier: Apache-2.0
// THE LIST of architectures that mx evaluates: one block with switches, a row of switches each.
// docs/howto/add-an-architecture.md shows how to add one.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace mx::llm {

/// Where a block's norms stand.
enum class norm_place : std::uint8_t {
    before,  ///< of attention and of the MLP: their inputs
    after,   ///< their outputs, before they are added
    both,
};

/// What the norms of queries and keys run over, before positions are applied.
enum class qk_norm : std::uint8_t { none, head, all_heads };

/// Which features a rotary embedding turns together.
enum class rope_pairs : std::uint8_t {
    halves,      ///< i and i + size / 2
    neighbours,  ///< 2 i and 2 i + 1
};

struct architecture {
    std::string_view name;  ///< `model_type` of config.json
    std::string_view gguf;  ///< `general.architecture` of GGUF, which is read as the first with it
    std::string_view summary;
    norm_place norms = norm_place::before;
    qk_norm norm_of_qk = qk_norm::none;
    /// Added to every gain; in GGUF files it is added already.
    double gain_offset = 0;
    bool scaled_embedding = false;  ///< multiplied by float32(sqrt(width))
    bool query_bias = false;        ///< q, k and v have biases
    /// GGUF stores the rows of q and k so that neighbours turn together.
    rope_pairs gguf_pairs = rope_pairs::halves;
    /// Whether `mx quantize --layout gguf` writes it from a folder.
    bool written_as_gguf = false;
    bool experts = false;
    /// Whether weights of the chosen experts are divided by their sum, unless the file says so.
    bool experts_renormalized = false;
};

inline constexpr std::array architectures{
    architecture{.name = "llama",
                 .gguf = "llama",
                 .summary = "Llama 1 to 3, SmolLM2, TinyLlama, llama2.c",
                 .gguf_pairs = rope_pairs::neighbours,
                 .written_as_gguf = true},
    architecture{.name = "mistral",
                 .gguf = "llama",
                 .summary = "Mistral 7B",
                 .gguf_pairs = rope_pairs::neighbours,
                 .written_as_gguf = true},
    architecture{.name = "qwen2",
                 .gguf = "qwen2",
                 .summary = "Qwen2, Qwen2.5",
                 .query_bias = true,
                 .written_as_gguf = true},
    architecture{.name = "qwen3",
                 .gguf = "qwen3",
                 .summary = "Qwen3",
                 .norm_of_qk = qk_norm::head,
                 .written_as_gguf = true},
    architecture{.name = "olmo2",
                 .gguf = "olmo2",
                 .summary = "OLMo 2",
                 .norms = norm_place::after,
                 .norm_of_qk = qk_norm::all_heads},
    architecture{.name = "gemma3_text",
                 .gguf = "gemma3",
                 .summary = "Gemma 3, text",
                 .norms = norm_place::both,
                 .norm_of_qk = qk_norm::head,
                 .gain_offset = 1,
                 .scaled_embedding = true},
    architecture{.name = "mixtral",
                 .gguf = "llama",
                 .summary = "Mixtral 8x7B",
                 .gguf_pairs = rope_pairs::neighbours,
                 .experts = true,
                 .experts_renormalized = true},
    architecture{.name = "qwen3_moe",
                 .gguf = "qwen3moe",
                 .summary = "Qwen3-MoE",
                 .norm_of_qk = qk_norm::head,
                 .experts = true},
};

}  // namespace mx::llm
