// SPDX-License-Identifier: Apache-2.0
// Vector files against the emulator, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/conformance/verify/comparison.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/io/reader.hpp"

namespace mx::conformance::verify {

struct verify_options {
    /// Used instead of what the metadata says: the whole recipe for blocks, the element format for
    /// elements and stochastic. A file that does not name its kind is then taken as blocks.
    std::optional<codec::recipe> recipe;
    /// Used instead of the model that a file of matrix instructions calls for.
    std::optional<gemm::accumulator> accumulator;
    std::size_t show = 10;  ///< how many differences are kept
};

/// What one file came to.
struct verification {
    std::string file;
    std::string kind;
    std::string by;  ///< the canonical recipe, or the format and the dialects compared
    std::uint64_t compared = 0;
    std::uint64_t differences = 0;
    std::vector<skipped_values> skipped;
    std::vector<difference> first;  ///< at most verify_options::show
    /// Of recordings of matrix instructions.
    std::vector<tensor_differences> tensors;
    std::optional<model_fit> fit;  ///< where the model differs, or there is none
};

/// Compares every contract tensor of an opened file. Throws base::error: input when the metadata
/// or a tensor is missing, unknown or misshapen, or when nothing in the file is contract.
verification verify_vectors(const io::reader& file, const std::string& path,
                            const verify_options& options);

/// `paths` with every folder replaced by its *.safetensors files, sorted, and the folder of a
/// recording by the files that its manifest lists, once they are those that were recorded. Throws
/// base::error (input) for a folder without any.
std::vector<std::string> vector_paths(const std::vector<std::string>& paths);

}  // namespace mx::conformance::verify
