// SPDX-License-Identifier: Apache-2.0
// How fast the first CUDA device is, for `mx bench`.
#pragma once

#include <memory>

#include "libmx/codec/device_meter.hpp"

namespace mx::codec::cuda {

/// Throws base::error (unavailable) in a build without CUDA.
std::unique_ptr<device_meter> make_meter();

}  // namespace mx::codec::cuda
