// SPDX-License-Identifier: Apache-2.0
// THE LISTS of how checkpoints store quantized tensors: the layouts, and the names under which
// writers store codes and scales. A name makes a candidate; dtypes and shapes must confirm it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace mx::io {

/// What element codes are stored in.
enum class code_array : std::uint8_t {
    fp4_blocks,  ///< U8 [..., G, 16]: E2M1, two per byte, low nibble first, a block per last axis
    fp4,         ///< F4, or U8 or I8 with half the last extent: two E2M1 per byte, low nibble
                 ///< first; U32 with an eighth of it: the same bytes
    fp6,         ///< F6_E2M3, F6_E3M2
    fp8,         ///< F8_E4M3, F8_E5M2, F8_E4M3FNUZ, F8_E5M2FNUZ; U32: four E4M3 each
    int8,        ///< I8: the integer itself
    int_words,   ///< I32: integers of 2 to 8 bits without gaps, from the low end of a word on, each
                 ///< plus half its range; NAME_shape says how many there are
    gptq_words,  ///< I32 [in*bits/32, out]: unsigned integers of 2 to 8 bits, down the columns
    awq_words,   ///< I32 [in, out/8]: unsigned integers of 4 bits, along the rows in the order of
                 ///< awq_places
    table4,  ///< two indices into a table of 16 values per byte, high nibble first, of any dtype
    ggml_nvfp4,  ///< the decoded values of GGUF's NVFP4 blocks
};

/// Nibble of a word, counted from its low end, that contains column i of eight.
inline constexpr std::array<unsigned, 8> awq_places{0, 4, 1, 5, 2, 6, 3, 7};

/// What scales are stored in.
enum class scale_array : std::uint8_t {
    e8m0,  ///< U8 or F8_E8M0: 2^(code-127), 255 is NaN
    e4m3,  ///< F8_E4M3; U8 beside codes in U32
    real,  ///< F32, BF16, F16
};

/// A block extent of the whole axis.
inline constexpr std::uint64_t whole_axis = 0;

/// A block along the last axis, whose length follows from the number of scales.
inline constexpr std::uint64_t equal_parts = ~std::uint64_t{0};

/// A scale for each matrix of a stack, or one for all.
inline constexpr std::uint64_t whole_matrix = ~std::uint64_t{0} - 1;

/// The side of a tile as config.json states it, else the only power of two whose square tiles form
/// the grid of the scales.
inline constexpr std::uint64_t stated_tile = ~std::uint64_t{0} - 2;

/// A value is (code - zero point) * scale (* or / the tensor scale) (* the scale of its input
/// channel), without rounding in between.
struct quantized_layout {
    std::string_view name;
    std::string_view title;
    code_array codes;
    scale_array scales;
    /// Extents of a block along the last two axes. The shape of the scales is that of the grid of
    /// blocks, axes of one aside; the last block of an axis may be short. Blocks of one row and 2
    /// to 32 columns may also run down the columns, with codes packed along that axis.
    std::uint64_t block_rows, block_cols;
    bool tensor_scale;  ///< whether there may be one (tensor_scale_names)
    std::string_view source;
    std::string_view family{};   ///< only with the names of this group
    double divisor = 1;          ///< of every value
    bool scale_divides = false;  ///< value = code / scale
};

