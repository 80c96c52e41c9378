// SPDX-License-Identifier: Apache-2.0
// Names of data types in options and files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libmx/tensor/dtypes.hpp"

namespace mx::io {

/// The readable dtype spelled `name` in safetensors' spelling, any case. Throws base::error
/// (usage) that names `option` and the known spellings.
tensor::dtype parse_dtype(std::string_view option, std::string_view name);

/// The dtype that option `as` names, none when it is empty.
std::optional<tensor::dtype> parse_as(const std::string& as);

/// The dtype as which a tensor stored as `stored` is read: `as` if it is given, has the same width,
/// and `stored` is an unsigned integer; otherwise `stored`.
tensor::dtype read_as(tensor::dtype stored, std::optional<tensor::dtype> as);

/// Every readable dtype, separated by blanks.
std::string known_dtypes();

}  // namespace mx::io
