// SPDX-License-Identifier: Apache-2.0
// Mixed precision: one recipe per tensor so that the squared error of all together is least within
// a budget of bits, or the bits are fewest above a floor of SQNR.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libmx/report/record.hpp"
#include "libmx/studies/plan/candidates.hpp"
#include "libmx/studies/plan/knapsack.hpp"

namespace mx::plan {

/// One of the two; with neither, every tensor has one choice, which is what a policy recommends.
struct plan_goal {
    std::optional<double> bits;     ///< budget: bits per element, over all planned elements
    std::optional<double> sqnr_db;  ///< floor: SQNR of all planned elements together
};

struct plan_totals {
    std::uint64_t bits = 0;
    double error = 0;                 ///< sum of squared errors
    std::optional<double> sqnr_db{};  ///< none without an error or a signal
};

/// One recipe for all tensors.
struct uniform_plan {
    std::uint32_t recipe = 0;
    plan_totals totals;
    bool within = false;  ///< within the budget, or above the floor
};

struct plan {
    std::vector<std::uint32_t> chosen;  ///< by tensor: index into its options
    plan_totals totals;
    bool optimal = false;
    /// What no choice can beat: of the squared error under a budget, of the bits above a floor.
    /// Equal to the plan's own when it is optimal.
    double bound = 0;
    // Both are empty without a goal.
    std::vector<plan_totals> curve;           ///< lower convex hull: fewest bits to least error
    std::vector<uniform_plan> uniform;        ///< the recipes that every tensor has
    std::optional<std::size_t> best_uniform;  ///< index into uniform, of those within
};

/// Chooses. Errors are compared in units of 2^-60 of the largest total there can be, rounded up.
/// `states` bounds the memory of the search (see solve_knapsack). Throws base::error (usage) when
/// the goal cannot be reached, naming what can.
plan make_plan(const candidates& from, const plan_goal& goal, std::size_t states = knapsack_states);

/// A plan in the words of torchao and of compressed-tensors, which llm-compressor takes:
/// {"not_mapped", "torchao", "compressed_tensors"}: per recipe the arguments that give it there, or
/// null and why not, and which module has which. Modules are the matrices called MODULE.weight of
/// the role weight; other tensors are not mapped.
report::record mapping_of(const candidates& from, const plan& p);

}  // namespace mx::plan
