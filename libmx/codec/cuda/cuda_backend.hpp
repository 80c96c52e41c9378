// SPDX-License-Identifier: Apache-2.0
// The first CUDA device as a backend, and streams of any: docs/design/cuda.md. In a build without
// CUDA all of these throw base::error (unavailable).
#pragma once

#include <functional>
#include <memory>

#include "libmx/base/cuda/device.hpp"
#include "libmx/codec/caster.hpp"
#include "libmx/codec/cuda/array_quantizer.hpp"
#include "libmx/codec/device_meter.hpp"
#include "libmx/codec/quantizer.hpp"

namespace mx::codec::cuda {

std::unique_ptr<quantizer> make_quantizer();

/// Casts of values without blocks, of every dialect, format and rounding.
std::unique_ptr<caster> make_caster(base::notices* notices);

/// Its meter for `mx bench`.
std::unique_ptr<device_meter> make_meter();

/// A stream of the caller, a cudaStream_t, and its device.
struct device_stream {
    int ordinal = 0;
    void* stream = nullptr;
};

/// Calls work(quantizer) with what queues its work on that stream; its memory is freed in the order
/// of the stream. Throws base::error (unavailable) while the stream is captured in a graph.
void with_stream(const device_stream& at, const std::function<void(array_quantizer&)>& work);

/// For streams of device `ordinal`: with the conversion instructions that it has.
array_starters starters_for(int ordinal);

}  // namespace mx::codec::cuda
