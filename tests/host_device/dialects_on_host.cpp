// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/cuda/lane_body.hpp"
#include "libmx/codec/cuda/nvfp4_body.hpp"
#include "tests/host_device/ocp_on_host.hpp"

namespace mx::codec::cuda {
namespace {

template <typename Family>
void quantize(const launch& l, std::uint32_t slot, const dialect_recipe& r, std::uint32_t s,
              const std::uint16_t* marks) {
    const device_segment& segment = l.segments[s];
    with_lanes(l.stride, [&](auto lanes) {
        quantize_by_lanes<Family, lanes()>(l, r, r.params, segment, tally_of(l, slot, s), marks);
    });
}

template <typename Values>
void quantize_nvfp4(const launch& l, std::uint32_t slot, const dialect_recipe& r) {
    nvfp4_recipe shared{};
    shared.copy<Values>(r, 0, 1);
    for (std::uint32_t s = 0; s < l.segment_count; s += segments_at_once) {
        quantize_rows(nvfp4_rows<Values>(shared), l, slot, s);
    }
}

void rows_on_host(const launch& l, std::uint32_t slot, const dialect_recipe& r) {
    for (std::uint32_t i = 0; i < limits_of_table; ++i) find_limit(r.params, i, *r.nvfp4);
    if (l.values.type == tensor::dtype::bf16) {
        quantize_nvfp4<bf16_block<nvfp4_size>>(l, slot, r);
    } else {
        quantize_nvfp4<float_block<nvfp4_size>>(l, slot, r);
    }
}

}  // namespace

void dialects_on_host(const launch& l) {
    for (std::uint32_t s = 0; l.raised != nullptr && s < l.segment_count; ++s) {
        raise_exponents(l, l.segments[s], 0, 1);
    }
    for (std::uint32_t i = 0; i < l.dialect_count; ++i) {
        const dialect_recipe& r = l.dialects[i];
        const std::uint32_t slot = l.recipe_count + i;
        if (r.nvfp4 != nullptr) {
            rows_on_host(l, slot, r);
            continue;
        }
        for (std::uint32_t s = 0; s < l.segment_count; ++s) {
            if (r.params.scale_format->power_of_two()) {
                quantize<power_scales>(l, slot, r, s, nullptr);
            } else {
                quantize<float_scales>(l, slot, r, s, nullptr);
            }
        }
    }
    const std::uint32_t slots = l.recipe_count + l.dialect_count;
    for_each_marked(l, l.recipe_count, slots, [&](std::uint32_t slot, std::uint32_t s) {
        quantize<float_scales>(l, slot, l.dialects[slot - l.recipe_count], s, marks_of(l, slot, s));
    });
}

}  // namespace mx::codec::cuda
