// SPDX-License-Identifier: Apache-2.0
// Per-block analysis of a tensor: how narrow the range of each block is, where its maximum lies,
// and which blocks lose the differences between their elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "libmx/analysis/groups.hpp"
#include "libmx/engine/run.hpp"
#include "libmx/report/record.hpp"

namespace mx::cluster {

/// What a block loses; worse defects first. Blocks with fewer than two non-zero elements, and
/// blocks without a finite scale, are not judged.
enum class defect : std::uint8_t {
    saturation,  ///< every non-zero element takes the largest code, some from beyond it
    death,       ///< every non-zero element becomes zero
    collapse,    ///< unequal magnitudes all become one (not by saturation)
};
inline constexpr std::size_t defect_count = 3;

/// A block with a defect.
struct bad_block {
    std::uint64_t index = 0;  ///< in the tensor's block grid
    defect what = defect::saturation;
    double least = 0, largest = 0;  ///< of |x| over x != 0
    std::optional<double> becomes;  ///< the magnitude every element gets; none with an offset
    double gain = 0;                ///< sum(x d) / sum(x^2)
    double loss = 0;                ///< sum((x - d)^2) / sum(x^2)
};

/// The block that is closest to saturation without saturating.
struct near_block {
    std::uint64_t index = 0;
    double least = 0, largest = 0;
    double nearness = 0;  ///< see engine::block_judge::nearness
};

/// One tensor, or a group of tensors, under one recipe.
struct block_survey {
    std::size_t tensor = 0, recipe = 0;  ///< indices; of a group, `tensor` is its own
    std::uint64_t blocks = 0;
    std::uint64_t eligible = 0;   ///< blocks with at least two non-zero finite elements
    std::uint64_t saturated = 0;  ///< of them, as the metric saturated_block_rate counts them
    std::uint64_t defective[defect_count] = {};  ///< of the eligible blocks, by defect

    /// Share of the blocks with a finite maximum whose maximum is in the recipe's clamp zone.
    report::value clamp_zone_block_rate;
    /// Closed-form verdicts (engine::block_judge) as shares of the eligible blocks; null if the
    /// recipe has none.
    report::value certain_overflow_block_rate, certain_saturation_block_rate;
    report::value saturated_block_gain;  ///< mean gain of the saturated blocks
    report::record spread;               ///< quantiles of min/max: {"p01", ...}
    report::value rmse, nrmse, saturated_block_rate, collapsed_block_rate, bits_per_element;
    bool without_values = false;  ///< no finite element, or zeros only

    // Of a tensor: in a group, the indices of blocks have no meaning.
    std::vector<bad_block> worst;  ///< those with the largest loss, at most `worst_blocks`
    std::optional<near_block> nearest;

    double share(defect a) const {
        const auto n = static_cast<double>(defective[static_cast<std::size_t>(a)]);
        return eligible == 0 ? 0.0 : n / static_cast<double>(eligible);
    }
};

inline constexpr std::size_t worst_blocks = 5;

struct survey_recipe;
struct shared_survey;
struct grouped_surveys;

/// Surveys the blocks of a run under its first factor: tensors in order, recipes innermost. With a
/// transform, blocks are those of the transformed values. Memory does not depend on the size of
/// tensors, and results do not depend on threads.
class block_surveyor final : public engine::visitor {
  public:
    /// `take` receives the survey of each tensor and recipe.
    block_surveyor(const engine::run_request& request, std::function<void(block_survey)> take);
    /// And the blocks of tensors of a group are counted together: see take_groups().
    block_surveyor(const engine::run_request& request, std::function<void(block_survey)> take,
                   analysis::grouping groups);
    ~block_surveyor() override;

    std::size_t tensors_at_once() const override;
    codec::recipe_request requested(const engine::run_job& j) const override;
    std::optional<codec::recipe_request> beside_counts(const engine::run_job& j) const override;
    void total(const engine::run_batch& b, std::size_t job, const block::segment_stats& s) override;
    void begin(const engine::run_batch& b) override;
    std::unique_ptr<engine::panel_visitor> visit(const engine::run_panel& p) override;
    void serialize_job(const engine::run_batch& b, std::size_t job, base::archive& with) override;
    void end(const engine::run_batch& b) override;

    /// After the run, the surveys of groups in their order, recipes innermost; of incomplete
    /// groups, what was seen of them.
    std::vector<block_survey> take_groups();

  private:
    std::vector<survey_recipe> recipes_;
    std::function<void(block_survey)> take_;
    std::unique_ptr<grouped_surveys> groups_;              // null: there are none
    std::vector<std::unique_ptr<shared_survey>> tallies_;  // by job of the batch
};

/// Surveys numeric tensors in a separate run. Throws base::error.
std::vector<block_survey> survey_blocks(const std::vector<engine::tensor_ref>& tensors,
                                        const engine::run_request& request,
                                        const engine::run_control& control);

}  // namespace mx::cluster
