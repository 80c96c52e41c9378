// SPDX-License-Identifier: Apache-2.0
// The backends of this build: the list of drivers, and which of them a run uses.
#pragma once

#include <string>

#include "libmx/codec/backends.hpp"

namespace mx::app {

/// The environment variable that names a backend where --backend does not.
inline constexpr const char* backend_variable = "MX_BACKEND";

/// The driver that --backend (empty when not given) or the environment asks for, else the fastest
/// one here. Throws base::error saying which of the two named it: usage when no driver has that
/// name, unavailable when it cannot run here.
const codec::backend& chosen_backend(const std::string& option);

}  // namespace mx::app
