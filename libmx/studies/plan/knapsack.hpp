// SPDX-License-Identifier: Apache-2.0
// The multiple-choice knapsack problem: one choice per class that minimizes the total cost while
// the total weight stays within a capacity. Solved exactly in integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace mx::plan {

/// One choice for a tensor: its cost and its weight. For each of the two, the sum over all classes
/// of the largest value must not exceed 2^61.
struct knapsack_choice {
    std::uint64_t cost = 0;
    std::uint64_t weight = 0;
};
using knapsack_class = std::vector<knapsack_choice>;

/// A selection: one index per class.
struct knapsack_selection {
    std::vector<std::uint32_t> chosen;
    std::uint64_t cost = 0;
    std::uint64_t weight = 0;
    /// A lower bound on the cost of every selection. Equal to `cost` if optimal is true.
    std::uint64_t bound = 0;
    bool optimal = false;
};

/// Memory limit of the search: the total number of partial selections kept.
inline constexpr std::size_t knapsack_states = std::size_t{1} << 24;

/// The selection of least cost whose weight is at most `capacity`; of several, one of least weight;
/// of equal choices in a class, the first. nullopt if even the lightest choices are too heavy. If
/// the search would keep more than `states` partial selections, the best selection found, with the
/// proven bound. The result depends on the arguments only.
std::optional<knapsack_selection> solve_knapsack(const std::vector<knapsack_class>& classes,
                                                 std::uint64_t capacity,
                                                 std::size_t states = knapsack_states);

/// Like solve_knapsack, but minimizes the cost only: the weight is within the capacity, but not
/// necessarily the least for that cost. Proves optimality more often.
std::optional<knapsack_selection> least_cost(const std::vector<knapsack_class>& classes,
                                             std::uint64_t capacity,
                                             std::size_t states = knapsack_states);

/// The totals of a selection.
struct knapsack_point {
    std::uint64_t cost = 0;
    std::uint64_t weight = 0;
};

/// The lower convex hull of all totals, from the least weight to the least cost: each point has the
/// least cost for its weight, and no total lies below the lines between points.
std::vector<knapsack_point> knapsack_hull(const std::vector<knapsack_class>& classes);

}  // namespace mx::plan
