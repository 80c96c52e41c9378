// SPDX-License-Identifier: Apache-2.0
// Conformance vectors for other implementations: a blocks file for `mx verify`, and the same arrays
// as text for $readmemh.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/conformance/vectors/block_vectors.hpp"
#include "libmx/conformance/vectors/vector_inputs.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::conformance::vectors {

struct vector_request {
    codec::recipe recipe;
    std::uint64_t blocks = 0;  ///< 0: default_vector_blocks
    std::uint64_t seed = 0;    ///< of the generated inputs
    std::string made_by;       ///< tool and version, for the headers
};

/// 240 blocks, or fewer if blocks are large, but at least one of each category.
std::uint64_t default_vector_blocks(const codec::recipe& r);

/// Inputs and their source.
struct vector_source {
    vector_inputs inputs;  ///< without categories when they come from a tensor
    std::string words;     ///< for the metadata
};

/// Generated inputs.
vector_source generated_source(const vector_request& request);

/// Whole blocks of the tensors, evenly spaced over the blocks of each. Throws base::error: usage if
/// a tensor is not numeric or has no whole block; input if it cannot be read.
vector_source tensor_source_of(const std::vector<engine::tensor_ref>& tensors,
                               const vector_request& request);

/// One array of unsigned words, with a fixed number per block (0: one word for all blocks).
struct vector_array {
    std::string_view name;  ///< of the tensor
    std::string_view text;  ///< of the file for $readmemh, without its ending
    tensor::dtype type = tensor::dtype::u8;
    int bits = 8;  ///< that a word uses
    std::size_t per_block = 1;
    bool contract = true;  ///< what an implementation must reproduce; otherwise an input
    std::string_view meaning;
    std::vector<std::uint32_t> words{};
};

/// The header comment of a text file, besides the description of the array.
struct hex_heading {
    std::string recipe;
    std::string made_by;
    std::string source;
};

/// Comment lines with recipe, tool, layout and width; then one line per block with its words in
/// hexadecimal, first element first, each padded to its bit width.
std::string hex_text(const vector_array& a, const hex_heading& heading);

/// A summary of the files written.
struct vector_report {
    std::string path;
    std::uint64_t blocks = 0;
    std::uint64_t elements = 0;
    std::vector<std::string> texts;  ///< paths of the hexadecimal files
};

/// Quantizes the inputs and writes the file. If `hex` is not empty, also writes one text file per
/// array to that folder, which is created if missing. No file is left incomplete.
vector_report export_vectors(const vector_request& request, const vector_source& source,
                             const std::string& out, const std::string& hex);

/// Creates a folder if it is missing. Throws base::error (output).
void make_folder(const std::string& path);

/// The names of the files that export_vectors writes into `hex` for this recipe.
std::vector<std::string> hex_files(const codec::recipe& r, const std::string& hex);

}  // namespace mx::conformance::vectors
