// SPDX-License-Identifier: Apache-2.0
// THE LISTS of names of our block formats in torchao, compressed-tensors (llm-compressor), ModelOpt
// and llama.cpp, one row per preset that they support. policy/targets.hpp lists which presets those
// are in the first two, and which run emulated. Sources: pytorch/ao@0196250
// torchao/prototype/mx_formats/inference_workflow.py,
// @04782bf config.py, @28e5d89 constants.py; vllm-project/compressed-tensors@0bb1251
// quantization/quant_scheme.py, @5eb8169 config/base.py, @15df5d1 compressors/mxfp8/base.py;
// NVIDIA/Model-Optimizer@a2fbac7 modelopt/torch/quantization/config.py,
// modelopt_recipes/configs/numerics, modelopt/torch/kernels/quantization/gemm/tensor_quant_mx.cu;
// ggml-org/llama.cpp@007dbbf src/llama-quant.cpp, @03161a4 tools/quantize/quantize.cpp, @01243c5
// ggml/src/ggml-quants.c.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace mx::plan {

/// The torchao configuration of the format.
struct torchao_words {
    std::string_view preset;
    std::string_view config;  ///< class
    std::string_view dtype;   ///< argument activation_dtype and weight_dtype; empty: none
    std::string_view rules;   ///< scale rules it offers, separated by spaces
    std::string_view note;
};

/// The compressed-tensors configuration of the format.
struct compressed_words {
    std::string_view preset;
    std::string_view scheme;  ///< preset scheme of quantized weights
    int num_bits;
    std::string_view strategy;
    int group_size;                ///< 0: none
    std::string_view scale_dtype;  ///< empty: that of the weights
    std::string_view format;       ///< how it is stored
    std::string_view rules;        ///< scale rules with which it gives the same scales
    std::string_view note;
};

/// The attributes of a weight quantizer of ModelOpt for the format.
struct modelopt_words {
    std::string_view preset;
    int exponent_bits, mantissa_bits;              ///< num_bits
    int rows, cols;                                ///< block_sizes
    int scale_exponent_bits, scale_mantissa_bits;  ///< scale_bits; both 0: none
    std::string_view rules;                        ///< scale rules that it computes
    std::string_view note;
};

/// The type in which llama-quantize writes the format.
struct ggml_words {
    std::string_view preset;
    std::string_view type;
    std::uint32_t block;     ///< rows are multiples of it
    std::string_view rules;  ///< scale rules that it computes
    std::string_view note;
};

inline constexpr std::string_view mx_config =
    "torchao.prototype.mx_formats.inference_workflow.MXDynamicActivationMXWeightConfig";
inline constexpr std::string_view nvfp4_config =
    "torchao.prototype.mx_formats.inference_workflow.NVFP4WeightOnlyConfig";
inline constexpr std::string_view mx_rules = "floor ceil even rceil";
inline constexpr std::string_view mx_note = "quantizes activations too";

inline constexpr std::array torchao_list{
    torchao_words{"mxfp8", mx_config, "torch.float8_e4m3fn", mx_rules, mx_note},
    torchao_words{"mxfp8_e5m2", mx_config, "torch.float8_e5m2", mx_rules, mx_note},
    torchao_words{"mxfp6", mx_config, "fp6_e2m3", mx_rules, mx_note},
    torchao_words{"mxfp6_e3m2", mx_config, "fp6_e3m2", mx_rules, mx_note},
    torchao_words{"mxfp4", mx_config, "torch.float4_e2m1fn_x2", mx_rules, mx_note},
    torchao_words{"nvfp4", nvfp4_config, "", "two-level single-level", "weights only"},
};

inline constexpr std::array compressed_list{
    compressed_words{"mxfp8", "MXFP8A16", 8, "group", 32, "torch.uint8", "mxfp8-quantized", "",
                     "its scales are even at one mantissa bit: dialect=compressed-tensors"},
    compressed_words{"mxfp4", "MXFP4A16", 4, "group", 32, "torch.uint8", "mxfp4-pack-quantized",
                     "even", ""},
    compressed_words{"nvfp4", "NVFP4A16", 4, "tensor_group", 16, "torch.float8_e4m3fn",
                     "nvfp4-pack-quantized", "two-level", ""},
    compressed_words{"fp8_128x128", "FP8_BLOCK", 8, "block", 0, "", "float-quantized", "amax",
                     "the preset quantizes activations too"},
};

inline constexpr std::array modelopt_list{
    modelopt_words{"mxfp8", 4, 3, 1, 32, 8, 0, "rceil", ""},
    modelopt_words{"mxfp8_e5m2", 5, 2, 1, 32, 8, 0, "rceil", ""},
    modelopt_words{"mxfp6", 2, 3, 1, 32, 8, 0, "rceil", ""},
    modelopt_words{"mxfp6_e3m2", 3, 2, 1, 32, 8, 0, "rceil", ""},
    modelopt_words{"mxfp4", 2, 1, 1, 32, 8, 0, "rceil",
                   "the corners of its arithmetic: dialect=modelopt"},
    modelopt_words{"nvfp4", 2, 1, 1, 16, 4, 3, "two-level",
                   "the corners of its arithmetic: dialect=modelopt"},
    modelopt_words{"fp8_128x128", 4, 3, 128, 128, 0, 0, "amax", ""},
};

inline constexpr std::array ggml_list{
    ggml_words{"mxfp4", "mxfp4", 32, "floor", "the corners of its arithmetic: dialect=ggml"},
    ggml_words{"nvfp4", "nvfp4", 64, "single-level", "the corners of its arithmetic: dialect=ggml"},
};

/// The row of a preset in one of these lists, or nullptr.
template <typename List>
constexpr auto find_words(const List& list, std::string_view preset) {
    const auto at = std::ranges::find(list, preset, [](const auto& row) { return row.preset; });
    return at == list.end() ? nullptr : &*at;
}

}  // namespace mx::plan
