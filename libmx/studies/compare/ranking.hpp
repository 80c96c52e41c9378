// SPDX-License-Identifier: Apache-2.0
// Ranks the cells of a sweep by error over a set of tensors.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/analysis/results_table.hpp"
#include "libmx/base/student.hpp"
#include "libmx/studies/compare/cells.hpp"

namespace mx::compare {

/// How the errors of several tensors are combined.
enum class pooling : std::uint8_t {
    as_stored,  ///< squared errors as they are: tensors of large values count most
    equal_rms   ///< every tensor divided by its RMS first: none hides the others by its size
};

/// A rate that is pooled over tensors, and its denominator.
struct pooled_rate {
    enum class whole : std::uint8_t { elements, blocks, squared_error };
    std::string_view name;
    whole of;
    double analysis::result::*figure;
};

/// The rates that a ranking pools besides errors and bits.
inline constexpr std::array pooled_rates{
    pooled_rate{"overflow_rate", pooled_rate::whole::elements, &analysis::result::overflow_rate},
    pooled_rate{"clamp_rate", pooled_rate::whole::elements, &analysis::result::clamp_rate},
    pooled_rate{"underflow_rate", pooled_rate::whole::elements, &analysis::result::underflow_rate},
    pooled_rate{"saturated_block_rate", pooled_rate::whole::blocks,
                &analysis::result::saturated_block_rate},
    pooled_rate{"collapsed_block_rate", pooled_rate::whole::blocks,
                &analysis::result::collapsed_block_rate},
    pooled_rate{"clamp_error_share", pooled_rate::whole::squared_error,
                &analysis::result::clamp_error_share},
    pooled_rate{"underflow_error_share", pooled_rate::whole::squared_error,
                &analysis::result::underflow_error_share},
    pooled_rate{"grid_error_share", pooled_rate::whole::squared_error,
                &analysis::result::grid_error_share},
    pooled_rate{"regret_share", pooled_rate::whole::squared_error, &analysis::result::regret_share},
};

/// The index in pooled_rates of a rate that must exist.
constexpr std::size_t rate_index(std::string_view name) {
    std::size_t i = 0;
    while (pooled_rates[i].name != name) ++i;
    return i;
}

/// The rank of a cell. Figures of a cell with several seeds are means over them, with intervals.
struct standing {
    std::size_t cell = 0;
    std::int64_t tensors = 0;  ///< that it was measured on and that hold a finite number
    /// Geometric mean, over the `compared` tensors of the ranking, of the R-MSE relative to the
    /// baseline's; nullopt without such a tensor.
    std::optional<base::estimate> rmse_ratio;
    std::int64_t compared = 0;
    std::int64_t only_exact = 0;           ///< tensors exact here and not under the baseline
    std::int64_t only_baseline_exact = 0;  ///< the other way round
    bool exact = false;                    ///< every tensor is, under every seed
    std::int64_t wins = 0;  ///< tensors with the smallest R-MSE; ties (same_rmse) count
    std::optional<base::estimate> nrmse,
        sqnr_db;  ///< over all elements together, pooled as asked for
    std::optional<base::estimate> mean_sqnr_db;  ///< of the tensors that are not exact
    double bits_per_element = 0;                 ///< over all elements together
    std::array<std::optional<double>, pooled_rates.size()> rates;  ///< likewise
};

/// The tensors on which all cells of a sweep can be compared: means over different tensors would
/// compare the tensors, not the cells.
struct common_tensors {
    std::vector<std::size_t> tensors;  ///< measured under every cell and the baseline
    /// Of these, the tensors that ratios are computed over: those that no cell quantizes exactly.
    std::vector<std::size_t> compared;
    std::int64_t not_everywhere = 0;  ///< measured under some cells only: left out
    std::int64_t uneven = 0;  ///< of `tensors`: cells count different numbers of their elements,
                              ///< where NaN or Inf or the ends of the scale's range poison blocks
};

struct ranking {
    std::vector<standing> cells;  ///< smallest ratio first; all exact before, undefined after
    std::int64_t contests = 0;    ///< tensors that at least one cell does not quantize exactly
    common_tensors over;          ///< what every cell's figures are over
};

/// A figure of a tensor under a cell, the mean over its seeds; nullopt if one of them has none.
std::optional<double> figure_of(const analysis::results_table& b, std::size_t tensor, const cell& c,
                                double analysis::result::*figure, std::size_t phase = 0);
/// The R-MSE; nullopt if the tensor was left out.
inline std::optional<double> rmse_of(const analysis::results_table& b, std::size_t tensor,
                                     const cell& c, std::size_t phase = 0) {
    return figure_of(b, tensor, c, &analysis::result::rmse, phase);
}

/// Figures of several tensors under one run, combined.
struct pool {
    pooling how = pooling::as_stored;
    bool lossless = true;
    double elements = 0, bits = 0;
    double error2 = 0, x2 = 0;  ///< squares over all elements
    double decibels = 0;
    std::int64_t tensors = 0, inexact = 0;  ///< with a finite element; of them, with an error
    std::array<double, pooled_rates.size()> part{}, whole{};

    void add(const analysis::result& r);
    std::optional<double> nrmse() const;
    std::optional<double> mean_sqnr_db() const;  ///< of the tensors that are not exact
    std::optional<double> rate(std::size_t i) const;
};

/// The cell with the smallest R-MSE on a tensor, the first of equals; nullopt if all of them left
/// the tensor out.
std::optional<std::size_t> best_on(const sweep_plan& plan, const analysis::results_table& b,
                                   std::size_t tensor);

/// Whether no tensor of `among` has a figure under a cell.
bool unmeasured(const analysis::results_table& b, const cell& c, std::span<const std::size_t> among,
                std::size_t phase = 0);

/// Ranks the cells of `plan` on those of the tensors `among` (indices into the table) on which all
/// of them can be compared.
ranking rank(const analysis::results_table& b, const sweep_plan& plan,
             std::span<const std::size_t> among, std::size_t phase = 0,
             pooling how = pooling::as_stored);

/// Indices of all tensors of a table.
std::vector<std::size_t> all_tensors(const analysis::results_table& b);

/// R-MSEs with a smaller relative difference count as equal: sums are no more accurate than that
/// (docs/guide/figures.md).
inline constexpr double same_rmse = 1e-6;

/// Whether `a` ranks before `b` by more than same_rmse.
bool stands_before(const standing& a, const standing& b);

/// A point of bits per element and SQNR. A cell without an error has an infinite SQNR.
struct trade {
    double bits = 0;
    std::optional<double> sqnr_db;  ///< none where it is undefined: never on the front
};

inline constexpr double no_error = std::numeric_limits<double>::infinity();

/// SQNRs with a smaller difference count as equal; see same_rmse.
inline constexpr double same_decibels = 1e-5;

/// For each point, whether it is on the Pareto front: no other point is at least as good in both
/// and better in one. Equal points are both on the front, or neither is.
std::vector<bool> pareto_front(std::span<const trade> points);

}  // namespace mx::compare
