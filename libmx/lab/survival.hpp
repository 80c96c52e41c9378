// SPDX-License-Identifier: Apache-2.0
// How long runs stay stable, and how groups of runs differ in that and in their losses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mx::lab {

/// A run: the step at which it became unstable, or the last one that was seen.
struct lifetime {
    std::uint64_t step = 0;
    bool unstable = false;
};

/// Kaplan and Meier's estimate from `step` on, with a 95 % interval (log-log of Greenwood's
/// variance; where all runs are stable so far, Clopper and Pearson's lower end for none of n).
struct survival_point {
    std::uint64_t step = 0;
    std::size_t at_risk = 0, events = 0;
    double share = 1, low = 0, high = 1;
};

/// A point at step 0, and one at every step at which a run became unstable.
std::vector<survival_point> survival_of(std::span<const lifetime> runs);

/// The log-rank test of two groups: chi-squared with one degree of freedom, and its p. None where
/// no run became unstable, or a group is empty.
struct rank_test {
    double chi_squared = 0, p = 1;
};
std::optional<rank_test> log_rank(std::span<const lifetime> a, std::span<const lifetime> b);

/// The mean of paired differences with Student's 95 % interval; none of fewer than two.
struct paired_gap {
    std::size_t pairs = 0;
    double mean = 0, low = 0, high = 0;
};
std::optional<paired_gap> gap_of(std::span<const double> differences);

}  // namespace mx::lab
