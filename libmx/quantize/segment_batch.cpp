// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/segment_batch.hpp"

#include "libmx/quantize/cuda/one_segment.hpp"

namespace mx::quantize {

block::segment_stats quantize_one(const driver& d, segment_batch* batch, const block_params& p,
                                  block_run& run, block_details& details) {
    if (batch == nullptr) return d.quantize(p, run, details);
    return cuda::one_segment(*batch, p, run, details);
}

}  // namespace mx::quantize
