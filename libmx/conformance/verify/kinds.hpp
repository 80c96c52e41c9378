// SPDX-License-Identifier: Apache-2.0
// THE LIST of kinds of vector files: what `kind` in the metadata may say, and who compares it.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "libmx/conformance/verify/comparison.hpp"
#include "libmx/conformance/verify/vector_file.hpp"
#include "libmx/conformance/verify/verify.hpp"

namespace mx::conformance::verify {

/// Compares a file; returns what it was compared with (verification::by).
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
/// The part of verify_mma for inputs made from a seed.
std::string verify_captured_mma(const vector_file& file, const verify_options& options,
                                comparison& found);
std::string verify_cvt(const vector_file& file, const verify_options& options, comparison& found);
std::string verify_gemm(const vector_file& file, const verify_options& options, comparison& found);
std::string verify_recorded(const vector_file& file, const verify_options& options,
                            comparison& found);

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
