// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/device_meter.hpp"

#include "libmx/codec/cuda/cuda_meter.hpp"

namespace mx::codec {

std::unique_ptr<device_meter> make_meter(const driver& d) {
    return d.make_quantizer != nullptr ? cuda::make_meter() : nullptr;
}

}  // namespace mx::codec
