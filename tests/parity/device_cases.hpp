// SPDX-License-Identifier: Apache-2.0
// What the backend of a device is put to, on the device and on the host in its place.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "libmx/codec/backends.hpp"

namespace mx::tests {

/// Segment by segment against the reference, byte for byte: recipes of every element format,
/// rounding, rule and offset, block shapes and stored types over the kinds of blocks. Calls
/// `on_case` with a description and what differs, "" for nothing. Takes one case of `every`.
void compare_segments(const codec::backend& d,
                      const std::function<void(const std::string&, const std::string&)>& on_case,
                      std::uint64_t every = 1);

/// The same for recipes that are not plain: every dialect with all it has, scales that are no
/// powers of two, four-over-six, raised exponents.
void compare_general_segments(
    const codec::backend& d,
    const std::function<void(const std::string&, const std::string&)>& on_case,
    std::uint64_t every = 1);

/// Whole matrices under several recipes at once, as mx analyze goes through them. Takes one of
/// `every` (300 at most), and of its rows as many.
void compare_matrices(const codec::backend& d,
                      const std::function<void(const std::string&, const std::string&)>& on_case,
                      std::uint64_t every = 1);

/// Recipes that the body of rows takes (libmx/codec/cuda/row_body.hpp), segment by segment and
/// as whole matrices, codes wanted or nothing per block. Takes one case of `every`.
void compare_rows(const codec::backend& d,
                  const std::function<void(const std::string&, const std::string&)>& on_case,
                  std::uint64_t every = 1);

}  // namespace mx::tests
