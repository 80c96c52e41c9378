// SPDX-License-Identifier: Apache-2.0
// A device's quantizer with the host in place of the device, slices, copies, pointers and all: what
// tests compare with the reference where there is no device.
#pragma once

#include <memory>

#include "libmx/codec/cuda/device_quantizer.hpp"
#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/quantizer.hpp"

namespace mx::base::cuda {
class stream;
}

namespace mx::codec::cuda {

/// The starter of a host_device.
void start_on_host(const launch& l, base::cuda::stream& on);

/// On a device that has whatever is asked for.
std::unique_ptr<quantizer> make_host_quantizer();

/// The same with what stands for the device's converting instructions.
std::unique_ptr<quantizer> make_instruction_quantizer();

}  // namespace mx::codec::cuda
