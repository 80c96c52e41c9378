// SPDX-License-Identifier: Apache-2.0
// The kernels, as their caller on the host sees them. All pointers are the device's.
#pragma once

#include <cstdint>

#include "libmx/block/segment_stats.hpp"
#include "libmx/quantize/cuda/device_segment.hpp"
#include "libmx/quantize/plain_params.hpp"

namespace mx::quantize::cuda {

/// A recipe of a launch.
struct device_recipe {
    plain_params params;
    device_blocks blocks;  ///< what is wanted of it per block
    bool parts;            ///< also the parts of the squared error
    std::uint8_t body;     ///< see body_of
};

/// Segments under recipes, a warp for each pair.
struct launch {
    device_values values;
    const device_segment* segments;
    std::uint32_t segment_count;
    const device_recipe* recipes;
    std::uint32_t recipe_count;
    std::uint32_t bodies;          ///< a bit for each that recipes have
    std::uint32_t by_instruction;  ///< those that may use the device's: see bodies_by_instruction
    block::segment_stats* stats;   ///< of segment s under recipe r at r * segment_count + s
};

/// Queues it on `stream` (a cudaStream_t). Returns the runtime's error code, 0 when it was queued.
int enqueue(const launch& l, void* stream);

/// Whether this build has code for the current device.
/// Returns the runtime's error code, 0 when it has.
int has_code_for_device();

}  // namespace mx::quantize::cuda
