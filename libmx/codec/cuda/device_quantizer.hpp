// SPDX-License-Identifier: Apache-2.0
// Batches on a device. Two slices of the work are in flight, so that one is copied while the other
// is computed. Device memory is limited; if even that is not available, the CPU takes over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "libmx/base/cuda/device.hpp"
#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/quantizer.hpp"

namespace mx::codec::cuda {

// How the work of a batch is divided, so that a slice fits in its device memory.

/// The limits of a slice. A segment under one recipe is never divided, even if it exceeds them.
struct slice_limits {
    /// On the device: sent data, received data and temporary data. A thread has two slices there at
    /// a time: with 16 threads, a gigabyte. A slice takes at most half of it in pinned memory, as
    /// does each of the two panels of quantizer::reserve_values.
    std::size_t bytes = std::size_t{32} << 20;
    /// A quarter of a panel of a device (panels.hpp), so that copies overlap with computation; some
    /// 250 segments under each recipe for a launch.
    std::uint64_t elements = std::uint64_t{1} << 20;
    /// On the host: results per block that wait until their part of a run is complete.
    std::uint64_t kept = std::uint64_t{128} << 20;
};

/// Consecutive segments and recipes.
struct slice {
    std::size_t segment = 0, segments = 0;
    std::size_t recipe = 0, recipes = 0;
};

/// Segments cut out of a batch, with the smallest rectangle that holds them.
struct slice_values {
    value_rectangle values;
    std::vector<placed_segment> segments;
};
slice_values cut_out(const value_rectangle& values, std::span<const placed_segment> segments);

/// Divides the segments of a batch into slices. A slice consists of whole rows of segments, or is a
/// part of one row, so that its rectangle contains nothing else. Recipes stay together as long as
/// they fit.
class slicer {
  public:
    /// `pinned_values`: slices take no pinned memory for values.
    slicer(const value_rectangle& values, std::span<const placed_segment> segments,
           std::span<const recipe_request> recipes, const slice_limits& limits, bool pinned_values)
        : values_(values),
          segments_(segments),
          recipes_(recipes),
          limits_(limits),
          pinned_values_(pinned_values) {}

    /// The slice that begins with segment `first`, with as many recipes as fit together, from the
    /// first one on. `first` must be a segment of the batch, and there must be recipes.
    slice from(std::size_t first) const;

  private:
    bool fits(const slice& s) const;
    std::uint64_t elements_of(const slice& s) const;
    // To compare with limits_.bytes.
    std::size_t bytes_of(const slice& s) const;
    std::size_t row_end(std::size_t first) const;

    const value_rectangle& values_;
    std::span<const placed_segment> segments_;
    std::span<const recipe_request> recipes_;
    slice_limits limits_;
    bool pinned_values_;
};

/// Queues the kernel on a stream of the device. Throws base::error (unavailable), or out_of_memory
/// if memory is short.
using starter = void (*)(const launch& l, base::cuda::stream& on);

/// `on` must outlive it. Allocates nothing on the device before the first run.
std::unique_ptr<quantizer> make_device_quantizer(base::cuda::device& on, starter start,
                                                 const slice_limits& limits = {});

}  // namespace mx::codec::cuda
