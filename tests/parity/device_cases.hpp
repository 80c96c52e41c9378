// SPDX-License-Identifier: Apache-2.0
// Test cases for the backend of a device, run on the device and on the host instead of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "libmx/codec/backends.hpp"

namespace mx::tests {

/// Compares segment by segment with the reference, byte for byte: recipes of every element format,
/// rounding, rule and offset, block shapes and stored types over the kinds of blocks. Calls
/// `on_case` with a description and the difference, "" if there is none. Runs one case of `every`.
void compare_segments(const codec::backend& d,
                      const std::function<void(const std::string&, const std::string&)>& on_case,
                      std::uint64_t every = 1);

/// The same for dialect recipes: every dialect with all its settings, scales that are
/// not powers of two, four-over-six, raised exponents.
void compare_dialect_segments(
    const codec::backend& d,
    const std::function<void(const std::string&, const std::string&)>& on_case,
    std::uint64_t every = 1);

/// Whole matrices under several recipes at once, as in mx analyze. Runs one case of `every` and as
/// many of its rows.
void compare_matrices(const codec::backend& d,
                      const std::function<void(const std::string&, const std::string&)>& on_case,
                      std::uint64_t every = 1);

/// Recipes of the body of rows (libmx/codec/cuda/row_body.hpp), by segment and as whole matrices,
/// with codes or without results per block. Runs one case of `every`.
void compare_rows(const codec::backend& d,
                  const std::function<void(const std::string&, const std::string&)>& on_case,
                  std::uint64_t every = 1);

/// Recipes of the body of NVFP4 (libmx/codec/cuda/nvfp4_body.hpp): every dialect that it takes, in
/// each rounding, over values with equal errors, ties, zeros, NaN and any range. Runs one case of
/// `every`.
void compare_numbers(const codec::backend& d,
                     const std::function<void(const std::string&, const std::string&)>& on_case,
                     std::uint64_t every = 1);

/// Values stored as codes of 8 bits, which the device widens, with the float32 of the reference.
/// Runs one case of `every`.
void compare_codes(const codec::backend& d,
                   const std::function<void(const std::string&, const std::string&)>& on_case,
                   std::uint64_t every = 1);

}  // namespace mx::tests
