// SPDX-License-Identifier: Apache-2.0
// Recipes without blocks: FORMAT[:key=value,...], such as "bf16" or "e4m3:round=zero".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"

namespace mx::engine {

/// How elements are converted without blocks.
struct cast_recipe {
    std::string element;  ///< a wide, an element or a scale format with codes
    format::rounding round = format::rounding::rtne;
    format::tie_rule ties = format::tie_rule::up;
    std::optional<int> random_bits;  ///< none: the dialect's width
    std::uint64_t seed = 0;
    bool saturate = true;  ///< false: beyond the maximum gives NaN (e4m3) or Inf (e5m2)
    std::optional<codec::int_min> minimum;  ///< integers; none: codec::default_int_min
    bool tensor_scaled = false;             ///< divided by codec::whole_scale, and multiplied again
    /// Also dialects that only convert (gfloat, ml_dtypes, cutlass).
    const codec::dialect* by = &codec::row_of(codec::dialect_id::ocp);
};

/// The formats that a cast_recipe may name.
std::vector<std::string_view> cast_formats();

/// Whether `text` begins with the name of such a format, and not FORMAT:scale=channel, which has
/// blocks.
bool is_cast_recipe(std::string_view text);

/// Parses a recipe without blocks. Its keys are those of block recipes (round, ties, random_bits,
/// seed, int_min, dialect), saturate=true|false, and scale=tensor; wide formats take none. Throws
/// base::error (usage) with the wrong part and the nearest valid spelling.
cast_recipe parse_cast_recipe(std::string_view text);

}  // namespace mx::engine
