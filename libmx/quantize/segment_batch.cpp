// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/segment_batch.hpp"

#include "libmx/quantize/cuda/one_segment.hpp"

namespace mx::quantize {
namespace {

// What is kept of a block, or of all of a segment's where nobody wants to know of blocks.
std::uint64_t kept_bytes(const segment_place& s, const batch_recipe& r) {
    if (r.wanted == detail::none) return sizeof(block::segment_stats);
    const std::uint64_t stride = block_stride(s.block_size());
    std::uint64_t bytes = stride + sizeof(std::uint8_t) + sizeof(std::uint16_t);
    bytes += 3 * sizeof(std::uint32_t);
    if (r.wanted == detail::stats) bytes += sizeof(block::block_stats);
    if (r.values && !codes_tell_values(*r.params)) bytes += stride * sizeof(float);
    return s.blocks() * bytes;
}

}  // namespace

void run_in_parts(segment_batch& batch, const value_rectangle& values,
                  std::span<const batch_segment> segments, std::span<const batch_recipe> recipes,
                  const std::function<void(std::size_t segment, std::size_t in_run)>& on_segment,
                  std::uint64_t most) {
    for (std::size_t first = 0; first < segments.size();) {
        std::uint64_t bytes = 0;
        std::size_t end = first;
        for (; end < segments.size(); ++end) {
            for (const batch_recipe& r : recipes) bytes += kept_bytes(segments[end].place, r);
            if (bytes > most && end > first) break;
        }
        batch.run(values, segments.subspan(first, end - first), recipes);
        for (std::size_t s = first; s < end; ++s) on_segment(s, s - first);
        first = end;
    }
}

block::segment_stats quantize_one(const driver& d, segment_batch* batch, const block_params& p,
                                  block_run& run, block_details& details) {
    if (batch == nullptr) return d.quantize(p, run, details);
    return cuda::one_segment(*batch, p, run, details);
}

}  // namespace mx::quantize
