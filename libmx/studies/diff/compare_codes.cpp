// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/compare_codes.hpp"

#include <cmath>

#include "libmx/base/bits.hpp"
#include "libmx/engine/panel_quantizer.hpp"

namespace mx::diff {
namespace {

std::uint64_t different(const std::uint8_t* a, const std::uint8_t* b, std::size_t n) {
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < n; ++i) count += a[i] != b[i] ? 1u : 0u;
    return count;
}

// Elements that left their code of dump `a` in `b` and have it again in `c`.
std::uint64_t back_again(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c,
                         std::size_t n) {
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < n; ++i) {
        count +=
            static_cast<std::uint32_t>(a[i] != b[i]) & static_cast<std::uint32_t>(a[i] == c[i]);
    }
    return count;
}

// What add_dump looks at: the blocks of a dump, or of a dump before it.
template <typename Blocks>
bool same_scale(const Blocks& a, const Blocks& b, std::size_t block) {
    if (a.offset[block] != b.offset[block]) return false;
    if (a.scale.empty()) return a.scale_code[block] == b.scale_code[block];
    const float x = a.scale[block];
    const float y = b.scale[block];
    return base::bits_of(x) == base::bits_of(y) || (std::isnan(x) && std::isnan(y));
}

template <typename Blocks>
void add_moves(const codec::segment_place& place, const Blocks& a, const Blocks& b,
               move_figures& to) {
    for (std::size_t k = 0; k < place.blocks(); ++k) {
        const std::size_t n = codec::extent_of(place, k).size();
        const std::size_t at = k * a.stride;
        const std::uint64_t moved = different(a.codes.data() + at, b.codes.data() + at, n);
        to.codes_moved += moved;
        if (same_scale(a, b, k)) {
            to.elements_at_equal_scale += n;
            to.moved_at_equal_scale += moved;
        } else {
            ++to.scales_moved;
        }
    }
    to.blocks += place.blocks();
    to.elements += place.elements();
}

template <typename Blocks>
void add_flips(const codec::segment_place& place, const Blocks& a, const Blocks& b, const Blocks& c,
               move_figures& to) {
    for (std::size_t k = 0; k < place.blocks(); ++k) {
        const std::size_t at = k * a.stride;
        to.flipped_back += back_again(a.codes.data() + at, b.codes.data() + at, c.codes.data() + at,
                                      codec::extent_of(place, k).size());
    }
    to.followed += place.elements();
}

// Block maxima against the clamp zone; the logarithms of a segment are added in the order of its
// blocks.
void add_maxima(const codec::block_results& d, const codec::clamp_zone& zone, dump_figures& to) {
    double sum = 0;
    for (std::size_t k = 0; k < d.blocks; ++k) {
        const std::uint32_t bits = d.amax[k];
        if (bits == 0 || bits >= base::f32_infinity) continue;
        int exponent = 0;
        const double m =
            2 * std::frexp(static_cast<double>(base::float_from_bits(bits)), &exponent);
        ++to.maxima;
        to.in_clamp_zone += zone.from < m && m < zone.to ? 1u : 0u;
        sum += std::log2(m / zone.from);
    }
    to.distance.add(sum);
}

void add_counts(const block::segment_stats& s, dump_figures& to) {
    to.counted += s.count.elements - s.count.nan - s.count.inf - s.count.poisoned;
    to.overflow += s.count.overflow;
    to.clamp += s.count.clamp;
    to.eligible_blocks += s.block.eligible;
    to.saturated_blocks += s.block.saturated;
}

}  // namespace

void code_comparer::kept_blocks::keep(const codec::block_results& d) {
    stride = d.stride;
    codes.assign(d.codes, d.codes + d.blocks * d.stride);
    scale_code.assign(d.scale_code, d.scale_code + d.blocks);
    offset.assign(d.offset, d.offset + d.blocks);
    scale.clear();
    if (d.stats == nullptr) return;
    for (std::size_t b = 0; b < d.blocks; ++b) scale.push_back(d.stats[b].scale);
}

void code_comparer::run(const engine::panel& where, std::span<const codec::stored_values> dumps,
                        std::uint64_t tensor_id, std::span<const code_job> jobs) {
    while (blocks_.size() < jobs.size()) blocks_.emplace_back();
    tallies_.assign(jobs.size(), code_figures(dumps.size()));
    // Jobs with one and the same grid share the values of a segment while they are in the cache.
    taken_.assign(jobs.size(), false);
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        if (taken_[j]) continue;
        alike_.clear();
        for (std::size_t k = j; k < jobs.size(); ++k) {
            if (taken_[k] || !(jobs[k].grid == jobs[j].grid)) continue;
            taken_[k] = true;
            alike_.push_back(k);
        }
        const block::grid& grid = jobs[j].grid;
        engine::for_each_segment(grid, where, [&](const engine::segment_in_panel& s) {
            run_segment({engine::place_of(s, grid, tensor_id), s.batch * where.rows + s.row, s.col},
                        where, dumps, jobs);
        });
    }
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        const std::lock_guard lock(jobs[j].into->guard);
        jobs[j].into->figures.merge(tallies_[j]);
    }
}

void code_comparer::run_segment(const codec::placed_segment& segment, const engine::panel& where,
                                std::span<const codec::stored_values> dumps,
                                std::span<const code_job> jobs) {
    using codec::detail;
    for (std::size_t dump = 0; dump < dumps.size(); ++dump) {
        requests_.clear();
        for (const std::size_t j : alike_) {
            // Without codes of scales, the scale itself is among the statistics of a block.
            requests_.push_back({&jobs[j].params_of(dump),
                                 jobs[j].scales_have_codes ? detail::codes : detail::stats});
        }
        quantizer_->run(
            {dumps[dump], where.batches * where.rows, where.cols}, {&segment, 1}, requests_,
            [&](std::size_t, std::span<const codec::segment_result> results) {
                for (std::size_t i = 0; i < alike_.size(); ++i) {
                    const std::size_t j = alike_[i];
                    add_dump(segment.place, jobs[j], results[i], blocks_[j], dump, tallies_[j]);
                }
            });
    }
}

void code_comparer::add_dump(const codec::segment_place& place, const code_job& job,
                             const codec::segment_result& result, recent& r, std::size_t dump,
                             code_figures& to) {
    add_counts(*result.stats, to.dumps[dump]);
    if (!job.zone.empty()) add_maxima(result.of_blocks, job.zone, to.dumps[dump]);
    kept_blocks& now = r[dump % 3];
    now.keep(result.of_blocks);
    if (dump == 0) return;
    const kept_blocks& before = r[(dump - 1) % 3];
    add_moves(place, before, now, to.moves[dump - 1]);
    if (dump == 1) return;
    add_flips(place, r[(dump - 2) % 3], before, now, to.moves[dump - 2]);
}

}  // namespace mx::diff
