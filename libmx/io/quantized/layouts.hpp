// SPDX-License-Identifier: Apache-2.0
// THE LISTS of how checkpoints keep quantized tensors: the layouts, and the names under which
// writers keep codes and scales. A name makes a candidate; dtypes and shapes must confirm it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace mx::io {

/// What holds the element codes.
enum class code_array : std::uint8_t {
    fp4_blocks,  ///< U8 [..., G, 16]: E2M1, two per byte, low nibble first, a block per last axis
    fp4,         ///< F4, or U8 or I8 with half the last extent: two E2M1 per byte, low nibble first
    fp6,         ///< F6_E2M3, F6_E3M2
    fp8,         ///< F8_E4M3, F8_E5M2, F8_E4M3FNUZ, F8_E5M2FNUZ
    int8,        ///< I8: the integer itself
    int_words,   ///< I32: integers of 4 or 8 bits, from the low end of a word on, each plus half
                 ///< its range; NAME_shape says how many there are
};

/// What holds the scales.
enum class scale_array : std::uint8_t {
    e8m0,  ///< U8 or F8_E8M0: 2^(code-127), 255 is NaN
    e4m3,  ///< F8_E4M3
    real,  ///< F32, BF16, F16
};

/// A block extent of the whole axis.
inline constexpr std::uint64_t whole_axis = 0;

/// A block along the last axis, as long as the number of scales makes it.
inline constexpr std::uint64_t equal_parts = ~std::uint64_t{0};

/// A value is code * scale (* or / the tensor scale), without rounding in between.
struct quantized_layout {
    std::string_view name;
    std::string_view title;
    code_array codes;
    scale_array scales;
    /// Extents of a block along the last two axes. The shape of the scales is that of the grid of
    /// blocks; the last block of an axis may be short.
    std::uint64_t block_rows, block_cols;
    bool tensor_scale;  ///< whether there may be one (tensor_scale_names)
    std::string_view source;
};

/// In the order in which they are tried.
inline constexpr std::array quantized_layouts{
    quantized_layout{"mxfp4", "MXFP4", code_array::fp4_blocks, scale_array::e8m0, 1, 32, false,
                     "openai/gpt-oss@1983a9d gpt_oss/torch/weights.py"},
    quantized_layout{"mxfp4", "MXFP4", code_array::fp4, scale_array::e8m0, 1, 32, false,
                     "OCP MX 1.0; amd/Quark and compressed-tensors write it; "
                     "DeepSeek-V4-Flash in I8, by listings of its headers"},
    quantized_layout{"mxfp6", "MXFP6", code_array::fp6, scale_array::e8m0, 1, 32, false,
                     "OCP MX 1.0"},
    quantized_layout{"mxfp8", "MXFP8", code_array::fp8, scale_array::e8m0, 1, 32, false,
                     "OCP MX 1.0; NVIDIA/TensorRT-Model-Optimizer writes it"},
    quantized_layout{"nvfp4", "NVFP4", code_array::fp4, scale_array::e4m3, 1, 16, true,
                     "NVIDIA/TensorRT-Model-Optimizer@0d7d92d qtensor/nvfp4_tensor.py; "
                     "neuralmagic/compressed-tensors@0caa6c3 nvfp4_quantized.py"},
    quantized_layout{"fp8-128x128", "FP8 in tiles", code_array::fp8, scale_array::e8m0, 128, 128,
                     false, "DeepSeek-V4-Flash, by listings of its headers"},
    quantized_layout{"fp8-tensor", "FP8, one scale", code_array::fp8, scale_array::real, whole_axis,
                     whole_axis, false, "compressed-tensors float-quantized, modelopt FP8"},
    quantized_layout{"fp8-rows", "FP8, a scale per row", code_array::fp8, scale_array::real, 1,
                     whole_axis, false, "compressed-tensors float-quantized, per channel"},
    quantized_layout{"fp8-128x128", "FP8 in tiles", code_array::fp8, scale_array::real, 128, 128,
                     false, "deepseek-ai/DeepSeek-V3@0623163 inference/kernel.py"},
    quantized_layout{"int8-tensor", "INT8, one scale", code_array::int8, scale_array::real,
                     whole_axis, whole_axis, false, "compressed-tensors int-quantized"},
    quantized_layout{"int8-rows", "INT8, a scale per row", code_array::int8, scale_array::real, 1,
                     whole_axis, false, "compressed-tensors int-quantized, per channel"},
    quantized_layout{"pack-quantized", "integers in words", code_array::int_words,
                     scale_array::real, 1, equal_parts, false,
                     "compressed-tensors pack-quantized (pack_to_int32), groups and channels"},
};

/// A tensor STEM+tensor is kept as STEM+codes and STEM+scales.
struct quantized_naming {
    std::string_view codes, scales, tensor = "";
};

inline constexpr std::array quantized_namings{
    quantized_naming{"_blocks", "_scales"},  // openai/gpt-oss, as on the Hugging Face hub
    quantized_naming{".blocks", ".scales"},  // openai/gpt-oss, original
    quantized_naming{"_packed", "_scale"},   // compressed-tensors
    quantized_naming{"", "_scale"},          // modelopt, Quark, compressed-tensors
    quantized_naming{"", "_scales"},
    quantized_naming{"", "_scale_inv"},                // DeepSeek-V3: a factor all the same
    quantized_naming{".weight", ".scale", ".weight"},  // DeepSeek-V4
};

/// The array NAME+ending holds one F32 for the whole tensor.
struct tensor_scale_name {
    std::string_view ending;
    bool divides;  ///< values are divided by it; otherwise it is a factor
    std::string_view writer;
};

inline constexpr std::array tensor_scale_names{
    tensor_scale_name{"_scale_2", false, "modelopt"},
    tensor_scale_name{"_global_scale", true, "compressed-tensors"},
};

/// Endings of what may stand beside integers in words.
inline constexpr std::string_view packed_shape_ending = "_shape";  ///< I64 [2]: rows and columns
/// What makes values more than code * scale, or in another order.
inline constexpr std::array unread_companions{std::string_view("_zero_point"),
                                              std::string_view("_g_idx")};

}  // namespace mx::io
