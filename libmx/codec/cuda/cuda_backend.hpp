// SPDX-License-Identifier: Apache-2.0
// The first CUDA device as a backend: docs/design/cuda.md. In a build without CUDA all of these
// throw base::error (unavailable).
#pragma once

#include <memory>

#include "libmx/codec/caster.hpp"
#include "libmx/codec/device_meter.hpp"
#include "libmx/codec/quantizer.hpp"

namespace mx::codec::cuda {

std::unique_ptr<quantizer> make_quantizer();

/// Casts of values without blocks, of every dialect, format and rounding.
std::unique_ptr<caster> make_caster(base::notices* notices);

/// Its meter for `mx bench`.
std::unique_ptr<device_meter> make_meter();

}  // namespace mx::codec::cuda
