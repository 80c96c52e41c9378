// SPDX-License-Identifier: Apache-2.0
// THE LIST of drivers, from the reference to the fastest.
#pragma once

#include <span>
#include <string_view>

#include "libmx/quantize/driver.hpp"

namespace mx::quantize {

/// Every driver mx knows of, also those that this build or this processor lacks.
std::span<const driver> drivers();

/// The fastest one available here of those that work on the processor.
const driver& best_driver();

/// The driver named `name`. Throws base::error: usage, naming the nearest, when there is no such
/// driver; unavailable when it cannot run here.
const driver& driver_named(std::string_view name);

}  // namespace mx::quantize
