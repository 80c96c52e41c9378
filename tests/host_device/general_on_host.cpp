// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/cuda/general_body.hpp"
#include "tests/host_device/plain_on_host.hpp"

namespace mx::codec::cuda {
namespace {

template <typename Family>
void quantize(const launch& l, const general_recipe& r, std::uint32_t s) {
    const device_segment& segment = l.segments[s];
    with_lanes(l.stride, [&](auto lanes) {
        quantize_general<Family, lanes()>(l, r, r.params, segment, r.tallies[s]);
    });
}

}  // namespace

void general_on_host(const launch& l) {
    for (std::uint32_t s = 0; l.raised != nullptr && s < l.segment_count; ++s) {
        raise_exponents(l, l.segments[s], 0, 1);
    }
    for (std::uint32_t i = 0; i < l.general_count; ++i) {
        const general_recipe& r = l.general[i];
        for (std::uint32_t s = 0; s < l.segment_count; ++s) {
            if (r.params.scale_format->power_of_two()) {
                quantize<power_scales>(l, r, s);
            } else {
                quantize<number_scales>(l, r, s);
            }
        }
    }
}

}  // namespace mx::codec::cuda
