// SPDX-License-Identifier: Apache-2.0
#include "tests/parity/counted_cases.hpp"

#include <algorithm>
#include <cstring>

#include "libmx/codec/segment_kernel.hpp"
#include "libmx/codec/word_counts.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/panels.hpp"

namespace mx::tests {

laid_out lay_out(const stored_matrix& m, const std::vector<codec::recipe>& recipes) {
    std::string reason;
    const block::grid grid =
        engine::lay_out({m.rows, m.cols}, recipes.front(), reason).value().grid;
    const block::view& v = grid.over;
    laid_out out;
    out.values = {{m.type, m.bytes.data(), v.cols}, v.rows, v.cols};
    engine::for_each_segment(
        grid, {0, 1, 0, v.rows, 0, v.cols}, [&](const engine::segment_in_panel& s) {
            out.segments.push_back(
                {{77, s.first, v.cols, s.rows, s.cols, std::min(grid.block_rows, v.rows),
                  std::min(grid.block_cols, v.cols)},
                 s.row,
                 s.col});
        });
    for (const codec::recipe& r : recipes) {
        codec::block_params p = codec::params_of(r, facts_of(m));
        if (codec::counts_words(p, m.type)) out.params.push_back(std::move(p));
    }
    for (const auto& p : out.params) {
        codec::recipe_request request;
        request.params = &p;
        request.parts = out.asked.size() % 2 == 0;
        out.asked.push_back(request);
    }
    return out;
}

std::vector<block::segment_stats> by_reference(const laid_out& job) {
    const auto quantizer = codec::make_cpu_quantizer(codec::scalar::kernel);
    std::vector<block::segment_stats> out(job.asked.size());
    quantizer->run(job.values, job.segments, job.asked,
                   [&](std::size_t, std::span<const codec::segment_result> results) {
                       for (std::size_t r = 0; r < out.size(); ++r) {
                           const block::segment_stats& s = *results[r].stats;
                           out[r].count += s.count;
                           out[r].block += s.block;
                           out[r].sum.merge(s.sum);
                           out[r].max_error = std::max(out[r].max_error, s.max_error);
                           out[r].counted_max = std::max(out[r].counted_max, s.counted_max);
                       }
                   });
    return out;
}

std::string difference(const block::segment_stats& a, const block::segment_stats& b) {
    if (std::memcmp(&a.count, &b.count, sizeof a.count) != 0) return "counts of elements";
    if (std::memcmp(&a.block, &b.block, sizeof a.block) != 0) return "counts of blocks";
    if (!(a.sum == b.sum)) return "sums";
    if (a.max_error != b.max_error) return "largest error";
    return a.counted_max == b.counted_max ? "" : "largest magnitude";
}

}  // namespace mx::tests
