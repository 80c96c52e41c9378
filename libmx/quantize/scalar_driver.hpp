// SPDX-License-Identifier: Apache-2.0
// The reference as a driver: block by block through block_kernel.hpp.
#pragma once

#include "libmx/quantize/driver.hpp"

namespace mx::quantize::scalar {

bool available();
void load(const stored_values& values, const segment_place& place, block_run& run);
block::segment_stats quantize(const block_params& p, block_run& run, block_details& details);

/// One block of a run by the reference, its codes into `details` where they are wanted. `bump`: see
/// block_place.
block::block_stats quantize_one(const block_params& p, const block_run& run, std::size_t block,
                                block_details& details, const std::uint8_t* bump = nullptr);

}  // namespace mx::quantize::scalar
