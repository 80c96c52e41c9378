// SPDX-License-Identifier: Apache-2.0
// The reference: block by block through block_kernel.hpp.
#pragma once

#include "libmx/codec/pack_blocks.hpp"
#include "libmx/codec/segment_kernel.hpp"

namespace mx::codec::scalar {

block::segment_stats quantize(const block_params& p, block_run& run, block_details& details);

inline constexpr segment_kernel kernel{pack_blocks, quantize};

/// One block of a run by the reference, its codes into `details` where they are wanted. `bump`: see
/// block_place.
block::block_stats quantize_one(const block_params& p, const block_run& run, std::size_t block,
                                block_details& details, const std::uint8_t* bump = nullptr);

}  // namespace mx::codec::scalar