/// In the order in which they are tried.
inline constexpr std::array quantized_layouts{
    quantized_layout{"mxfp4", "MXFP4", code_array::fp4_blocks, scale_array::e8m0, 1, 32, false,
                     "openai/gpt-oss@1983a9d gpt_oss/torch/weights.py"},
    quantized_layout{"mxfp4", "MXFP4", code_array::fp4, scale_array::e8m0, 1, 32, false,
                     "OCP MX 1.0; amd/Quark and compressed-tensors write it; "
                     "DeepSeek-V4-Flash in I8, by listings of its headers"},
    quantized_layout{"mxfp4", "MXFP4", code_array::fp4_blocks, scale_array::real, 1, 32, false,
                     "vllm-project/vllm#51419: scales as numbers"},
    quantized_layout{"mxfp4", "MXFP4", code_array::fp4, scale_array::real, 1, 32, false,
                     "vllm-project/vllm#51419: scales as numbers"},
    quantized_layout{"mxfp6", "MXFP6", code_array::fp6, scale_array::e8m0, 1, 32, false,
                     "OCP MX 1.0"},
    quantized_layout{"mxfp8", "MXFP8", code_array::fp8, scale_array::e8m0, 1, 32, false,
                     "OCP MX 1.0; NVIDIA/TensorRT-Model-Optimizer writes it"},
    quantized_layout{"nvfp4", "NVFP4", code_array::fp4, scale_array::e4m3, 1, 16, true,
                     "NVIDIA/TensorRT-Model-Optimizer@0d7d92d qtensor/nvfp4_tensor.py; "
                     "neuralmagic/compressed-tensors@0caa6c3 nvfp4_quantized.py"},
    quantized_layout{"nvfp4", "NVFP4", code_array::fp4, scale_array::real, 1, 16, true,
                     "the same with scales as numbers"},
    quantized_layout{"fp8-128x128", "FP8 in tiles", code_array::fp8, scale_array::e8m0, 128, 128,
                     false, "DeepSeek-V4-Flash, by listings of its headers"},
    quantized_layout{"fp8-tensor", "FP8, one scale", code_array::fp8, scale_array::real,
                     whole_matrix, whole_matrix, false,
                     "compressed-tensors float-quantized, modelopt FP8; experts of "
                     "flashinfer-ai/flashinfer-bench#148"},
    quantized_layout{"fp8-rows", "FP8, a scale per row", code_array::fp8, scale_array::real, 1,
                     whole_axis, false, "compressed-tensors float-quantized, per channel"},
    quantized_layout{"fp8-128x128", "FP8 in tiles", code_array::fp8, scale_array::real, 128, 128,
                     false, "deepseek-ai/DeepSeek-V3@0623163 inference/kernel.py"},
    quantized_layout{"fp8-32x32", "FP8 in tiles of 32x32", code_array::fp8, scale_array::e8m0, 32,
                     32, false, "DeepSeek-V4.1-Flash, by JustVugg/colibri#1453"},
    quantized_layout{"fp8-1x128", "FP8 in runs of 128", code_array::fp8, scale_array::e8m0, 1, 128,
                     false, "engram tables of DeepSeek-V4.1, by one loader"},
    quantized_layout{"fp8-1x128", "FP8 in runs of 128", code_array::fp8, scale_array::real, 1, 128,
                     false, "engram tables of DeepSeek-V4.1, by one loader"},
    quantized_layout{"fp8-tiles", "FP8 in tiles", code_array::fp8, scale_array::e8m0, stated_tile,
                     stated_tile, false, "weight_block_size of config.json"},
    quantized_layout{"fp8-tiles", "FP8 in tiles", code_array::fp8, scale_array::real, stated_tile,
                     stated_tile, false,
                     "weight_block_size of config.json, unslothai/unsloth#7189"},
    quantized_layout{"fp8-columns", "FP8, a scale per column", code_array::fp8, scale_array::real,
                     whole_axis, 1, false, "modelopt FP8 per channel, experts as [in, out]"},
    quantized_layout{"fp8-parts", "FP8 in parts of rows", code_array::fp8, scale_array::real, 1,
                     equal_parts, false, "Comfy-Org/ComfyUI#10491"},
    quantized_layout{"int8-tensor", "INT8, one scale", code_array::int8, scale_array::real,
                     whole_matrix, whole_matrix, false, "compressed-tensors int-quantized"},
    quantized_layout{"int8-rows", "INT8, a scale per row", code_array::int8, scale_array::real, 1,
                     whole_axis, false, "compressed-tensors int-quantized, per channel"},
    quantized_layout{"int8-tiles", "INT8 in tiles", code_array::int8, scale_array::real,
                     stated_tile, stated_tile, false,
                     "sgl-project/sglang w8a8_block_int8: weight_block_size of config.json"},
    quantized_layout{"int8-columns", "INT8, a scale per column", code_array::int8,
                     scale_array::real, whole_axis, 1, false, "experts as [in, out]"},
    quantized_layout{"int8-parts", "INT8 in parts of rows", code_array::int8, scale_array::real, 1,
                     equal_parts, false, "compressed-tensors int-quantized, groups"},
    quantized_layout{"keras-int8", "Keras INT8", code_array::int8, scale_array::real, whole_axis, 1,
                     false, "keras-team/keras@01444e7 Dense, EinsumDense and Embedding, int8",
                     "keras", 1, true},
    quantized_layout{"pack-quantized", "integers in words", code_array::int_words,
                     scale_array::real, 1, equal_parts, false,
                     "compressed-tensors 0.20.0 pack-quantized (pack_to_int32), groups and "
                     "channels; Kimi-K2-Thinking"},
    quantized_layout{
        "gptq", "GPTQ", code_array::gptq_words, scale_array::real, 1, equal_parts, false,
        "AutoGPTQ 0.7.1, GPTQModel 7.7.0: checkpoint_format gptq, gptq_v2, gptq_p", "gptq"},
    quantized_layout{"awq", "AWQ", code_array::awq_words, scale_array::real, 1, equal_parts, false,
                     "AutoAWQ 0.2.9 awq/utils/packing_utils.py, version gemm", "gptq"},
    quantized_layout{"bnb-4bit", "bitsandbytes 4-bit", code_array::table4, scale_array::real, 1,
                     equal_parts, false, "bitsandbytes 0.50.2 functional.py: NF4 and FP4",
                     "bitsandbytes"},
    quantized_layout{"bnb-int8", "bitsandbytes INT8", code_array::int8, scale_array::real, 1,
                     whole_axis, false, "bitsandbytes 0.50.2 nn/modules.py: Linear8bitLt",
                     "bitsandbytes int8", 127},
    quantized_layout{"ggml-nvfp4", "ggml's NVFP4", code_array::ggml_nvfp4, scale_array::real,
                     whole_matrix, whole_matrix, false, "ggml-org/ggml@d99724f", "ggml"},
};

