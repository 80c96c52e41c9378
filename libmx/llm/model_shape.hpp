// SPDX-License-Identifier: Apache-2.0
// Extents and switches of a language model, read from its configuration.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "libmx/io/model_config.hpp"
#include "libmx/llm/architectures.hpp"

namespace mx::llm {

enum class gate_function : std::uint8_t { silu, gelu_tanh };

/// How positions beyond those of the training are reached.
struct rope_scaling {
    /// Llama 3 if `low` is not 0, else linear.
    double factor = 1;
    double low = 0, high = 0;  ///< low_freq_factor, high_freq_factor
    double original = 0;       ///< original_max_position_embeddings
};

/// The frequency of a rotary embedding under that scaling, from the one without.
double scaled_frequency(const rope_scaling& scaling, double frequency);

/// The convention by which a file names its tensors.
enum class naming : std::uint8_t { hugging_face, gguf, llama2c };

struct model_shape {
    const architecture* kind = nullptr;
    naming names = naming::hugging_face;
    std::size_t width = 0, depth = 0, vocabulary = 0;
    std::size_t hidden = 0;  ///< of the MLP, or of an expert
    std::size_t heads = 0, key_heads = 0, head_size = 0;
    std::size_t context = 0;  ///< most positions; 0: not stated
    double eps = 0;
    double rope_base = 10000;
    double local_rope_base = 0;  ///< of layers with a window; 0: as the others
    rope_scaling scaling;        ///< not of layers with a base of their own
    rope_pairs pairs = rope_pairs::halves;
    std::size_t window = 0;      ///< a token attends to that many, itself included; 0: to all
    std::vector<bool> windowed;  ///< by layer; empty: all of them if there is a window
    double score_scale = 0;      ///< of scores of attention; 0: 1 / sqrt(head_size)
    gate_function gate = gate_function::silu;
    bool tied = false;                             ///< the head is the embedding
    bool query_bias = false, output_bias = false;  ///< of q, k and v; of the output projection
    std::size_t experts = 0, experts_used = 0;
    bool experts_renormalized = false;

    std::size_t query_width() const { return heads * head_size; }
    std::size_t key_width() const { return key_heads * head_size; }
    bool has_window(std::size_t layer) const {
        return window != 0 && (windowed.empty() || windowed[layer]);
    }
    double scale_of_scores() const;
};

/// The shape of a model with this configuration: `entries` of config.json, or the metadata of a
/// GGUF file. Extents that other entries or the tensors state are filled in by complete_shape.
/// Throws base::error (input) that names `file` and the key for unknown architectures, for entries
/// that change the arithmetic in a way that mx does not know, and for contradictory ones.
model_shape shape_of_config(const io::config_entries& entries, naming names,
                            const std::string& file);

/// The configuration of the text model within that of Gemma 3 with images (model_type gemma3):
/// entries below text_config, and those that transformers takes by default. Others as they are.
/// Throws base::error (input) for entries beside text_config that mx does not know.
io::config_entries text_config_of(io::config_entries entries, const std::string& file);

/// Entries of config.json that shape_of_config reads as `s`, for architectures with norms before
/// attention and MLP, without windows and frequencies of their own.
io::config_entries config_of(const model_shape& s);

/// The shape of a model of llama2.c without configuration: RMSNorm with eps 1e-5, positions by
/// neighbours. Of the published sizes the number of heads follows from `width`; `heads` is that of
/// others (0: not known, which is an error).
model_shape shape_of_llama2c(std::size_t width, std::size_t key_width, std::size_t heads,
                             const std::string& file);

}  // namespace mx::llm
