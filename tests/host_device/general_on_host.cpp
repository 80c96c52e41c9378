// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/cuda/general_body.hpp"
#include "libmx/codec/cuda/number_body.hpp"
#include "tests/host_device/plain_on_host.hpp"

namespace mx::codec::cuda {
namespace {

template <typename Family>
void quantize(const launch& l, std::uint32_t slot, const general_recipe& r, std::uint32_t s,
              const std::uint16_t* marks) {
    const device_segment& segment = l.segments[s];
    with_lanes(l.stride, [&](auto lanes) {
        quantize_general<Family, lanes()>(l, r, r.params, segment, tally_of(l, slot, s), marks);
    });
}

template <typename Values>
void quantize_numbers(const launch& l, std::uint32_t slot, const general_recipe& r) {
    number_recipe shared{};
    shared.copy<Values>(r, 0, 1);
    for (std::uint32_t s = 0; s < l.segment_count; s += segments_at_once) {
        quantize_rows(number_rows<Values>(shared), l, slot, s);
    }
}

void rows_on_host(const launch& l, std::uint32_t slot, const general_recipe& r) {
    for (std::uint32_t i = 0; i < limits_of_table; ++i) find_limit(r.params, i, *r.numbers);
    if (l.values.type == tensor::dtype::bf16) {
        quantize_numbers<bf16_block<number_size>>(l, slot, r);
    } else {
        quantize_numbers<float_block<number_size>>(l, slot, r);
    }
}

}  // namespace

void general_on_host(const launch& l) {
    for (std::uint32_t s = 0; l.raised != nullptr && s < l.segment_count; ++s) {
        raise_exponents(l, l.segments[s], 0, 1);
    }
    for (std::uint32_t i = 0; i < l.general_count; ++i) {
        const general_recipe& r = l.general[i];
        const std::uint32_t slot = l.recipe_count + i;
        if (r.numbers != nullptr) {
            rows_on_host(l, slot, r);
            continue;
        }
        for (std::uint32_t s = 0; s < l.segment_count; ++s) {
            if (r.params.scale_format->power_of_two()) {
                quantize<power_scales>(l, slot, r, s, nullptr);
            } else {
                quantize<number_scales>(l, slot, r, s, nullptr);
            }
        }
    }
    const std::uint32_t slots = l.recipe_count + l.general_count;
    for_each_marked(l, l.recipe_count, slots, [&](std::uint32_t slot, std::uint32_t s) {
        quantize<number_scales>(l, slot, l.general[slot - l.recipe_count], s, marks_of(l, slot, s));
    });
}

}  // namespace mx::codec::cuda
