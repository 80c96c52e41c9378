// SPDX-License-Identifier: Apache-2.0
// The error of an array of float32 results.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "libmx/report/declared.hpp"

namespace mx::products {

/// Sums are computed in double over fixed runs of elements and added exactly, so that they do not
/// depend on threads. Elements for which either value is NaN or Inf are counted and excluded from
/// everything else.
struct value_errors {
    /// Bin 0: equal; bin b: a distance of 2^(b-1) to 2^b - 1 float32 values.
    static constexpr std::size_t ulp_bins = 33;

    std::uint64_t elements = 0;
    std::uint64_t non_finite = 0;
    std::uint64_t differing = 0;  ///< of the finite ones: not equal (zeros of either sign are)
    std::uint64_t max_ulp = 0;
    std::array<std::uint64_t, ulp_bins> ulps{};
    double max_abs = 0;
    double x2 = 0, d2 = 0, xe = 0;  ///< sums of x^2, d^2, x (d - x)
    double error = 0, error2 = 0;   ///< sums of d - x and of its square

    std::uint64_t counted() const { return elements - non_finite; }
    /// sqrt(mean((x - d)^2)).
    std::optional<double> rmse() const;
    /// |d - x| / |x| (Frobenius norms); nullopt if x is zero.
    std::optional<double> nrmse() const;
    /// -20 log10(nrmse); nullopt if nothing differs.
    std::optional<double> sqnr_db() const;
    std::optional<double> mean_error() const;
    /// sum(x d) / sum(x^2), computed as 1 + sum(x (d - x)) / sum(x^2): 1 means no multiplicative
    /// bias.
    std::optional<double> gain() const;
    /// Share of the squared error due to this bias: (gain - 1)^2 sum(x^2) / sum((d - x)^2).
    std::optional<double> bias_share() const;
    std::optional<double> cosine() const;
};

/// The errors of `d` compared with `x`; both have the same length.
value_errors compare_values(std::span<const float> x, std::span<const float> d);

/// The number of steps between float32 values from one to the other; both are finite, and +0 equals
/// -0.
std::uint64_t ulp_distance(float x, float y);

/// The figures as members.
extern const std::array<report::declared<value_errors>, 13> error_members;

}  // namespace mx::products