/// A tensor STEM+tensor is stored as STEM+codes and STEM+scales.
struct quantized_naming {
    std::string_view codes, scales, tensor{};
    std::string_view family{};  ///< of layouts
    /// Possible further arrays: zero points, and the group of each column.
    std::string_view zeros = "_zero_point", groups = "_g_idx";
};

inline constexpr std::array quantized_namings{
    quantized_naming{"_blocks", "_scales"},  // openai/gpt-oss, as on the Hugging Face hub
    quantized_naming{".blocks", ".scales"},  // openai/gpt-oss, original
    quantized_naming{"_packed", "_scale"},   // compressed-tensors
    quantized_naming{"", "_scale"},          // modelopt, Quark, compressed-tensors
    quantized_naming{"", "_scales"},
    quantized_naming{"", "_weight_scale"},                     // modelopt, fused experts
    quantized_naming{"", "_scale_inv"},                        // DeepSeek-V3: a factor all the same
    quantized_naming{".weight", ".scale", ".weight"},          // DeepSeek-V4
    quantized_naming{".weight", ".scales", ".weight"},         // MLX
    quantized_naming{".weight", ".qscale_weight", ".weight"},  // Mistral's own
    quantized_naming{".weight", ".scale_weight", ".weight"},   // ComfyUI
    quantized_naming{".weight._data", ".weight._scale", ".weight", "", ".weight._shift"},  // quanto
    quantized_naming{"._weight_qdata", "._weight_scale", ".weight", "", "._weight_zero_point"},
    quantized_naming{".qweight", ".scales", ".weight", "gptq", ".qzeros", ".g_idx"},
    quantized_naming{"", ".absmax", "", "bitsandbytes"},
    quantized_naming{".weight", ".SCB", ".weight", "bitsandbytes int8"},
    quantized_naming{".weight", ".scale", ".weight", "ggml"},
    // Keras: variables of a layer are numbered, and a bias may come between kernel and scale.
    quantized_naming{"/vars/0", "/vars/2", "/vars/0", "keras"},
    quantized_naming{"/vars/0", "/vars/1", "/vars/0", "keras"},
    quantized_naming{"/vars/2", "/vars/3", "/vars/2", "keras"},
};

