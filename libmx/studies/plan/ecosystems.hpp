// SPDX-License-Identifier: Apache-2.0
// THE LIST of what torchao and compressed-tensors (llm-compressor) call our block formats, one row
// per preset. Sources: pytorch/ao@0196250 torchao/prototype/mx_formats/inference_workflow.py,
// @04782bf config.py, @28e5d89 constants.py; vllm-project/compressed-tensors@0bb1251
// quantization/quant_scheme.py, @5eb8169 config/base.py, @15df5d1 compressors/mxfp8/base.py.
#pragma once

#include <array>
#include <string_view>

namespace mx::plan {

/// How torchao quantizes to the format; `config` is empty where it does not, and `note` says why.
struct torchao_words {
    std::string_view config;  ///< class
    std::string_view dtype;   ///< argument activation_dtype and weight_dtype; empty: none
    std::string_view kernel;  ///< argument kernel_preference; empty: none
    std::string_view rules;   ///< scale rules it offers, separated by spaces
    std::string_view note;
};

/// How compressed-tensors does; `scheme` is empty where it does not.
struct compressed_words {
    std::string_view scheme;  ///< preset scheme of quantized weights
    int num_bits;
    std::string_view strategy;
    int group_size;                ///< 0: none
    std::string_view scale_dtype;  ///< empty: that of the weights
    std::string_view format;       ///< how it is stored
    std::string_view rules;        ///< scale rules with which it gives the same scales
    std::string_view note;
};

struct ecosystem_row {
    std::string_view preset;
    torchao_words torchao;
    compressed_words compressed;
};

inline constexpr std::string_view mx_config =
    "torchao.prototype.mx_formats.inference_workflow.MXDynamicActivationMXWeightConfig";
inline constexpr std::string_view nvfp4_config =
    "torchao.prototype.mx_formats.inference_workflow.NVFP4WeightOnlyConfig";
inline constexpr std::string_view mx_rules = "floor ceil even rceil";

inline constexpr std::array ecosystems{
    ecosystem_row{"mxfp8",
                  {mx_config, "torch.float8_e4m3fn", "KernelPreference.AUTO", mx_rules,
                   "quantizes activations too"},
                  {"MXFP8A16", 8, "group", 32, "torch.uint8", "mxfp8-quantized", "",
                   "its scales are even at one mantissa bit: dialect=compressed-tensors"}},
    ecosystem_row{"mxfp8_e5m2",
                  {mx_config, "torch.float8_e5m2", "KernelPreference.EMULATED", mx_rules,
                   "quantizes activations too; emulated"},
                  {"", 0, "", 0, "", "", "", "its 8-bit floats are E4M3"}},
    ecosystem_row{"mxfp6",
                  {mx_config, "fp6_e2m3", "KernelPreference.EMULATED", mx_rules,
                   "quantizes activations too; emulated"},
                  {"", 0, "", 0, "", "", "", "it has no 6-bit floats"}},
    ecosystem_row{"mxfp6_e3m2",
                  {mx_config, "fp6_e3m2", "KernelPreference.EMULATED", mx_rules,
                   "quantizes activations too; emulated"},
                  {"", 0, "", 0, "", "", "", "it has no 6-bit floats"}},
    ecosystem_row{"mxfp4",
                  {mx_config, "torch.float4_e2m1fn_x2", "KernelPreference.AUTO", mx_rules,
                   "quantizes activations too"},
                  {"MXFP4A16", 4, "group", 32, "torch.uint8", "mxfp4-pack-quantized", "even", ""}},
    ecosystem_row{"mxfp4_e3m0",
                  {"", "", "", "", "it has no E3M0"},
                  {"", 0, "", 0, "", "", "", "its 4-bit floats are E2M1"}},
    ecosystem_row{"mxint8",
                  {"", "", "", "", "its MX formats have no integers"},
                  {"", 0, "", 0, "", "", "", "its integers have no power-of-two scales"}},
    ecosystem_row{"mxint4",
                  {"", "", "", "", "its MX formats have no integers"},
                  {"", 0, "", 0, "", "", "", "its integers have no power-of-two scales"}},
    ecosystem_row{"nvfp4",
                  {nvfp4_config, "", "", "two-level single-level",
                   "weights only; both extents must be multiples of 16"},
                  {"NVFP4A16", 4, "tensor_group", 16, "torch.float8_e4m3fn", "nvfp4-pack-quantized",
                   "two-level", ""}},
    ecosystem_row{"fp8_1x128",
                  {"", "", "", "", "its float8 configs scale per tensor or per row"},
                  {"", 0, "", 0, "", "", "", "rows of 128 are for activations there"}},
    ecosystem_row{"fp8_128x128",
                  {"", "", "", "", "its float8 configs scale per tensor or per row"},
                  {"FP8_BLOCK", 8, "block", 0, "", "float-quantized", "amax",
                   "the preset quantizes activations too"}},
};

/// The row of a preset, or nullptr.
constexpr const ecosystem_row* find_ecosystem(std::string_view preset) {
    for (const ecosystem_row& row : ecosystems) {
        if (row.preset == preset) return &row;
    }
    return nullptr;
}

}  // namespace mx::plan
