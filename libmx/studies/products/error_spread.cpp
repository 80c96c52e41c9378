// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/error_spread.hpp"

#include <cmath>
#include <numeric>

namespace mx::products {
namespace {

// The squared standard error of a sum of independent terms with mean 0: rows, then columns. nullopt
// if there are fewer than two of either.
template <typename Term>
std::optional<double> standard_error(const error_sums& s, Term term) {
    double squares[2] = {0, 0};
    const std::size_t count[2] = {s.rows, s.x2.size() - s.rows};
    if (count[0] < 2 || count[1] < 2) return {};
    for (std::size_t i = 0; i < s.x2.size(); ++i) {
        const double t = term(i);
        squares[i < s.rows ? 0 : 1] += t * t;
    }
    double sum = 0;
    for (std::size_t i = 0; i < 2; ++i) {
        sum += squares[i] * static_cast<double>(count[i]) / static_cast<double>(count[i] - 1);
    }
    return std::sqrt(sum);
}

double total(const std::vector<double>& sums, std::size_t rows) {
    return std::accumulate(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(rows), 0.0);
}

}  // namespace

error_sums sums_by_row_and_column(std::span<const float> x, std::span<const float> d,
                                  std::size_t rows) {
    const std::size_t columns = rows == 0 ? 0 : x.size() / rows;
    error_sums s{rows, std::vector<double>(rows + columns), std::vector<double>(rows + columns),
                 std::vector<double>(rows + columns)};
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
            const float a = x[i * columns + j], b = d[i * columns + j];
            if (!std::isfinite(a) || !std::isfinite(b)) continue;
            const double off = double{b} - double{a};
            for (const std::size_t at : {i, rows + j}) {
                s.x2[at] += double{a} * double{a};
                s.xe[at] += double{a} * off;
                s.e2[at] += off * off;
            }
        }
    }
    return s;
}

std::optional<double> gain_standard_error(const error_sums& s) {
    const double x2 = total(s.x2, s.rows);
    if (x2 == 0) return {};
    const double beyond = total(s.xe, s.rows) / x2;
    return standard_error(s, [&](std::size_t i) { return (s.xe[i] - beyond * s.x2[i]) / x2; });
}

std::optional<error_ratio> ratio_of_errors(const error_sums& s, const error_sums& base) {
    const double e2 = total(s.e2, s.rows), base2 = total(base.e2, base.rows);
    if (base2 == 0) return {};
    const double ratio = std::sqrt(e2 / base2);
    if (e2 == 0) return error_ratio{0, {}};
    // Rows with large errors under one have large errors under the other, so the difference
    // matters.
    return error_ratio{ratio, standard_error(s, [&](std::size_t i) {
                           return ratio / 2 * (s.e2[i] / e2 - base.e2[i] / base2);
                       })};
}

}  // namespace mx::products