/// The array NAME+ending or STEM+ending has one F32 for the whole tensor, or one for each matrix.
struct tensor_scale_name {
    std::string_view ending;
    bool divides;  ///< values are divided by it; otherwise it is a factor
    std::string_view writer;
};

inline constexpr std::array tensor_scale_names{
    tensor_scale_name{"_scale_2", false, "modelopt"},
    tensor_scale_name{"_weight_scale_2", false, "modelopt, fused experts"},
    tensor_scale_name{"_global_scale", true, "compressed-tensors"},
    tensor_scale_name{"._weight_per_tensor_scale", false, "torchao"},
};

/// Of an array beside STEM or NAME with a factor for each input channel: the layer multiplies its
/// input by it, so the weight is the decoded value times the factor (modelopt's AWQ and
/// SmoothQuant).
inline constexpr std::array input_channel_endings{std::string_view(".pre_quant_scale"),
                                                  std::string_view("_pre_quant_scale")};

/// Of an array beside STEM or NAME with the scale of the activations that the tensor is multiplied
/// by. It belongs to the tensor and scales none of its values.
inline constexpr std::array input_scale_endings{
    std::string_view(".input_scale"), std::string_view("_input_scale"),
    std::string_view(".input_global_scale"), std::string_view("_input_global_scale"),
    std::string_view(".scale_input")};

/// Endings of possible further arrays of integers in words.
inline constexpr std::string_view packed_shape_ending = "_shape";  ///< I64 [2]: rows and columns
/// Of bitsandbytes, beside NAME: a table of 16 F32, the state (JSON in U8) under either name, and,
/// if the scales are indices themselves, the arrays that they are made of.
inline constexpr std::string_view table_ending = ".quant_map";
inline constexpr std::array table_state_endings{std::string_view(".quant_state.bitsandbytes__nf4"),
                                                std::string_view(".quant_state.bitsandbytes__fp4")};
inline constexpr std::string_view outer_scales_ending = ".nested_absmax";
inline constexpr std::string_view outer_table_ending = ".nested_quant_map";
/// Beside bitsandbytes' INT8: 0 if rows are stored as rows.
inline constexpr std::string_view row_order_ending = "_format";

/// A packing that is recognised by the names of its arrays and not decoded: STEM+codes beside
/// STEM+mark. Codes are integers, and the array does not belong to a tensor that is decoded.
struct unread_packing {
    std::string_view name;
    std::string_view codes, mark;
    std::string_view scales;  ///< the ending of its scales; empty: none are called so
    std::string_view others;  ///< endings of further arrays of it, separated by spaces
};

inline constexpr std::array unread_packings{
    unread_packing{"MLX's affine words", ".weight", ".biases", ".scales", ""},
    unread_packing{"EXL3", ".trellis", ".svh", "", ".suh .su .sv .mcg .mul1"},
    unread_packing{"EXL2", ".q_weight", ".q_scale", ".q_scale",
                   ".q_scale_max .q_groups .q_perm .q_invperm"},
    unread_packing{"AQLM", ".codes", ".codebooks", ".scales", ""},
    unread_packing{"QuIP#", ".Qidxs", ".SU", ".Wscale", ".SV .codebook_id"},
    unread_packing{"VPTQ", ".indices", ".centroids.weight", ".weight_scale",
                   ".res_centroids.weight .weight_bias .perm"},
    unread_packing{"HQQ", ".W_q", ".scale", ".scale",
                   ".zero .meta .shape .nbits .group_size .axis"},
    unread_packing{"Marlin", ".B", ".s", ".s", ".workspace .meta"},
    unread_packing{"quanto's 4-bit words", ".weight._data._data", ".weight._scale",
                   ".weight._scale", ".weight._shift"},
    unread_packing{"GPTQ or AWQ words", ".qweight", ".qzeros", ".scales", ".g_idx"},
};

}  // namespace mx::io
