// SPDX-License-Identifier: Apache-2.0
// Compares vector files with the emulator, bit for bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/conformance/verify/comparison.hpp"
#include "libmx/conformance/verify/vector_file.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/io/reader.hpp"

namespace mx::conformance::verify {

struct verify_options {
    /// Replaces what the metadata says: the whole recipe for blocks, the element format for
    /// elements and stochastic. A file that does not state its kind is then read as blocks.
    std::optional<codec::recipe> recipe;
    /// Replaces the model that a file of matrix instructions requires.
    std::optional<gemm::accumulator> accumulator;
    std::size_t show = 10;  ///< how many differences are kept
    int threads = 0;        ///< 0: as many as the machine offers
};

/// Compares every contract tensor of an opened file. Throws base::error (input) if the metadata or
/// a tensor is missing, unknown or has the wrong shape, or if the file has no contract tensors.
verification verify_vectors(const io::reader& file, const std::string& path,
                            const verify_options& options);

/// `paths` with every folder replaced by its *.safetensors files, sorted, and the folder of a
/// recording by the files of its manifest, after checking them against it. Throws base::error
/// (input) for a folder without such files.
std::vector<std::string> vector_paths(const std::vector<std::string>& paths);

/// Compares a file. Returns what it was compared with (verification::by).
using verify_function = std::string (*)(const vector_file& file, const verify_options& options,
                                        comparison& found);

std::string verify_blocks(const vector_file& file, const verify_options& options,
                          comparison& found);
std::string verify_elements(const vector_file& file, const verify_options& options,
                            comparison& found);
std::string verify_scales(const vector_file& file, const verify_options& options,
                          comparison& found);
std::string verify_stochastic(const vector_file& file, const verify_options& options,
                              comparison& found);
std::string verify_mma(const vector_file& file, const verify_options& options, comparison& found);
/// The part of verify_mma for generated inputs.
std::string verify_captured_mma(const vector_file& file, const verify_options& options,
                                comparison& found);
std::string verify_cvt(const vector_file& file, const verify_options& options, comparison& found);
std::string verify_gemm(const vector_file& file, const verify_options& options, comparison& found);
std::string verify_recorded(const vector_file& file, const verify_options& options,
                            comparison& found);

/// THE LIST of kinds of vector files: the values of `kind` in the metadata, and the function that
/// compares each.
struct vector_kind {
    std::string_view name;
    verify_function compare;
    std::string_view summary;
};

inline constexpr std::array vector_kinds{
    vector_kind{"blocks", verify_blocks, "blocks with their scales, codes and dequantized values"},
    vector_kind{"elements", verify_elements, "conversions of single values by implementation"},
    vector_kind{"scales", verify_scales, "shared scales for a list of block maxima"},
    vector_kind{"stochastic", verify_stochastic, "stochastic rounding with the random words"},
    vector_kind{"mma", verify_mma, "matrix instructions, from models or of mx_capture"},
    vector_kind{"cvt", verify_cvt, "conversion instructions, of mx_capture"},
    vector_kind{"gemm", verify_gemm, "a library's products, of mx_capture"},
    vector_kind{"recorded", verify_recorded, "matrix instructions, recorded on GPUs"},
};

}  // namespace mx::conformance::verify
