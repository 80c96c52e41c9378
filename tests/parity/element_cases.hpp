// SPDX-License-Identifier: Apache-2.0
// Test cases for casts of a device, run on the device and on the host instead of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "libmx/codec/caster.hpp"

namespace mx::tests {

/// Compares every dialect, format and rounding byte for byte with the host: numbers next to the
/// borders of all binades, NaN and Inf, all of bfloat16 and binary16 in turn, runs of many lengths.
/// Calls `on_case` with a description and the difference, "" if there is none. Runs one case of
/// `every`.
void compare_casts(codec::caster& device,
                   const std::function<void(const std::string&, const std::string&)>& on_case,
                   std::uint64_t every = 1);

/// A run of `count` values drawn at random, with random roundings.
void compare_long_cast(codec::caster& device, std::size_t count,
                       const std::function<void(const std::string&, const std::string&)>& on_case);

}  // namespace mx::tests
