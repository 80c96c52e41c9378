// SPDX-License-Identifier: Apache-2.0
// One choice per class so that a total is least while another stays within a limit: the
// multiple-choice knapsack problem, solved exactly in whole numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace mx::plan {

/// One way to treat a tensor: what it costs and what it weighs. The sums over all classes of the
/// largest of each may not exceed 2^61.
struct knapsack_choice {
    std::uint64_t cost = 0;
    std::uint64_t weight = 0;
};
using knapsack_class = std::vector<knapsack_choice>;

/// What is chosen, one index per class.
struct knapsack_selection {
    std::vector<std::uint32_t> chosen;
    std::uint64_t cost = 0;
    std::uint64_t weight = 0;
    /// No selection costs less than this. Equal to `cost` when optimal is true.
    std::uint64_t bound = 0;
    bool optimal = false;
};

/// How much the search may remember: partial selections kept in all.
inline constexpr std::size_t knapsack_states = std::size_t{1} << 24;

/// The selection of least cost whose weight is at most `capacity`; of several, one of least weight,
/// and of equal choices of a class the first. None when even the lightest choices are too heavy.
/// When the search would remember more than `states`, the best selection found, with the bound that
/// was proved. The answer depends on the arguments only.
std::optional<knapsack_selection> solve_knapsack(const std::vector<knapsack_class>& classes,
                                                 std::uint64_t capacity,
                                                 std::size_t states = knapsack_states);

/// As solve_knapsack, for the least cost alone: its weight is within the capacity, but need not be
/// the least of that cost. Proves more often.
std::optional<knapsack_selection> least_cost(const std::vector<knapsack_class>& classes,
                                             std::uint64_t capacity,
                                             std::size_t states = knapsack_states);

/// The totals of a selection.
struct knapsack_point {
    std::uint64_t cost = 0;
    std::uint64_t weight = 0;
};

/// The lower convex hull of all totals, from the least weight to the least cost: each point is the
/// least cost of its weight, and nothing lies below the lines between them.
std::vector<knapsack_point> knapsack_hull(const std::vector<knapsack_class>& classes);

}  // namespace mx::plan
