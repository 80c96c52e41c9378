// SPDX-License-Identifier: Apache-2.0
// Names, dtypes and metadata of packed files (docs/design/packed-layout.md), which `quantize
// --packed` and `cast --packed` write and `dequantize` reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libmx/block/view.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/io/sources.hpp"
#include "libmx/io/writer.hpp"

namespace mx::engine {

inline constexpr const char* schema_key_name = "mx.schema";
inline constexpr const char* tensor_scale_suffix = ".global_scale";

/// The array of `elements` codes of `type_name` (a safetensors dtype, or U8 if it has none) with
/// `bits` per code. Has the logical shape if the dtype supports it, else a flat array of bytes.
io::planned_array codes_array(const std::string& tensor, std::string_view type_name, int bits,
                              const tensor::shape& shape);

/// The path of a file, for error messages.
std::string path_of(const io::reader& file);

/// The dtype of `w.scales` under `r`.
tensor::dtype scales_type(const codec::recipe& r);

/// Metadata entry of a tensor: its name after a fixed prefix, and its original dtype and logical
/// shape as "BF16 64x128" ("F32 -" for a scalar). If its blocks run along axes that are not the
/// last one and that no recipe names, the first and last of these follow: "F32 512x213 0-0".
std::string tensor_key(const std::string& tensor);
std::string tensor_entry(const io::tensor_info& info, std::optional<axis_range> blocks = {});

/// A tensor and its recipe.
struct tensor_recipe {
    std::string tensor;
    codec::recipe recipe;
};

/// Adds the recipes to the metadata of a file and, with `packed`, the schema of packed files:
/// mx.packed/1 if all tensors have one recipe ("mx.recipe"), else mx.packed/2 ("mx.recipe.NAME" for
/// each).
void put_recipes(io::metadata_map& to, const std::vector<tensor_recipe>& tensors, bool packed);

/// Whether the file contains its recipes.
bool names_recipes(const io::reader& file);

/// A tensor found in a packed file.
struct packed_tensor {
    std::string name;
    codec::recipe recipe;
    tensor::dtype original;
    tensor::shape shape;
    io::contraction sums_over;
    std::size_t codes, scales;  ///< indices into the reader's tensors
    std::optional<std::size_t> offsets;
    std::optional<std::size_t> tensor_scale;  ///< or those of areas

    /// All of these.
    std::vector<std::size_t> parts() const;
    /// Its blocks, which were found to fit.
    block::grid grid() const;
};

/// Parses a packed file. Throws base::error (input) with what is missing or inconsistent.
std::vector<packed_tensor> read_packed(const io::reader& file);

/// The sources of the parts of quantized blocks; null without offsets. `outer`: as stored, for each
/// area of the grid if areas have outer scales.
struct block_sources {
    io::shared_source codes, scales, offsets;
    std::vector<float> outer{};
};

/// The dequantized values of blocks as F32, from codes of `code_bits` bits (packed) and scales of
/// scales_type.
std::unique_ptr<io::byte_source> open_blocks(const codec::recipe& r,
                                             const codec::block_params& params,
                                             const block::grid& g, int code_bits,
                                             const block_sources& from);

/// The dequantized values of a tensor of a packed file, as written by `mx dequantize`. Throws
/// base::error (input) for an outer scale that is negative, NaN or infinite.
std::unique_ptr<io::byte_source> open_packed(const io::reader& file, const packed_tensor& t);

/// Calls body(first, count) on several threads for pieces of a tensor under `g` that are efficient
/// to read as a whole.
void for_each_piece(const block::grid& g, int threads, const std::atomic<bool>* cancel,
                    const std::function<void(std::uint64_t first, std::uint64_t count)>& body);

}  // namespace mx::engine
