// SPDX-License-Identifier: Apache-2.0
// The minimum of a smooth function, by NLopt's L-BFGS. The only file that includes NLopt.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace mx::optimize {

/// The value at `x`; writes the gradient, which has the extent of `x`.
using smooth_function =
    std::function<double(std::span<const double> x, std::span<double> gradient)>;

struct minimum {
    std::vector<double> at;
    double value = 0;
    int evaluations = 0;
};

/// The local minimum that L-BFGS reaches from `start` within `evaluations` calls, restarted from
/// where it stopped until that gains nothing. Values of the function should have a magnitude near
/// 1. A value that is not finite counts as the largest double, so that no step ends there, and so
/// does a point outside `within` in any coordinate from 0. The same start gives the same bits.
/// Throws base::error (unavailable) in a build without NLopt.
minimum minimize(const smooth_function& f, std::vector<double> start, int evaluations = 2000,
                 double within = 1e3);

/// The version of NLopt, "" in a build without it.
std::string nlopt_version();

/// Throws base::error (unavailable): what to install for `purpose`, in a build without NLopt.
void require_nlopt(const std::string& purpose);

}  // namespace mx::optimize
