// SPDX-License-Identifier: Apache-2.0
// The first CUDA device, by CUDA's runtime.
#pragma once

#include <string>

#include "libmx/base/cuda/device.hpp"

namespace mx::base::cuda {

/// Throws base::error (unavailable) unless `code`, a cudaError_t, is success: what was done, what
/// the runtime says, what to do. No room is no_room.
void check(int code, const char* what);

/// Why the first device cannot run kernels, empty when it can. `has_code` returns the runtime's
/// error code for one of them. Starts the runtime. A card without room is no obstacle: who works on
/// it finds out, and goes elsewhere.
std::string obstacle(int (*has_code)());

/// Starts the runtime with what is first asked of it.
device& first_device();

}  // namespace mx::base::cuda
