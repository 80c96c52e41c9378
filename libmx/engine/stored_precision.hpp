// SPDX-License-Identifier: Apache-2.0
// The alternatives to a recipe: a tensor's stored precision, or bfloat16.
#pragma once

#include <optional>
#include <string_view>

#include "libmx/tensor/dtypes.hpp"

namespace mx::engine {

/// The name among recipes of a tensor's stored dtype: no error, all its bits.
inline constexpr std::string_view stored_choice = "stored";

/// The name of storage as bfloat16.
inline constexpr std::string_view bf16_name = "bf16";

/// Bits per element of a dtype by name; nullopt for other names.
inline std::optional<int> bits_of_dtype(std::string_view name) {
    const std::optional<tensor::dtype> type = tensor::find_dtype(name);
    return type ? std::optional(tensor::row_of(*type).bits) : std::nullopt;
}

}  // namespace mx::engine
