// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/cpu_quantizer.hpp"

#include <deque>
#include <vector>

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
                // Recipes that want nothing per block leave nothing in their room: any will do.
                const bool nothing = recipes[r].wanted == detail::none && !recipes[r].values;
                block_details& d = details_[nothing ? 0 : r];
                d.ask(recipes[r]);
                stats_[r] = kernel_.quantize(*recipes[r].params, run_, d);
                results_[r] = {&stats_[r], d.results(*recipes[r].params, run_)};
                if (recipes[r].inputs) results_[r].of_blocks.inputs = run_.x;
            }
            visit(s, results_);
        }
    }

  private:
    segment_kernel kernel_;
    block_run run_;
    std::deque<block_details> details_;  // by recipe
    std::vector<block::segment_stats> stats_;
    std::vector<segment_result> results_;
};

}  // namespace

std::unique_ptr<quantizer> make_cpu_quantizer(const segment_kernel& kernel) {
    return std::make_unique<cpu_quantizer>(kernel);
}

}  // namespace mx::codec
