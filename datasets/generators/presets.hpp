// SPDX-License-Identifier: Apache-2.0
// THE LIST of synthetic checkpoints.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace mx::synth {

/// How a preset's normalisation gains are distributed over the layers.
enum class gains : std::uint8_t {
    mixed,      ///< clustered under a power of two, centred on 1, and spread, in turn
    clustered,  ///< three in four vectors clustered under a power of two
};

/// Extents of a decoder-only transformer with grouped-query attention and a gated MLP.
struct architecture {
    std::uint64_t layers;
    std::uint64_t hidden;
    std::uint64_t ffn;
    std::uint64_t heads;
    std::uint64_t kv_heads;
    std::uint64_t vocab;
    std::uint64_t tokens;   ///< rows of each activation tensor
    std::uint64_t experts;  ///< of the one mixture-of-experts layer, the second; 0: none
    gains norm_gains;
    bool norm_biases;  ///< LayerNorm (gain and bias) instead of RMSNorm
    bool gradients;    ///< gradients of the first and the last layer
};

/// What a preset is a dump of.
enum class subject : std::uint8_t {
    transformer,   ///< a whole checkpoint
    linear_layer,  ///< one layer in training: its input, weights and output gradient
};

struct preset_row {
    std::string_view name;
    architecture shape;  ///< of a linear layer: hidden inputs, ffn outputs, tokens
    bool scalable;       ///< a target size decides width, layers and vocabulary
    std::string_view summary;
    subject what = subject::transformer;
};

inline constexpr std::array presets{
    preset_row{"tiny",
               {3, 64, 172, 4, 2, 512, 96, 4, gains::mixed, false, true},
               false,
               "every kind of tensor in under 1 MiB (bf16)"},
    preset_row{"small",
               {6, 256, 688, 8, 4, 4096, 384, 4, gains::mixed, false, true},
               false,
               "the same in about 18 MiB (bf16)"},
    preset_row{"layernorm",
               {16, 256, 128, 8, 1, 64, 32, 0, gains::clustered, true, false},
               false,
               "many LayerNorm gains clustered just under powers of two"},
    preset_row{"bulk",
               {1, 64, 172, 4, 2, 0, 128, 0, gains::mixed, false, true},
               true,
               "any size: --size 4GiB"},
    preset_row{"linear",
               {1, 256, 688, 1, 1, 0, 512, 0, gains::mixed, false, true},
               false,
               "input, weights and output gradient of one linear layer, for mx layer",
               subject::linear_layer},
};

/// The row named `name`. Throws base::error (usage) naming the presets there are.
const preset_row& find_preset(std::string_view name);

}  // namespace mx::synth
