// SPDX-License-Identifier: Apache-2.0
// Converts tensors: cast, quantize, dequantize.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/convert_element.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/engine/cast_recipe.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/io/writer.hpp"

namespace mx::convert {

/// The result of a conversion.
struct conversion {
    std::uint64_t tensors = 0;   ///< converted
    std::uint64_t elements = 0;  ///< of the converted tensors
    std::uint64_t bytes_written = 0;
    std::vector<engine::skipped_tensor> kept;  ///< no weights: in the output bit for bit as stored
    std::vector<engine::skipped_tensor> skipped;  ///< not in the output
    std::vector<std::string> remarks;             ///< engine::remarks_on the input
};

/// Creates the writer of the converted arrays.
using destination = std::function<std::unique_ptr<io::array_writer>(
    const std::vector<io::planned_array>& plan, const io::metadata_map& metadata)>;

/// A file: .npy (exactly one tensor), .h5, .hdf5, .safetensors.index.json (in shards of at most
/// `shard_bytes`), otherwise safetensors.
destination to_file(const std::string& path, std::uint64_t shard_bytes = io::usual_shard_bytes);

enum class quantized_form : std::uint8_t {
    values,  ///< dequantized, as F32
    packed,  ///< codes, scales and offsets: docs/design/packed-layout.md
    codes,   ///< the same with one code to a byte, whatever its bits
};

/// Consecutive codes of a row that are stored together with their scales, which are bytes.
struct interleaved_blocks {
    std::uint32_t elements = 0, bytes = 0;  ///< of one
    /// Fills `out`, one of them.
    void (*pack)(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales,
                 std::span<std::byte> out) = nullptr;
    /// In place of `pack`, of blocks that no recipe describes: encodes values, and returns whether
    /// all are kept.
    bool (*encode)(std::span<const float> values, std::span<std::byte> out) = nullptr;
};

/// The arrays of a quantized tensor.
struct stored_arrays {
    io::planned_array codes;
    int code_bits = 8;
    const interleaved_blocks* interleaved = nullptr;  ///< `codes` has the scales, too
    std::optional<io::planned_array> scales{}, offsets{}, tensor_scale{};
    std::optional<io::planned_array> input_scale{};  ///< of the activations: one F32
    float input_scale_value = 1;
    float scale_factor = 1;  ///< by which scales in float32 are multiplied
};

/// The arrays that a tensor becomes under a recipe that fits it.
using storage = std::function<stored_arrays(const io::tensor_info&, const codec::recipe&)>;

/// A tensor and its treatment.
struct assigned_tensor {
    engine::tensor_ref tensor;
    std::optional<codec::recipe> recipe;  ///< none: it is copied bit for bit
    std::string kept;                     ///< why, where it is copied
};

/// A recipe without blocks, and the form of its output.
struct cast_request : engine::cast_recipe {
    /// Codes (`w.codes`) in the packed layout of `quantize --packed`, of wide formats `w` as files
    /// store it; otherwise `w` as F32.
    bool packed = false;
    /// Of codes under scale=tensor, the arrays of a layout of engines; the scale of a tensor is the
    /// one that its recipe gives.
    storage arrays{};
};

/// The conversion of single values; none to wide formats, which only round. Throws base::error
/// (usage) for unknown formats, and if the dialect lacks the conversion.
std::optional<codec::element_cast> element_cast_of(const cast_request& request);

/// Converts the elements of the tensors without a scale, except those that are `kept`. Throws
/// base::error: usage if the dialect lacks the conversion; with `packed`, input for a value without
/// a code.
conversion cast(const std::vector<assigned_tensor>& tensors, const cast_request& request,
                const destination& out, const engine::run_control& control);

/// Of all tensors, into a file.
conversion cast(const std::vector<engine::tensor_ref>& tensors, const cast_request& request,
                const std::string& out, const engine::run_control& control);

/// Options of a conversion, in parts or into arrays of another layout.
struct conversion_parts {
    /// For a part: a note in its metadata; a part may have no tensors. Empty for a whole
    /// conversion.
    std::string note;
    /// For the whole: the files of all parts, from which quantized arrays are copied. Empty: they
    /// are computed.
    std::vector<const io::reader*> merged;
    /// Other arrays than those of the form `packed`, without metadata about recipes.
    storage arrays{};
    /// Whether the output has metadata about recipes and tensors: writing them takes longer than
    /// quantizing a small array.
    bool described = true;
};

/// The metadata key that marks a part.
inline constexpr const char* part_key = "mx.part";

/// Quantizes each tensor under its own recipe. Tensors that do not fit their recipe are copied with
/// `keep_rest`, else left out. Throws base::error: usage for a recipe that cannot be packed, input
/// if no tensor is quantized.
conversion quantize_model(const std::vector<assigned_tensor>& tensors, quantized_form form,
                          bool keep_rest, const destination& out,
                          const engine::run_control& control, const conversion_parts& parts = {});

/// Quantizes every tensor under `recipe`.
conversion quantize_model(const std::vector<engine::tensor_ref>& tensors,
                          const codec::recipe& recipe, quantized_form form, const destination& out,
                          const engine::run_control& control);

inline conversion quantize_model(const std::vector<engine::tensor_ref>& tensors,
                                 const codec::recipe& recipe, bool packed, const std::string& out,
                                 const engine::run_control& control) {
    return quantize_model(tensors, recipe, packed ? quantized_form::packed : quantized_form::values,
                          to_file(out), control);
}

/// Reads a file written by `quantize --packed` and writes the dequantized values as F32.
conversion dequantize_model(const io::reader& file, const std::string& out,
                            const engine::run_control& control);

/// Writes tensors that are decoded when read (quantized/layouts.hpp, ggml's blocks) as F32,
/// rounded once if a value is not representable, and keeps the other tensors bit for bit. Throws
/// base::error (input) if no tensor is decoded.
conversion dequantize_tensors(const std::vector<engine::tensor_ref>& tensors,
                              const std::string& out, const engine::run_control& control);

}  // namespace mx::convert
