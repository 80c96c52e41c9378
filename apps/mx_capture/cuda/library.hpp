// SPDX-License-Identifier: Apache-2.0
// cuBLASLt, loaded where it is installed.
#pragma once

#include <string>

#include "apps/mx_capture/device.hpp"

namespace mx::capture {

/// "13.0.2", empty where the library cannot be loaded.
std::string cublaslt_version();

/// Multiplies three times by the algorithm that the heuristic names first; the facts say which and
/// whether the repeats agree. Throws base::error (unavailable).
library_product multiply_by_cublaslt(const library_problem& problem);

}  // namespace mx::capture
