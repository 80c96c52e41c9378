// SPDX-License-Identifier: Apache-2.0
// How long runs stay stable, and whether groups of runs differ in stability and loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mx::experiments {

/// A run: the step at which it became unstable, or the last observed step.
struct lifetime {
    std::uint64_t step = 0;
    bool unstable = false;
};

/// Kaplan-Meier estimate from `step` on, with a 95 % interval (log-log of Greenwood's variance;
/// while all runs are stable, the Clopper-Pearson lower bound for no failure in the runs observed
/// to the end, those as long as the longest).
struct survival_point {
    std::uint64_t step = 0;
    std::size_t at_risk = 0, events = 0;
    double share = 1, low = 0, high = 1;
};

/// A point at step 0 and at every step at which a run became unstable.
std::vector<survival_point> survival_of(std::span<const lifetime> runs);

/// The log-rank test of two groups: chi-squared with one degree of freedom, and its p-value.
/// nullopt if no run became unstable or a group is empty.
struct rank_test {
    double chi_squared = 0, p = 1;
};
std::optional<rank_test> log_rank(std::span<const lifetime> a, std::span<const lifetime> b);

/// The least number of unstable runs out of `b` for which 80 % of log-rank tests at `level` find
/// more instabilities than in a group in which `unstable` of `a` runs are; nullopt if not even b
/// are found. Simulated: instabilities of either group are uniform over the steps.
std::optional<std::size_t> detectable(std::size_t unstable, std::size_t a, std::size_t b,
                                      double level);

/// The mean of paired differences with Student's 95 % interval and the p-value of no difference;
/// nullopt for fewer than two pairs. Differences must be independent: one for each seed.
struct paired_gap {
    std::size_t pairs = 0;
    double mean = 0, low = 0, high = 0, p = 1;
};
std::optional<paired_gap> gap_of(std::span<const double> differences);

/// The mean difference that 80 % of paired t tests of `pairs` >= 2 find at 5 %, over half the width
/// of the median 95 % interval. Simulated with normal differences.
double detectable_gap(std::size_t pairs);

/// p-values of a family of tests adjusted by Holm's method, in their order: a test is significant
/// at 5 % within the family if its value is below 0.05.
std::vector<double> holm(std::span<const double> p);

}  // namespace mx::experiments
