// SPDX-License-Identifier: Apache-2.0
#include "libmx/pipeline/diff/compare_codes.hpp"

#include <cmath>

#include "libmx/base/bits.hpp"
#include "libmx/pipeline/segment_places.hpp"

namespace mx::pipeline {
namespace {

using quantize::block_details;
using quantize::block_run;

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

bool same_scale(const block_details& a, const block_details& b, std::size_t block, bool coded) {
    if (a.offset.data()[block] != b.offset.data()[block]) return false;
    if (coded) return a.scale_code.data()[block] == b.scale_code.data()[block];
    const float x = a.stats.data()[block].scale;
    const float y = b.stats.data()[block].scale;
    return base::bits_of(x) == base::bits_of(y) || (std::isnan(x) && std::isnan(y));
}

void add_moves(const block_run& run, const block_details& a, const block_details& b, bool coded,
               move_figures& to) {
    for (std::size_t k = 0; k < run.blocks; ++k) {
        const std::size_t n = quantize::extent_of(run.place, k).size();
        const std::size_t at = k * run.stride;
        const std::uint64_t moved = different(a.codes.data() + at, b.codes.data() + at, n);
        to.codes_moved += moved;
        if (same_scale(a, b, k, coded)) {
            to.elements_at_equal_scale += n;
            to.moved_at_equal_scale += moved;
        } else {
            ++to.scales_moved;
        }
    }
    to.blocks += run.blocks;
    to.elements += run.place.elements();
}

void add_flips(const block_run& run, const block_details& a, const block_details& b,
               const block_details& c, move_figures& to) {
    for (std::size_t k = 0; k < run.blocks; ++k) {
        const std::size_t at = k * run.stride;
        to.flipped_back += back_again(a.codes.data() + at, b.codes.data() + at, c.codes.data() + at,
                                      quantize::extent_of(run.place, k).size());
    }
    to.followed += run.place.elements();
}

// Block maxima against the clamp zone; the logarithms of a segment are added in the order of its
// blocks.
void add_maxima(const block_run& run, const block_details& d, const quantize::clamp_zone& zone,
                dump_figures& to) {
    double sum = 0;
    for (std::size_t k = 0; k < run.blocks; ++k) {
        const std::uint32_t bits = d.amax.data()[k];
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

void code_comparer::run(const panel& where, std::span<const quantize::stored_values> dumps,
                        std::uint64_t tensor_id, std::span<const code_job> jobs) {
    while (details_.size() < jobs.size()) details_.emplace_back();
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
        for_each_segment(grid, where, [&](const segment_in_panel& s) {
            const std::uint64_t at = (s.batch * where.rows + s.row) * where.cols + s.col;
            run_segment(place_of(s, grid, tensor_id), at, dumps, jobs);
        });
    }
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        const std::lock_guard lock(jobs[j].into->guard);
        jobs[j].into->figures.merge(tallies_[j]);
    }
}

void code_comparer::run_segment(const quantize::segment_place& place, std::uint64_t at,
                                std::span<const quantize::stored_values> dumps,
                                std::span<const code_job> jobs) {
    for (std::size_t dump = 0; dump < dumps.size(); ++dump) {
        driver_->load(dumps[dump].from(at), place, run_);
        for (const std::size_t j : alike_) {
            add_dump(jobs[j], details_[j], dump, tallies_[j]);
        }
    }
}

void code_comparer::add_dump(const code_job& job, recent& r, std::size_t dump, code_figures& to) {
    using quantize::detail;
    block_details& now = r[dump % 3];
    // Without codes of scales, the scale itself is among the statistics of a block.
    now.wanted = job.scales_have_codes ? detail::codes : detail::stats;
    add_counts(quantize::quantize_one(*driver_, batch_.get(), job.params_of(dump), run_, now),
               to.dumps[dump]);
    if (!job.zone.empty()) add_maxima(run_, now, job.zone, to.dumps[dump]);
    if (dump == 0) return;
    const block_details& before = r[(dump - 1) % 3];
    add_moves(run_, before, now, job.scales_have_codes, to.moves[dump - 1]);
    if (dump == 1) return;
    add_flips(run_, r[(dump - 2) % 3], before, now, to.moves[dump - 2]);
}

}  // namespace mx::pipeline
