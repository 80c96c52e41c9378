// SPDX-License-Identifier: Apache-2.0
// Host interface of the kernels of rows. Functions return the runtime's error code, 0 for success;
// streams are cudaStream_t.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/format/element_params.hpp"

namespace mx::codec::cuda {

/// Queues the recipes with a body in `bodies` (a bit for each, without segment_body), rounding by
/// arithmetic.
int enqueue_rows(const launch& l, std::uint32_t bodies, void* stream);

/// float32 words `first`, `first + step`, ... modulo 2^32.
struct word_range {
    std::uint32_t first, step;
    std::uint64_t count;
    bool finite;  ///< leave out Inf and NaN
};

/// The expected result of an instruction: saturated, to nearest even, and converted back.
struct expected_conversion {
    format::element_params element;
    float value[256];
};

/// A device's instructions for an element format.
struct instruction_path {
    std::string_view format;  ///< one of row_formats
    std::string_view narrow;  ///< PTX
    std::string_view widen;
    int (*has_code)();
    int (*enqueue)(const launch& l, std::uint32_t bodies, void* stream);
    /// Adds to *different, on the device, the number of words in the range that an instruction
    /// converts, in either half of a pair, or converts back differently from the emulator
    /// (format::cast_code).
    int (*compare)(const expected_conversion& expected, const word_range& words,
                   unsigned long long* different, void* stream);
};

/// For sm_89 and later, and for sm_100 and later.
std::span<const instruction_path> fp8_paths();
std::span<const instruction_path> narrow_paths();

/// Runs a comparison to completion. Throws base::error (unavailable) if the device fails.
std::uint64_t differences(const instruction_path& path, const word_range& words);

/// The bodies of rows that the current device may convert by its instructions: it has them, and
/// they agree with the emulator on all finite bf16 and a million float32. Checked once, at the
/// first call; a failure of the device counts as a difference.
std::uint32_t bodies_by_instruction();

}  // namespace mx::codec::cuda
