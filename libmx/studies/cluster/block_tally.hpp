// SPDX-License-Identifier: Apache-2.0
// The blocks of one tensor under one recipe, counted. Adding and merging do not depend on order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "libmx/base/exact_sum.hpp"
#include "libmx/block/block_stats.hpp"
#include "libmx/codec/clamp_zone.hpp"
#include "libmx/codec/saturation_zone.hpp"
#include "libmx/metrics/histograms.hpp"
#include "libmx/metrics/totals.hpp"
#include "libmx/studies/cluster/block_survey.hpp"

namespace mx::cluster {

/// What is known of a recipe before its first block.
struct survey_recipe {
    explicit survey_recipe(const codec::recipe& r);
    std::optional<codec::block_judge> judge;
    codec::clamp_zone zone;
    bool has_offset;

    bool magnitudes_decide() const { return judge && judge->magnitudes_decide(); }
};

/// A quantized block.
struct surveyed_block {
    std::uint64_t index;
    std::span<const float> x;
    std::span<const std::uint8_t> codes;
    const block::block_stats& stats;
};

/// What a driver says about every block, whatever detail it was asked for.
struct scaled_block {
    std::uint64_t index;
    std::uint32_t amax, least, largest;  ///< see block_stats: amax, x_min, x_max
    int scale_code;
};

class block_tally {
  public:
    /// Adds a block of which its extremes tell that nothing happens to it; false when they do not,
    /// and all of it must be looked at. Only for recipes whose judge knows codes by magnitudes.
    bool add_sound(const scaled_block& b, const survey_recipe& recipe);
    void add(const surveyed_block& b, const survey_recipe& recipe,
             const codec::block_params& params);
    void add(const block::segment_stats& s) { totals_.add(s); }
    void merge(const block_tally& other);
    /// The survey, but for tensor and recipe. `facts` are empty totals of the recipe.
    block_survey finish(const survey_recipe& recipe, metrics::totals facts) const;

  private:
    void place(std::uint32_t amax, std::uint32_t least, std::uint32_t largest,
               const survey_recipe& recipe);
    void judge(const surveyed_block& b, const survey_recipe& recipe,
               const codec::block_params& params);
    void keep(const bad_block& b);
    void keep(const near_block& b);

    metrics::totals totals_;
    metrics::histograms spread_;
    std::uint64_t with_maximum_ = 0, in_zone_ = 0;
    std::uint64_t overflowing_ = 0, saturating_ = 0;  // by the closed forms
    std::uint64_t ailing_[ailment_count] = {};
    base::exact_sum saturated_gain_;
    std::vector<bad_block> worst_;
    std::optional<near_block> nearest_;
};

}  // namespace mx::cluster
