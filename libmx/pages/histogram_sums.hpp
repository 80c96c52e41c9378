// SPDX-License-Identifier: Apache-2.0
// Reads and sums the histograms of the results' member `distributions`.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libmx/metrics/histograms.hpp"
#include "libmx/pages/review_data.hpp"

namespace mx::pages {

/// Counts of block maxima by mantissa.
using mantissas = std::array<double, metrics::mantissa_bins>;

struct histogram_sum {
    double tensors = 0;
    std::vector<double> codes;     ///< by code
    std::map<int, double> scales;  ///< by code
    mantissas amax{};
};

/// The histograms of one role and recipe, or over all roles if `role` is empty; nullopt if there
/// are none.
std::optional<histogram_sum> histograms_of(const review_data& e, const std::string& role,
                                           const std::string& recipe);

/// Reads the bins of a record's member amax_mantissa_histogram; false if it has none.
bool read_mantissas(const report::record& r, mantissas& bins);

}  // namespace mx::pages
