// SPDX-License-Identifier: Apache-2.0
// The kernel's casts on the host, with copies and pieces, for comparison with the reference without
// a device. Not a backend.
#pragma once

#include "libmx/codec/cuda/element_stream.hpp"
#include "tests/host_device/host_device.hpp"

namespace mx::codec::cuda {

/// An element_starter for streams of a host_device.
void start_on_host(const element_launch& l, base::cuda::stream& on);

}  // namespace mx::codec::cuda
