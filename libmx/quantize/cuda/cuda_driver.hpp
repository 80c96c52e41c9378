// SPDX-License-Identifier: Apache-2.0
// A CUDA device as a driver: docs/design/cuda.md. In a build without CUDA the row is there, and
// says what is missing.
#pragma once

#include <memory>
#include <string>

#include "libmx/quantize/element_batch.hpp"
#include "libmx/quantize/segment_batch.hpp"

namespace mx::quantize::cuda {

/// Whether the first device can run the kernels. Starts CUDA's runtime.
bool available();
std::string missing();

/// One segment at a time: what tests and per-block commands ask for. The values have to stay where
/// they are between the two calls.
void load(const stored_values& values, const segment_place& place, block_run& run);
block::segment_stats quantize(const block_params& p, block_run& run, block_details& details);

std::unique_ptr<segment_batch> make_batch();

/// Casts of values without blocks, of every dialect, format and rounding.
std::unique_ptr<element_batch> make_element_batch(base::notices* notices);

}  // namespace mx::quantize::cuda
