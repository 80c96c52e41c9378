// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/cuda/host_batch.hpp"

#include "libmx/base/cuda/host_device.hpp"
#include "libmx/quantize/cuda/device_batch.hpp"
#include "libmx/quantize/cuda/segment_body.hpp"

namespace mx::quantize::cuda {
namespace {

void work(const launch& l, std::uint32_t s, std::uint32_t r) {
    const device_recipe& recipe = l.recipes[r];
    block::segment_stats& out = l.stats[std::uint64_t{r} * l.segment_count + s];
    if (recipe.parts) {
        quantize_segment<true>(recipe.params, l.segments[s], l.values, recipe.blocks, out);
    } else {
        quantize_segment<false>(recipe.params, l.segments[s], l.values, recipe.blocks, out);
    }
}

}  // namespace

void start_on_host(const launch& l, base::cuda::stream& on) {
    static_cast<base::cuda::host_stream&>(on).queue([l] {
        for (std::uint32_t s = 0; s < l.segment_count; ++s) {
            for (std::uint32_t r = 0; r < l.recipe_count; ++r) work(l, s, r);
        }
    });
}

std::unique_ptr<segment_batch> make_host_batch() {
    static base::cuda::host_device host;
    return make_device_batch(host, start_on_host);
}

}  // namespace mx::quantize::cuda
