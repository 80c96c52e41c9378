// SPDX-License-Identifier: Apache-2.0
// How often recipes of one block shape choose different scale bytes, pair by pair, counted while
// the blocks are quantized.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "libmx/engine/run.hpp"

namespace mx::analysis {

/// The index in rosetta_counts::pairs of recipes a < b of n.
constexpr std::size_t pair_index(std::size_t a, std::size_t b, std::size_t n) {
    return a * n - a * (a + 1) / 2 + b - a - 1;
}

/// Blocks of n recipes and, for the pairs (0,1), (0,2), .., (n-2,n-1), those whose bytes differ.
struct scale_pairs {
    std::uint64_t blocks = 0;
    std::vector<std::uint64_t> differ;

    explicit scale_pairs(std::size_t recipes = 0) : differ(recipes * (recipes - 1) / 2) {}
    void merge(const scale_pairs& other);
};

/// Counts them for groups of recipes (indices, each group of one block shape and transform), under
/// the first factor.
class scale_pair_counter final : public engine::visitor {
  public:
    explicit scale_pair_counter(const std::vector<std::vector<std::size_t>>& groups);

    codec::recipe_request requested(const engine::run_job& j) const override;
    std::optional<codec::recipe_request> beside_counts(const engine::run_job& j) const override;
    void begin(const engine::run_batch& b) override;
    std::unique_ptr<engine::panel_visitor> visit(const engine::run_panel& p) override;
    void serialize_tensor(const engine::run_batch& b, std::size_t tensor,
                          base::archive& with) override;
    void serialize_job(const engine::run_batch&, std::size_t, base::archive&) override {}
    void end(const engine::run_batch& b) override;
    /// By group, over all tensors.
    const std::vector<scale_pairs>& counts() const { return counts_; }

  private:
    class panel_pairs;
    bool compares(const engine::run_job& j) const;
    const std::vector<std::vector<std::size_t>>& groups_;
    std::mutex guard_;
    std::vector<std::vector<scale_pairs>> of_tensors_;  // of the batch, by group
    std::vector<scale_pairs> counts_;
};

}  // namespace mx::analysis
