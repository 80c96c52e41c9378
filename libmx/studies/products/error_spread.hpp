// SPDX-License-Identifier: Apache-2.0
// How sure a product's error and gain are: what they would vary by with other rows and columns of
// the same kind.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "libmx/studies/products/value_errors.hpp"

namespace mx::products {

/// Sums over each row of a product, then over each column: of x^2, x (d - x) and (d - x)^2.
/// Elements that are not finite stay out.
struct error_sums {
    std::size_t rows = 0;
    std::vector<double> x2, xe, e2;
};

/// Of `d` against `x`, both rows x (size / rows), C order. Does not depend on threads.
error_sums sums_by_row_and_column(std::span<const float> x, std::span<const float> d,
                                  std::size_t rows);

/// Standard error of the gain: that of a ratio of sums over rows drawn independently, and over
/// columns, added in squares. None with fewer than two rows or columns, or without x.
std::optional<double> gain_standard_error(const error_sums& s);

/// What an error is multiplied by, and its standard error (none with fewer than two rows or
/// columns).
struct error_ratio {
    double value = 1;
    std::optional<double> standard_error;
};

/// The root of the squared errors of `s` over those of `base`, of as many rows and columns; none
/// without errors in `base`.
std::optional<error_ratio> ratio_of_errors(const error_sums& s, const error_sums& base);

}  // namespace mx::products
