// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "libmx/base/status.hpp"
#include "libmx/quantize/cuda/cuda_driver.hpp"
#include "libmx/quantize/cuda/one_segment.hpp"
#include "libmx/quantize/pack_blocks.hpp"

namespace mx::quantize::cuda {

bool takes(const block_params& p) { return p.plain; }

void load(const stored_values& values, const segment_place& place, block_run& run) {
    pack_blocks(values, place, run);  // callers look at x themselves
    run.values = values;
}

block::segment_stats quantize(const block_params& p, block_run& run, block_details& details) {
    if (!takes(p)) {
        throw base::error(base::error_kind::unavailable,
                          "backend cuda has kernels for dialect ocp with E8M0 scales only; leave "
                          "out --backend cuda");
    }
    // Nobody hears of a device without room here: it is an error. At the end of a thread the
    // runtime is still there, also for main's, whose objects go before the static ones.
    static thread_local std::unique_ptr<segment_batch> batch;
    if (!batch) batch = make_batch();
    return one_segment(*batch, p, run, details);
}

block::segment_stats one_segment(segment_batch& batch, const block_params& p, block_run& run,
                                 block_details& details) {
    const segment_place& s = run.place;
    const batch_segment segment{s, 0, 0};
    const batch_recipe recipe{&p, details.wanted, details.parts};
    batch.run({run.values, s.rows, s.cols}, {&segment, 1}, {&recipe, 1});
    const batch_result r = batch.result(0, 0);
    details.fit(run);
    if (details.wanted == detail::none) return *r.stats;
    const details_view& v = r.details;
    std::copy_n(v.codes, v.blocks * v.stride, details.codes.data());
    std::copy_n(v.scale_code, v.blocks, details.scale_code.data());
    std::copy_n(v.offset, v.blocks, details.offset.data());
    std::copy_n(v.amax, v.blocks, details.amax.data());
    std::copy_n(v.x_max, v.blocks, details.x_max.data());
    std::copy_n(v.x_min, v.blocks, details.x_min.data());
    if (v.stats != nullptr) std::copy_n(v.stats, v.blocks, details.stats.data());
    return *r.stats;
}

}  // namespace mx::quantize::cuda
