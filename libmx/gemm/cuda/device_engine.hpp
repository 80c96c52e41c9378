// SPDX-License-Identifier: Apache-2.0
// Emulated products on a device: both operands stay there; tiles of accumulators are copied to and
// fro.
#pragma once

#include <cstdint>
#include <memory>

#include "libmx/base/cuda/device.hpp"
#include "libmx/gemm/cuda/kernels.hpp"
#include "libmx/gemm/engine.hpp"

namespace mx::gemm::cuda {

/// Queues the kernel on a stream of the device. Throws base::error (unavailable).
using starter = void (*)(const tile_launch& l, base::cuda::stream& on);

/// Device memory in bytes that the operands need for `m`, limited to 2^64 - 1.
std::uint64_t resident_bytes(const operand& a, const operand& b, const accumulator& m);

/// Makes an engine for `m`, which must have steps, unpacking the operands on up to `threads`
/// threads (0: as many as the machine offers); `on` must outlive it. Throws base::error:
/// unavailable, or out_of_memory unless both operands and a tile fit. Later lack of memory only
/// makes threads wait for one another.
std::unique_ptr<engine> make_device_engine(base::cuda::device& on, starter start, const operand& a,
                                           const operand& b, const accumulator& m, int threads);

/// The backend on the first CUDA device (one_step.hpp, one output per thread), for models with
/// steps that are not too long for the device.
bool computes(const accumulator& m, const operand& a, const operand& b);

/// The engine on that device. Throws as make_device_engine does.
std::unique_ptr<engine> make(const operand& a, const operand& b, const accumulator& m, int threads);

}  // namespace mx::gemm::cuda
