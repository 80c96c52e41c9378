// SPDX-License-Identifier: Apache-2.0
// Batches on a device: two slices of the work are there at a time, so that one is packed and copied
// while the other is computed. Memory on the device is bounded; where even that is not to be had,
// the CPU goes on.
#pragma once

#include <memory>

#include "libmx/base/cuda/device.hpp"
#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/cuda/slices.hpp"
#include "libmx/codec/quantizer.hpp"

namespace mx::codec::cuda {

/// Queues the kernel on a stream of the device. Throws base::error (unavailable), no_room where
/// that is why.
using starter = void (*)(const launch& l, base::cuda::stream& on);

/// `on` has to outlive it. Takes nothing of the device before the first run.
std::unique_ptr<quantizer> make_device_quantizer(base::cuda::device& on, starter start,
                                                 const slice_limits& limits = {});

}  // namespace mx::codec::cuda
