// SPDX-License-Identifier: Apache-2.0
// cuBLASLt, loaded at run time if installed.
#pragma once

#include <string>

#include "apps/mx_capture/device.hpp"

namespace mx::capture {

/// "13.0.2"; empty if the library cannot be loaded.
std::string cublaslt_version();

/// Multiplies three times with the first algorithm of the heuristic; the facts state which one, and
/// whether the repetitions agree. Throws base::error (unavailable).
library_product multiply_by_cublaslt(const library_problem& problem);

}  // namespace mx::capture
