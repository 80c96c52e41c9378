// SPDX-License-Identifier: Apache-2.0
// THE POLICY of recommendations, one class of tensors at a time.
//
// Norms, biases and routers (roles() says which roles) keep the precision they are stored in,
// whatever was measured. For every other class a recipe is acceptable when, over the elements of
// all tensors of the class together, each tensor divided by its RMS, its SQNR is at least the
// floor, when no tensor of the class saturates (alarming_saturation of its blocks or more) or
// collapses (alarming_collapse or more), and when it takes fewer bits than bfloat16. Of the
// acceptable recipes the one with the fewest bits per element is recommended, of equals the one
// with the highest SQNR, of equals the first. Where none is acceptable bfloat16 is recommended, or
// the stored precision where that is neither bfloat16 nor wider.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/engine/stored_precision.hpp"
#include "libmx/studies/compare/board.hpp"
#include "libmx/studies/compare/cells.hpp"

namespace mx::pages {

/// An error of at most a tenth of the values' RMS.
inline constexpr double default_min_sqnr_db = 20;
/// Recipes of as many bits whose SQNRs differ by less are called too close to tell apart.
inline constexpr double close_decibels = 0.5;
/// Underflow from which on a recommendation is given with a warning: SQNR hardly sees it.
inline constexpr double noted_underflow_rate = 0.10;
inline constexpr double bf16_bits = 16;
/// Bits per element that differ by less are the same.
inline constexpr double same_bits = 1e-6;

struct policy {
    double min_sqnr_db = default_min_sqnr_db;
    bool accept_damage = false;  ///< for what would be chosen if lost blocks did not matter
};

/// Tensors of a class of which a recipe destroys a share of the blocks.
struct damage {
    std::size_t tensors = 0;           ///< with the alarming share or more
    std::optional<std::size_t> worst;  ///< tensor with the largest share; none where all are 0
    double worst_rate = 0;
};

/// A recipe as it does on the tensors of a class, all their elements together, each tensor divided
/// by its RMS.
struct candidate {
    std::size_t cell = 0;
    double bits = 0;     ///< per element
    double sqnr_db = 0;  ///< infinite where nothing is lost
    std::array<std::optional<double>, compare::pooled_rates.size()> rates;
    damage saturation, collapse;
    std::size_t clamping = 0;          ///< tensors with alarming_clamp_rate or more
    std::size_t below = 0;             ///< tensors whose own SQNR is below the floor
    std::size_t collapse_unknown = 0;  ///< tensors whose results lack collapsed_block_rate

    bool damages() const { return saturation.tensors + collapse.tensors > 0; }

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
    std::optional<std::size_t> chosen;  ///< index of the candidate; none: the fallback
    bool kept = false;       ///< the class keeps its stored precision, whatever was measured
    bool undecided = false;  ///< no tensor was measured under every recipe: nothing to choose by
    std::vector<std::string> dtypes;  ///< that the tensors are stored in, in order of appearance
    std::string fallback{engine::bf16_name};  ///< without a recipe: bf16_name or stored_choice
    double fallback_bits = bf16_bits;         ///< per element
};

/// One rung of what other floors lead to.
struct rung {
    std::optional<std::size_t> candidate;  ///< none: the fallback
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

/// Bits per element of a candidate, or of the fallback for none; `r.chosen` is what is recommended.
double bits_of(const recommendation& r, std::optional<std::size_t> candidate);
/// What it is called.
std::string name_of(const compare::sweep_plan& plan, const recommendation& r,
                    std::optional<std::size_t> candidate);

}  // namespace mx::pages
