// SPDX-License-Identifier: Apache-2.0
// Emulated products on a CUDA device: one_step.hpp, an output per thread.
#pragma once

#include <memory>
#include <string>

#include "libmx/gemm/engine.hpp"

namespace mx::gemm::cuda {

/// Whether the first device can run the kernels. Starts CUDA's runtime.
bool available();
std::string missing();

/// Models that have steps, which are not too long for the device.
bool computes(const accumulator& m, const operand& a, const operand& b);

/// The engine on the device; throws as make_device_engine (device_engine.hpp).
std::unique_ptr<engine> make(const operand& a, const operand& b, const accumulator& m, int threads);

}  // namespace mx::gemm::cuda
