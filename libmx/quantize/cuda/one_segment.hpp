// SPDX-License-Identifier: Apache-2.0
// A batch of one segment, for callers that go segment by segment.
#pragma once

#include "libmx/quantize/segment_batch.hpp"

namespace mx::quantize::cuda {

/// The segment that cuda::load put into `run`, as driver::quantize.
block::segment_stats one_segment(segment_batch& batch, const block_params& p, block_run& run,
                                 block_details& details);

}  // namespace mx::quantize::cuda
