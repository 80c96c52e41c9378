// SPDX-License-Identifier: Apache-2.0
// Uncertainty of a product's error and gain: their variation over other rows and columns of the
// same kind.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "libmx/studies/products/value_errors.hpp"

namespace mx::products {

/// Sums of x^2, x (d - x) and (d - x)^2 over each row of a product, then over each column. Elements
/// that are not finite are left out.
struct error_sums {
    std::size_t rows = 0;
    std::vector<double> x2, xe, e2;
};

/// The sums of `d` compared with `x`, both rows x (size / rows), C order. Does not depend on
/// threads.
error_sums sums_by_row_and_column(std::span<const float> x, std::span<const float> d,
                                  std::size_t rows);

/// Standard error of the gain: that of a ratio of sums over independently drawn rows, combined in
/// quadrature with that over columns. nullopt with fewer than two rows or columns, or if x is zero.
std::optional<double> gain_standard_error(const error_sums& s);

/// The ratio of two errors and its standard error (nullopt with fewer than two rows or columns).
struct error_ratio {
    double value = 1;
    std::optional<double> standard_error;
};

/// The root of the ratio of the squared errors of `s` to those of `base`, with the same number of
/// rows and columns; nullopt if `base` has no errors.
std::optional<error_ratio> ratio_of_errors(const error_sums& s, const error_sums& base);

}  // namespace mx::products
