// SPDX-License-Identifier: Apache-2.0
// THE LIST of what inference engines load: how the weights of a module are stored under a recipe,
// by layout. io/quantized reads all of them. Sources: vllm-project/compressed-tensors 0.20.1
// compressors/{nvfp4,mxfp4,mxfp8,naive_quantized}/base.py, quantization/quant_scheme.py;
// vllm-project/vllm@c9a5990 model_executor/layers/quantization/modelopt.py;
// deepseek-ai/DeepSeek-V3@0623163 inference/kernel.py; openai/gpt-oss@1983a9d
// gpt_oss/torch/weights.py; ggml-org/ggml@d99724f src/ggml-common.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/studies/convert/convert.hpp"

namespace mx::convert {

/// Whether a file has a tensor scale, and what its reader does with it.
enum class outer_form : std::uint8_t { none, divides, multiplies };

/// Axes of an array of codes or scales, for a weight of [..., rows, columns].
enum class axes_form : std::uint8_t {
    plain,      ///< codes: as the weight, in bytes; scales: the grid of blocks
    blocks,     ///< codes: [..., rows, blocks, bytes of a block]
    rows,       ///< scales: [..., rows]
    tile_grid,  ///< scales: [tiles down, 1, tiles along, 1]
};

struct weight_form {
    std::string_view layout;
    /// Recipes with these elements, scales and blocks have this form, whatever their scale rule. Of
    /// the dialect counts only what a tensor scale is (`outer`).
    std::string_view recipe;
    outer_form outer;
    bool whole_blocks;  ///< whether rows, and columns under tiles, are multiples of the block
    /// Endings after the module, or the stack; no scales: the tensor scale is the only one.
    std::string_view codes, scales, tensor_scale;
    tensor::dtype codes_type, scales_type;
    axes_form code_axes, scale_axes;
    std::string_view config;         ///< what the configuration calls it
    std::string_view activations;    ///< what engines do with them
    std::string_view input_scale{};  ///< ending of the static scale of a module's input, if any
    bool needs_input_scale = false;
    float scale_factor = 1;  ///< by which scales in float32 are multiplied
};

inline constexpr std::string_view weights_only = "not quantized";

inline constexpr std::array weight_forms{
    weight_form{"compressed-tensors", "nvfp4:dialect=compressed-tensors", outer_form::divides, true,
                ".weight_packed", ".weight_scale", ".weight_global_scale", tensor::dtype::u8,
                tensor::dtype::f8_e4m3, axes_form::plain, axes_form::plain, "nvfp4-pack-quantized",
                weights_only, ".input_global_scale"},
    weight_form{"compressed-tensors", "mxfp4", outer_form::none, true, ".weight_packed",
                ".weight_scale", "", tensor::dtype::u8, tensor::dtype::u8, axes_form::plain,
                axes_form::plain, "mxfp4-pack-quantized", weights_only},
    weight_form{"compressed-tensors", "mxfp8", outer_form::none, true, ".weight", ".weight_scale",
                "", tensor::dtype::f8_e4m3, tensor::dtype::u8, axes_form::plain, axes_form::plain,
                "mxfp8-quantized", weights_only},
    weight_form{"compressed-tensors", "e4m3:scale=channel", outer_form::none, false, ".weight",
                ".weight_scale", "", tensor::dtype::f8_e4m3, tensor::dtype::f32, axes_form::plain,
                axes_form::plain, "float-quantized", "a scale per token"},
    weight_form{"compressed-tensors", "fp8_128x128", outer_form::none, false, ".weight",
                ".weight_scale", "", tensor::dtype::f8_e4m3, tensor::dtype::f32, axes_form::plain,
                axes_form::plain, "float-quantized", "a scale per 128 elements"},
    weight_form{"compressed-tensors", "e4m3:scale=tensor", outer_form::multiplies, false, ".weight",
                "", ".weight_scale", tensor::dtype::f8_e4m3, tensor::dtype::f32, axes_form::plain,
                axes_form::plain, "float-quantized", "a scale per token", ".input_scale"},
    // mx's int8 are integers over 64.
    weight_form{"compressed-tensors", "int8:scale=channel", outer_form::none, false, ".weight",
                ".weight_scale", "", tensor::dtype::i8, tensor::dtype::f32, axes_form::plain,
                axes_form::plain, "int-quantized", "a scale per token", "", false, 0x1p-6f},
    weight_form{"modelopt", "nvfp4", outer_form::multiplies, true, ".weight", ".weight_scale",
                ".weight_scale_2", tensor::dtype::u8, tensor::dtype::f8_e4m3, axes_form::plain,
                axes_form::plain, "NVFP4", "NVFP4, the tensor scale in the file", ".input_scale",
                true},
    weight_form{"modelopt", "e4m3:scale=tensor", outer_form::multiplies, false, ".weight", "",
                ".weight_scale", tensor::dtype::f8_e4m3, tensor::dtype::f32, axes_form::plain,
                axes_form::plain, "FP8", "E4M3, the tensor scale in the file", ".input_scale",
                true},
    weight_form{"modelopt", "e4m3:scale=channel", outer_form::none, false, ".weight",
                ".weight_scale", "", tensor::dtype::f8_e4m3, tensor::dtype::f32, axes_form::plain,
                axes_form::rows, "FP8_PER_CHANNEL_PER_TOKEN", "a scale per token"},
    weight_form{"modelopt", "fp8_128x128", outer_form::none, true, ".weight", ".weight_scale", "",
                tensor::dtype::f8_e4m3, tensor::dtype::f32, axes_form::plain, axes_form::tile_grid,
                "FP8_PB_WO", "a scale per 128 elements"},
    weight_form{"deepseek", "fp8_128x128", outer_form::none, false, ".weight", ".weight_scale_inv",
                "", tensor::dtype::f8_e4m3, tensor::dtype::f32, axes_form::plain, axes_form::plain,
                "fp8", "a scale per 128 elements"},
    weight_form{"gpt-oss", "mxfp4", outer_form::none, true, "_blocks", "_scales", "",
                tensor::dtype::u8, tensor::dtype::u8, axes_form::blocks, axes_form::plain, "mxfp4",
                "as the engine chooses"},
};

/// A recipe in ggml's blocks, in which codes and scales of a row alternate.
struct gguf_form {
    std::string_view name;    ///< what users write
    std::string_view recipe;  ///< as of a weight_form; of blocks that are encoded, the nearest
    std::uint32_t type_id;    ///< of io::gguf_types
    std::uint32_t file_type;  ///< what general.file_type calls it (llama_ftype)
    interleaved_blocks blocks;
};

/// GGUF, as it is called among the layouts.
inline constexpr std::string_view gguf_layout = "gguf";

/// What files of the recipe's dialect do with its tensor scale.
outer_form outer_of(const codec::recipe& r);

/// A recipe for a layout: as of codec::parse_recipe, or of gguf the name of a type with ggml's own
/// rule, q8_0. Throws base::error (usage).
codec::recipe parse_layout_recipe(std::string_view layout, std::string_view text);

/// Whether `r` has the elements, scales and blocks of the recipe `like`, whatever its scale rule,
/// dialect and tensor scale.
bool has_blocks_of(const codec::recipe& r, std::string_view like);

/// The layouts, gguf last.
const std::vector<std::string_view>& engine_layouts();

/// Quantizes what has a recipe into a new folder that engines load: the weights in the layout, an
/// index, config.json with its quantization_config, and the files beside the input; gguf: into the
/// file `folder`, as write_gguf_layout. Matrices that engines load as one (engine::fused_name)
/// share their tensor scale, and are kept if one of them is. `activations`: a file with inputs of
/// modules, MODULE.x, as `mx eval --dump` writes it, for their static scales; empty: there are
/// none. Throws base::error: usage for a recipe that the layout cannot hold, with those that it
/// can, for partners under different recipes, for a tensor scale without blocks beside recipes with
/// them, and for activations where the layout has no static scales, or needs them; input if nothing
/// is quantized, the activations lack a module, or no config.json is beside the input; output if
/// `folder` is neither new nor empty.
conversion write_engine_layout(std::string_view layout, std::vector<assigned_tensor> tensors,
                               const std::string& folder, const std::string& activations,
                               std::uint64_t shard_bytes, const engine::run_control& control);

/// Quantizes what has a recipe into a GGUF file. `tensors` are of a GGUF file, whose metadata and
/// tokenizer it gets, and other tensors have the bytes and the type of the input; or of a folder of
/// transformers, whose config.json and tokenizer become metadata, and other matrices keep F32, F16
/// or BF16. Throws base::error as gguf_model_of (gguf_model.hpp); usage for a recipe that ggml has
/// no blocks for; input if nothing is quantized.
conversion write_gguf_layout(const std::vector<assigned_tensor>& tensors, const std::string& path,
                             const engine::run_control& control);

}  // namespace mx::convert
