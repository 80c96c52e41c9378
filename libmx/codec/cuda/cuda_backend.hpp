// SPDX-License-Identifier: Apache-2.0
// The first CUDA device as a backend: docs/design/cuda.md. In a build without CUDA all of these
// throw base::error (unavailable).
#pragma once

#include <memory>

#include "libmx/base/cuda/device.hpp"
#include "libmx/codec/caster.hpp"
#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/device_meter.hpp"
#include "libmx/codec/quantizer.hpp"

namespace mx::codec::cuda {

std::unique_ptr<quantizer> make_quantizer();

/// Casts of values without blocks, of every dialect, format and rounding.
std::unique_ptr<caster> make_caster(base::notices* notices);

/// Its meter for `mx bench`.
std::unique_ptr<device_meter> make_meter();

/// Queues the kernels on a stream of that device, with the conversion instructions that it has.
/// Throws base::error (unavailable).
void start(const launch& l, base::cuda::stream& on);

}  // namespace mx::codec::cuda
