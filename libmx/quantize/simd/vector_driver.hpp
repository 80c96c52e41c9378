// SPDX-License-Identifier: Apache-2.0
// The vector drivers: whole segments by kernels of an instruction set, and what is outside of their
// domain by the reference, block by block.
#pragma once

#include "libmx/quantize/driver.hpp"
#include "libmx/quantize/simd/kernels.hpp"

namespace mx::quantize::simd {

/// Whether this build has the instruction set and this processor can run it.
bool supported(target t);

/// The segment under one recipe; the bytes of scalar::quantize.
block::segment_stats quantize(const kernels& k, const block_params& p, block_run& run,
                              block_details& details);

/// The entry points that the list of drivers names.
template <target t>
struct driver_of {
    static bool available() { return supported(t); }
    static void load(const stored_values& values, const segment_place& place, block_run& run) {
        kernels_for(t)->load(values, place, run);
    }
    static block::segment_stats quantize(const block_params& p, block_run& run,
                                         block_details& details) {
        return simd::quantize(*kernels_for(t), p, run, details);
    }
};

}  // namespace mx::quantize::simd
