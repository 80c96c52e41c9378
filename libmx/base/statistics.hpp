// SPDX-License-Identifier: Apache-2.0
// How two measures of the same things go together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace mx::base {

/// Ranks from 1, ties sharing their mean. The values are finite.
std::vector<double> ranks_of(std::span<const double> values);

/// Spearman's correlation of pairs (Pearson's of their ranks); none for fewer than three pairs, or
/// where one side is all alike.
std::optional<double> spearman(std::span<const double> x, std::span<const double> y);

/// The exponent p of y = c x^p, by least squares of the logarithms over the pairs of which both are
/// positive; none for fewer than three such pairs, or where all x are alike.
std::optional<double> power_law(std::span<const double> x, std::span<const double> y);

/// A 95 % interval.
struct interval {
    double low = 0, high = 0;
};

using pair_statistic = std::optional<double> (*)(std::span<const double> x,
                                                 std::span<const double> y);

/// The bootstrap's percentile interval of `of` over pairs drawn with replacement: 2,000 draws that
/// follow from `seed` alone. None where `of` is undefined in more than a tenth of them.
std::optional<interval> bootstrap(pair_statistic of, std::span<const double> x,
                                  std::span<const double> y, std::uint64_t seed);

}  // namespace mx::base
