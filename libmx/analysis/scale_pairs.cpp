// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/scale_pairs.hpp"

#include <algorithm>

namespace mx::analysis {
namespace {

std::uint64_t differences(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1u : 0u;
    return count;
}

}  // namespace

void scale_pairs::merge(const scale_pairs& other) {
    blocks += other.blocks;
    for (std::size_t i = 0; i < differ.size(); ++i) differ[i] += other.differ[i];
}

void scale_watch::see(shared_scale_pairs& group, std::size_t member,
                      std::span<const std::uint8_t> codes) {
    auto at = std::find_if(groups_.begin(), groups_.end(),
                           [&](const seen_group& g) { return g.to == &group; });
    if (at == groups_.end()) {
        groups_.push_back({&group, scale_pairs(group.members), {}, false});
        at = groups_.end() - 1;
        at->codes.resize(group.members);
    }
    at->codes[member].assign(codes.begin(), codes.end());
    at->fresh = true;
}

void scale_watch::end_segment() {
    for (seen_group& g : groups_) {
        if (!g.fresh) continue;
        g.fresh = false;
        g.pairs.blocks += g.codes.front().size();
        std::size_t pair = 0;
        for (std::size_t a = 0; a < g.codes.size(); ++a) {
            for (std::size_t b = a + 1; b < g.codes.size(); ++b, ++pair) {
                g.pairs.differ[pair] += differences(g.codes[a], g.codes[b]);
            }
        }
    }
}

void scale_watch::flush() {
    for (seen_group& g : groups_) {
        const std::lock_guard lock(g.to->guard);
        g.to->pairs.merge(g.pairs);
    }
    groups_.clear();
}

}  // namespace mx::analysis
