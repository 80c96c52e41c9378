// SPDX-License-Identifier: Apache-2.0
#include "tests/host_device/plain_on_host.hpp"

#include "libmx/codec/cuda/general_body.hpp"

namespace mx::codec::cuda {
void general_on_host(const launch& l) {
    if (l.general_count == 0) return;
    for (std::uint32_t s = 0; s < l.segment_count; ++s) {
        pack_segment(l, l.segments[s], 0, 1);
        if (l.raised != nullptr) raise_exponents(l, l.segments[s], 0, 1);
    }
    for (std::uint32_t r = 0; r < l.general_count; ++r) {
        for (std::uint64_t b = 0; b < l.block_count; b += lane_count) {
            quantize_general(l, l.general[r], b);
        }
        for (std::uint32_t s = 0; s < l.segment_count; ++s) add_segment(l, l.general[r], s);
    }
}

}  // namespace mx::codec::cuda
