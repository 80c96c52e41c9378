// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/segment_batch.hpp"

#include "libmx/quantize/cuda/one_segment.hpp"

namespace mx::quantize {

block::segment_stats quantize_one(const driver& d, segment_batch* batch, const block_params& p,
                                  block_run& run, block_details& details) {
    // A driver has its own words for what it does not take.
    const bool taken = d.takes == nullptr || d.takes(p);
    if (batch == nullptr || !taken) return d.quantize(p, run, details);
    return cuda::one_segment(*batch, p, run, details);
}

}  // namespace mx::quantize
