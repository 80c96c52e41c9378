// SPDX-License-Identifier: Apache-2.0
// Emulated products on a device: both operands lie there, tiles of accumulators come and go.
#pragma once

#include <cstdint>
#include <memory>

#include "libmx/base/cuda/device.hpp"
#include "libmx/gemm/cuda/kernels.hpp"
#include "libmx/gemm/engine.hpp"

namespace mx::gemm::cuda {

/// Queues the kernel on a stream of the device. Throws base::error (unavailable).
using starter = void (*)(const tile_launch& l, base::cuda::stream& on);

/// Bytes that the operands take on the device for `m`, 2^64 - 1 for all that is more.
std::uint64_t resident_bytes(const operand& a, const operand& b, const accumulator& m);

/// `m` has steps; `on` has to outlive the engine. Throws base::error (unavailable), no_room unless
/// both operands and a tile fit: once it is made, less room only means that threads wait for one
/// another.
std::unique_ptr<engine> make_device_engine(base::cuda::device& on, starter start, const operand& a,
                                           const operand& b, const accumulator& m);

/// By the first CUDA device (one_step.hpp, an output per thread): models that have steps, which are
/// not too long for the device.
bool computes(const accumulator& m, const operand& a, const operand& b);

/// The engine on it; throws as make_device_engine.
std::unique_ptr<engine> make(const operand& a, const operand& b, const accumulator& m, int threads);

}  // namespace mx::gemm::cuda
