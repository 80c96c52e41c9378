// SPDX-License-Identifier: Apache-2.0
// Timing of a device for `mx bench`, with values in its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/codec/quantizer.hpp"

namespace mx::codec {

/// Times are in seconds by the device's clock, without transfers unless stated. Every method throws
/// base::error (unavailable) if the device fails or lacks memory.
class device_meter {
  public:
    virtual ~device_meter() = default;
    /// Also works if the device lacks memory; all other members require open().
    virtual base::cuda::device_facts facts() const = 0;

    /// Allocates memory for measuring. The caller fills the returned pinned host memory with
    /// values.
    virtual std::span<std::byte> open() = 0;
    /// Copies them to the device repeatedly until resident() bytes are filled.
    virtual void spread() = 0;
    virtual std::uint64_t resident() const = 0;

    /// Reads all resident bytes.
    virtual double read_once() = 0;
    /// Copies the first half of them to the second: half of the bytes are read and as many written.
    virtual double copy_once() = 0;
    /// Copies what open() returned to the device once.
    virtual double receive_once() = 0;

    /// Prepares the quantization of `segments` of a matrix of `cols` columns that begins with the
    /// resident values.
    virtual void prepare(tensor::dtype type, std::uint64_t cols,
                         std::span<const placed_segment> segments,
                         const recipe_request& recipe) = 0;
    /// Runs the prepared kernels, without transfers.
    virtual double run_once() = 0;
};

}  // namespace mx::codec
