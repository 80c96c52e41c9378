// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/cuda/general_body.hpp"

namespace mx::quantize::cuda {
namespace {

void run_plain(const launch& l) {
    for (std::uint32_t s = 0; s < l.segment_count; ++s) {
        for (std::uint32_t r = 0; r < l.recipe_count; ++r) {
            const device_recipe& recipe = l.recipes[r];
            block::segment_stats& out = l.stats[std::uint64_t{r} * l.segment_count + s];
            if (recipe.parts) {
                quantize_segment<true>(recipe.params, l.segments[s], l.values, recipe.blocks, out);
            } else {
                quantize_segment<false>(recipe.params, l.segments[s], l.values, recipe.blocks, out);
            }
        }
    }
}

void run_general(const launch& l) {
    for (std::uint32_t s = 0; s < l.segment_count; ++s) {
        pack_segment(l, l.segments[s], 0, 1);
        if (l.raised != nullptr) raise_exponents(l, l.segments[s], 0, 1);
    }
    for (std::uint32_t r = 0; r < l.general_count; ++r) {
        for (std::uint64_t b = 0; b < l.block_count; ++b) quantize_general(l, l.general[r], b);
        for (std::uint32_t s = 0; s < l.segment_count; ++s) add_segment(l, l.general[r], s);
    }
}

}  // namespace

void run_on_host(const launch& l) {
    run_plain(l);
    if (l.general_count != 0) run_general(l);
}

}  // namespace mx::quantize::cuda
