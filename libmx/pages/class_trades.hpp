// SPDX-License-Identifier: Apache-2.0
// Data for figures: every measured recipe over the tensors of a class.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/pages/review_data.hpp"
#include "libmx/studies/compare/ranking.hpp"

namespace mx::pages {

/// Figures of a recipe over all elements of the tensors of a class, with each tensor divided by its
/// RMS.
struct candidate {
    std::size_t cell = 0;
    double bits = 0;     ///< per element
    double sqnr_db = 0;  ///< infinite where nothing is lost
    std::array<std::optional<double>, compare::pooled_rates.size()> rates;

    /// A pooled rate by name.
    const std::optional<double>& rate(std::string_view name) const {
        return rates[compare::rate_index(name)];
    }
};

struct class_trades {
    std::string role;  ///< empty: all tensors
    std::vector<candidate> candidates;
    std::vector<std::size_t> tensors = {};  ///< of the class, indices into the table
};

/// Over the tensors of `among` that were measured under every recipe that measured any of them.
class_trades trades_of(const std::string& role, const review_data& e,
                       const std::vector<std::size_t>& among);

}  // namespace mx::pages
