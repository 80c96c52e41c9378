// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_backend.cpp in builds without CUDA.
#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/codec/cuda/cuda_backend.hpp"

namespace mx::codec::cuda {

void with_stream(const device_stream& /*at*/,
                 const std::function<void(array_quantizer&)>& /*work*/) {
    base::cuda::refuse();
}
std::unique_ptr<quantizer> make_quantizer() { base::cuda::refuse(); }
std::unique_ptr<device_meter> make_meter() { base::cuda::refuse(); }
std::unique_ptr<caster> make_caster(base::notices* /*notices*/) { base::cuda::refuse(); }

}  // namespace mx::codec::cuda
