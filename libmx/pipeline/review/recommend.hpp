// SPDX-License-Identifier: Apache-2.0
// THE POLICY of recommendations, one class of tensors at a time.
//
// A recipe is acceptable for a class when, over the elements of all tensors of the class together,
// each tensor divided by its RMS, its SQNR is at least the floor, when no tensor of the class
// saturates (alarming_saturation of its blocks or more), and when it takes fewer bits than
// bfloat16. Of the acceptable recipes the one with the fewest bits per element is
// recommended, of equals the one with the highest SQNR, of equals the first. Where none is
// acceptable the class stays in bfloat16.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/pipeline/compare/board.hpp"
#include "libmx/pipeline/compare/cells.hpp"

namespace mx::pipeline::review {

/// An error of at most a tenth of the values' RMS.
inline constexpr double default_min_sqnr_db = 20;
/// Recipes of as many bits whose SQNRs differ by less are called too close to tell apart.
inline constexpr double close_decibels = 0.5;
/// Underflow from which on a recommendation is given with a warning: SQNR hardly sees it.
inline constexpr double noted_underflow_rate = 0.10;
/// What stays where no recipe will do.
inline constexpr double bf16_bits = 16;
/// Bits per element that differ by less are the same.
inline constexpr double same_bits = 1e-6;

struct policy {
    double min_sqnr_db = default_min_sqnr_db;
    bool accept_saturation = false;  ///< for what would be chosen if saturation did not matter
};

/// A recipe as it does on the tensors of a class, all their elements together, each tensor divided
/// by its RMS.
struct candidate {
    std::size_t cell = 0;
    double bits = 0;     ///< per element
    double sqnr_db = 0;  ///< infinite where nothing is lost
    std::array<std::optional<double>, compare::pooled_rates.size()> rates;
    std::size_t saturating = 0;                  ///< tensors with alarming_saturation or more
    std::size_t clamping = 0;                    ///< tensors with alarming_clamp_rate or more
    std::optional<std::size_t> worst_saturated;  ///< tensor with the most saturated blocks
    double worst_saturation = 0;
    std::size_t below = 0;  ///< tensors whose own SQNR is below the floor

    /// One of the pooled rates by its name.
    const std::optional<double>& rate(std::string_view name) const {
        return rates[compare::rate_index(name)];
    }
};

/// What is recommended for a class.
struct recommendation {
    std::string role;
    std::vector<std::size_t> tensors;  ///< measured under every recipe that measured any
    std::int64_t not_everywhere = 0;   ///< tensors of the class that are left out for that
    double elements = 0;
    std::vector<candidate> candidates;  ///< in the order of the plan
    std::optional<std::size_t> chosen;  ///< index of the candidate; none: bfloat16
    bool undecided = false;  ///< no tensor was measured under every recipe: nothing to choose by
};

/// One rung of what other floors lead to.
struct rung {
    std::optional<std::size_t> candidate;  ///< none: bfloat16
    double up_to_db = 0;                   ///< chosen for floors up to this; infinite for the last
};

/// Whether the policy admits a candidate.
bool acceptable(const candidate& c, const policy& p);

/// The candidate that the policy chooses.
std::optional<std::size_t> choose(const std::vector<candidate>& candidates, const policy& p);

/// The choice as a function of the floor, lowest floor first; the last rung has no end.
std::vector<rung> ladder(const std::vector<candidate>& candidates);

/// Judges the tensors `among` of a class.
recommendation recommend(const std::string& role, const compare::board& b,
                         const compare::sweep_plan& plan, const std::vector<std::size_t>& among,
                         const policy& p);

/// Bits per element of what is recommended.
double recommended_bits(const recommendation& r);

}  // namespace mx::pipeline::review
