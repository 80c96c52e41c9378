// SPDX-License-Identifier: Apache-2.0
// What a tensor may have instead of a recipe: the precision it is stored in, or bfloat16.
#pragma once

#include <optional>
#include <string_view>

#include "libmx/tensor/dtypes.hpp"

namespace mx::engine {

/// What leaving a tensor in its stored dtype is called among recipes: no error, all its bits.
inline constexpr std::string_view stored_choice = "stored";

/// What storing a tensor as bfloat16 is called.
inline constexpr std::string_view bf16_name = "bf16";

/// Bits per element of a dtype by its name; none for names that are no dtype.
inline std::optional<int> bits_of_dtype(std::string_view name) {
    const std::optional<tensor::dtype> type = tensor::find_dtype(name);
    return type ? std::optional(tensor::row_of(*type).bits) : std::nullopt;
}

}  // namespace mx::engine
