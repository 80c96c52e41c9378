// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/segment_kernel.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "libmx/codec/dialect_scale.hpp"
#include "libmx/codec/stored_value.hpp"

namespace mx::codec {
namespace {

class cpu_quantizer final : public quantizer {
  public:
    explicit cpu_quantizer(const segment_kernel& kernel) : kernel_(kernel) {}

    void run(const value_rectangle& values, std::span<const placed_segment> segments,
             std::span<const recipe_request> recipes, const segment_visitor& visit) override {
        stats_.resize(recipes.size());
        results_.resize(recipes.size());
        while (details_.size() < recipes.size()) details_.emplace_back();
        for (std::size_t s = 0; s < segments.size(); ++s) {
            stop_if_cancelled();
            const placed_segment& segment = segments[s];
            kernel_.load(values.values.from(segment.row * values.values.stride + segment.col),
                         segment.place, run_);
            for (std::size_t r = 0; r < recipes.size(); ++r) {
                // Recipes without results per block leave their buffers unchanged: they can share
                // any.
                const bool nothing = recipes[r].wanted == detail::none && !recipes[r].values;
                block_details& d = details_[nothing ? 0 : r];
                d.asked = recipes[r];
                const block_params* const p = under_outer_scale(*recipes[r].params);
                stats_[r] = kernel_.quantize(*p, run_, d);
                results_[r] = {&stats_[r], d.results, p->tensor};
                if (recipes[r].inputs) results_[r].of_blocks.inputs = run_.x;
            }
            visit(s, results_);
        }
    }

  private:
    // The parameters for a segment that is an area: its outer scale follows from its values.
    const block_params* under_outer_scale(const block_params& p) {
        if (!p.outer_areas) return &p;
        // Signed, because the baseline has no instruction for the maximum of unsigned integers.
        std::int32_t amax = 0;
        for (std::size_t i = 0; i < run_.blocks * run_.stride; ++i) {
            const auto magnitude =
                static_cast<std::int32_t>(base::bits_of(run_.x[i]) & base::f32_magnitude_mask);
            const bool finite = magnitude < static_cast<std::int32_t>(base::f32_infinity);
            amax = std::max(amax, finite ? magnitude : 0);
        }
        of_area_ = p;
        const float largest = base::float_from_bits(static_cast<std::uint32_t>(amax));
        of_area_.tensor = outer_scale(p.outer, largest);
        return &of_area_;
    }

    segment_kernel kernel_;
    block_run run_;
    block_params of_area_{};
    std::deque<block_details> details_;  // by recipe
    std::vector<block::segment_stats> stats_;
    std::vector<segment_result> results_;
};

// The exponents that systems-scaling raises in the grid row beginning with block `first`.
void find_bumps(const block_run& run, std::size_t first, std::vector<std::uint8_t>& bump) {
    std::vector<float> row;
    const auto across = static_cast<std::size_t>(run.place.grid_cols());
    for (std::size_t b = first; b < first + across; ++b) {
        const float* x = run.x + b * run.stride;
        row.insert(row.end(), x, x + extent_of(run.place, b).size());
    }
    bump.resize(run.place.block_size());
    bumps_of_row(row, bump);
}

}  // namespace

void block_details::fit(const block_run& run) {
    constexpr std::size_t slack = std::size_t{16} * 32, line = 64;
    results = {};
    results.blocks = run.blocks;
    results.stride = run.stride;
    std::size_t bytes = 0;
    const auto take = [&](std::size_t entries, std::size_t size) {
        const std::size_t at = bytes;
        bytes += ((entries * run.blocks + slack) * size + line - 1) / line * line;
        return at;
    };
    for_each_array(results, asked,
                   [&](auto*& array, std::size_t entries) { take(entries, sizeof *array); });
    std::byte* const memory = memory_.reserve(bytes);
    bytes = 0;
    for_each_array(results, asked, [&]<typename T>(T*& array, std::size_t entries) {
        array = reinterpret_cast<T*>(memory + take(entries, sizeof(T)));
    });
}

void pack_blocks(const stored_values& values, const segment_place& place, block_run& run) {
    run.place = place;
    run.stride = block_stride(place.block_size());
    run.blocks = place.blocks();
    run.draws = nullptr;
    float* const to = run.x_buffer.reserve(run.blocks * run.stride);
    run.x = to;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        const block_extent e = extent_of(place, b);
        float* const block = to + b * run.stride;
        const auto cols = static_cast<std::size_t>(e.cols);
        for (std::size_t r = 0; r < e.rows; ++r) {
            const std::uint64_t row = (e.row + r) * values.stride + e.col;
            for (std::size_t i = 0; i < cols; ++i) {
                block[r * cols + i] = stored_value(values.type, values.data, row + i);
            }
        }
        std::fill(block + e.size(), block + run.stride, 0.0f);
    }
}

std::unique_ptr<quantizer> make_cpu_quantizer(const segment_kernel& kernel) {
    return std::make_unique<cpu_quantizer>(kernel);
}

namespace scalar {

block::block_stats quantize_one(const block_params& p, const block_run& run, std::size_t block,
                                block_details& details, block::exact_totals* sums,
                                const std::uint8_t* bump) {
    const block_extent e = extent_of(run.place, block);
    const std::size_t lies = block * run.stride;
    const std::span<const float> x(run.x + lies, e.size());
    block_place place = place_of(run.place, e);
    place.bump = bump;
    const block_results& to = details.results;
    const bool parts = details.asked.parts;
    std::span<float> values;
    if (to.values != nullptr) values = {to.values + lies, e.size()};
    if (to.codes != nullptr) {
        const auto quantize = to.stats != nullptr ? measure_block : quantize_block;
        const block::block_stats s =
            quantize(p, x, place, {to.codes + lies, e.size()}, values, sums, parts);
        to.put(block, s);
        return s;
    }
    std::array<std::uint8_t, 4096> few;
    std::vector<std::uint8_t> many(e.size() <= few.size() ? 0 : e.size());
    const std::span codes = many.empty() ? std::span(few).first(e.size()) : std::span(many);
    const block::block_stats s = quantize_block(p, x, place, codes, values, sums, parts);
    to.put(block, s);
    return s;
}

block::segment_stats quantize(const block_params& p, block_run& run, block_details& details) {
    details.fit(run);
    block::segment_stats out{};
    block::exact_totals* const sums = details.asked.sums ? &out.sum : nullptr;
    std::vector<std::uint8_t> bump;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        if (p.bumps && b % run.place.grid_cols() == 0) find_bumps(run, b, bump);
        block::add_counts(out,
                          quantize_one(p, run, b, details, sums, p.bumps ? bump.data() : nullptr));
    }
    return out;
}

}  // namespace scalar

}  // namespace mx::codec
