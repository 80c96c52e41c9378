// SPDX-License-Identifier: Apache-2.0
// The kernel's casts by the host, copies and pieces and all: what tests compare with the reference
// where there is no device. Not a backend.
#pragma once

#include "libmx/base/cuda/host_device.hpp"
#include "libmx/codec/cuda/element_stream.hpp"

namespace mx::codec::cuda {

/// An element_starter for streams of a host_device.
void start_on_host(const element_launch& l, base::cuda::stream& on);

}  // namespace mx::codec::cuda
