// SPDX-License-Identifier: Apache-2.0
// What casts of a device are put to, on the device and on the host in its place.
#pragma once

#include <functional>
#include <string>

#include "libmx/codec/caster.hpp"

namespace mx::tests {

/// Every dialect, format and rounding, byte for byte against the host: numbers next to the borders
/// of all binades, NaN and Inf, all of bfloat16 and binary16 in turns, runs of many lengths. Calls
/// `on_case` with a description and what differs, "" for nothing.
void compare_casts(codec::caster& device,
                   const std::function<void(const std::string&, const std::string&)>& on_case);

/// A run of `count` values drawn at random, with random roundings.
void compare_long_cast(codec::caster& device, std::size_t count,
                       const std::function<void(const std::string&, const std::string&)>& on_case);

}  // namespace mx::tests
