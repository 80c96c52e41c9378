// SPDX-License-Identifier: Apache-2.0
// What `mx bench` asks of a device: how fast it is with values that lie in its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/codec/quantizer.hpp"

namespace mx::codec {

/// Times are seconds by the device's clock, of what is done there alone. Every method throws
/// base::error (unavailable) when the device fails or has no room.
class device_meter {
  public:
    virtual ~device_meter() = default;
    /// Of a device without room, too; all else comes after open().
    virtual base::cuda::device_facts facts() const = 0;

    /// Takes memory to measure with. The caller fills what is returned, pinned memory of the host,
    /// with values.
    virtual std::span<std::byte> open() = 0;
    /// Copies them to the device, again and again until resident() bytes are full.
    virtual void spread() = 0;
    virtual std::uint64_t resident() const = 0;

    /// Reads all resident bytes.
    virtual double read_once() = 0;
    /// Copies the first half of them over the second: half are read and as many written.
    virtual double copy_once() = 0;
    /// Copies what open() returned to the device once.
    virtual double receive_once() = 0;

    /// Makes ready to quantize `segments` of a matrix of `cols` columns that begins with the
    /// resident values.
    virtual void prepare(tensor::dtype type, std::uint64_t cols,
                         std::span<const placed_segment> segments,
                         const recipe_request& recipe) = 0;
    /// Runs the kernels of what was prepared; nothing is copied there or back.
    virtual double run_once() = 0;
};

}  // namespace mx::codec
