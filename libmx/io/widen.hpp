// SPDX-License-Identifier: Apache-2.0
// Stored values to float32 (design: "Inputs": exact if possible, rounded once otherwise).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "libmx/io/reader.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::io {

/// Widens `out.size()` packed elements of `type` to float32; element i of sub-byte types starts
/// at bit `first_bit + i*bits` of `bytes`. F64 and wider integers round to nearest even, once
/// (overflow gives Inf, which is inexact); returns how many results differ from the stored value.
/// NaN stays NaN and is not inexact. Types with widening::none are a precondition violation.
std::uint64_t widen(tensor::dtype type, std::span<const std::byte> bytes, unsigned first_bit,
                    std::span<float> out);

/// Reads elements [first, first + out.size()) of `source` and widens them. `scratch` is reused
/// between calls. Returns the number of inexact values.
std::uint64_t read_f32(const byte_source& source, tensor::dtype type, std::uint64_t first,
                       std::span<float> out, std::vector<std::byte>& scratch);

}  // namespace mx::io
