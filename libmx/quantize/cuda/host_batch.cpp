// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/cuda/host_batch.hpp"

#include "libmx/base/cuda/host_device.hpp"
#include "libmx/quantize/cuda/device_batch.hpp"

namespace mx::quantize::cuda {

void start_on_host(const launch& l, base::cuda::stream& on) {
    static_cast<base::cuda::host_stream&>(on).queue([l] { run_on_host(l); });
}

std::unique_ptr<segment_batch> make_host_batch() {
    static base::cuda::host_device host;
    return make_device_batch(host, start_on_host);
}

}  // namespace mx::quantize::cuda
