// SPDX-License-Identifier: Apache-2.0
// A device's quantizer with the host as the device, including slices, copies and pointers, for
// comparison with the reference without a device.
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

/// On a device with unlimited memory.
std::unique_ptr<quantizer> make_host_quantizer();

/// The same with an emulation of the device's conversion instructions.
std::unique_ptr<quantizer> make_instruction_quantizer();

}  // namespace mx::codec::cuda
