// SPDX-License-Identifier: Apache-2.0
// In place of cuda_quantizer.cpp and cuda_meter.cpp in a build without CUDA.
#include "libmx/base/cuda/missing.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/cuda/cuda_backend.hpp"
#include "libmx/codec/cuda/cuda_meter.hpp"

namespace mx::codec::cuda {

std::string missing() { return std::string(base::cuda::not_built); }

std::unique_ptr<quantizer> make_quantizer() {
    throw base::error(base::error_kind::unavailable, "backend cuda: " + missing());
}

std::unique_ptr<device_meter> make_meter() {
    throw base::error(base::error_kind::unavailable, "backend cuda: " + missing());
}

std::unique_ptr<caster> make_caster(base::notices* /*notices*/) {
    throw base::error(base::error_kind::unavailable, "backend cuda: " + missing());
}

}  // namespace mx::codec::cuda
