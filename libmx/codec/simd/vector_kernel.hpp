// SPDX-License-Identifier: Apache-2.0
// Whole segments by vector kernels of an instruction set; what is outside of their domain by the
// reference, block by block.
#pragma once

#include "libmx/codec/segment_kernel.hpp"
#include "libmx/codec/simd/kernels.hpp"

namespace mx::codec::simd {

/// Whether this build has the instruction set and this processor can run it.
bool supported(target t);

/// The segment under one recipe; the bytes of scalar::quantize.
block::segment_stats quantize(const kernels& k, const block_params& p, block_run& run,
                              block_details& details);

/// The steps by kernels of an instruction set.
template <target t>
inline constexpr segment_kernel kernel_of{
    [](const stored_values& values, const segment_place& place, block_run& run) {
        kernels_for(t)->load(values, place, run);
    },
    [](const block_params& p, block_run& run, block_details& details) {
        return simd::quantize(*kernels_for(t), p, run, details);
    }};

}  // namespace mx::codec::simd
