// SPDX-License-Identifier: Apache-2.0
// Tensors in, converted tensors out: cast, quantize, dequantize.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/format/element_formats.hpp"
#include "libmx/format/roundings.hpp"
#include "libmx/pipeline/analyze.hpp"
#include "libmx/pipeline/control.hpp"
#include "libmx/pipeline/model.hpp"
#include "libmx/quantize/recipe.hpp"

namespace mx::pipeline {

/// What a conversion did; `skipped` tensors (not numeric) are not in the output.
struct conversion {
    std::uint64_t tensors = 0;
    std::uint64_t elements = 0;
    std::uint64_t bytes_written = 0;
    std::vector<skipped_tensor> skipped;
};

/// What one can cast to: element formats, and scale formats with codes.
std::vector<std::string_view> castable_formats();

struct cast_request {
    std::string element;  ///< one of castable_formats()
    format::rounding round = format::rounding::rtne;
    format::tie_rule ties = format::tie_rule::up;
    std::optional<int> random_bits;  ///< none: the dialect's width
    std::uint64_t seed = 0;
    bool saturate = true;  ///< false: beyond the maximum gives NaN (e4m3) or Inf (e5m2)
    bool packed = false;   ///< codes (`w.codes`) instead of float32 values (`w`)
    std::optional<quantize::int_min> minimum;  ///< integers; none: quantize::default_int_min
    /// Whose conversion; also those that only convert (gfloat, ml_dtypes, cutlass).
    const quantize::dialect* by = &quantize::row_of(quantize::dialect_id::ocp);
};

/// Element conversion without a scale. With `packed`, `w.codes` in the packed layout of
/// `quantize --packed`; otherwise `w` as F32. Throws base::error (usage) for what the dialect
/// lacks, and with `packed` (input) for a value that it gives no code.
conversion cast(const std::vector<tensor_ref>& tensors, const cast_request& request,
                const std::string& out, const run_control& control);

/// Quantizes every tensor under `recipe`. With `packed`, codes, scales and offsets in the layout
/// of the design (section 5); otherwise the dequantized values as F32.
conversion quantize_model(const std::vector<tensor_ref>& tensors, const quantize::recipe& recipe,
                          bool packed, const std::string& out, const run_control& control);

/// Reads a file written by `quantize --packed` and writes the dequantized values as F32.
conversion dequantize_model(const io::reader& file, const std::string& out,
                            const run_control& control);

}  // namespace mx::pipeline
