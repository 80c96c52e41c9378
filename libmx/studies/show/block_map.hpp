// SPDX-License-Identifier: Apache-2.0
// The blocks of one tensor under one recipe: a map of bounded size, and the worst blocks in full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "libmx/analysis/result.hpp"
#include "libmx/base/exact_sum.hpp"
#include "libmx/engine/run.hpp"

namespace mx::show {

/// Some adjacent blocks. Sums and rates are over the elements that tensor figures use: finite ones
/// whose block has a finite scale.
struct region {
    std::uint64_t blocks = 0, elements = 0;
    std::uint64_t not_finite = 0;  ///< NaN and Inf
    std::uint64_t poisoned = 0;    ///< finite, but NaN with their block
    std::uint64_t clamp = 0, underflow = 0;
    std::uint64_t eligible = 0, saturated = 0;  ///< blocks, see block::block_flags
    double error2 = 0, x2 = 0;                  ///< sums of (d - x)^2 and x^2
    // Maxima over the blocks.
    double max_error = 0, max_clamp = 0, max_underflow = 0;

    /// Adds the counts of `r`.
    void add_counts(const region& r);

    /// sqrt(error2 / x2); 0 if every x is 0.
    double error() const;
    /// The squared error beyond that of normal data, whose squared error is `normal` of its
    /// squares.
    double excess(double normal) const { return error2 - normal * x2; }
    // Shares of the finite elements that are not poisoned, as in mx analyze; 0 if there are none.
    double clamp_share() const { return share_of(clamp, finite() - poisoned); }
    double underflow_share() const { return share_of(underflow, finite() - poisoned); }
    double poisoned_share() const { return share_of(poisoned, finite()); }
    /// Share of the eligible blocks.
    double saturated_share() const { return share_of(saturated, eligible); }

    std::uint64_t finite() const { return elements - not_finite; }

  private:
    static double share_of(std::uint64_t n, std::uint64_t whole) {
        return whole == 0 ? 0.0 : static_cast<double>(n) / static_cast<double>(whole);
    }
};

/// A block as a region.
region region_of(const block::block_stats& s);

/// How the block grid of a tensor is divided into the cells of a map. A grid of one row or column
/// is folded into several lines.
struct map_layout {
    static constexpr std::uint64_t most_rows = 24, most_columns = 64;

    map_layout() = default;
    explicit map_layout(const block::grid& g, std::uint64_t rows_at_most = most_rows,
                        std::uint64_t columns_at_most = most_columns);

    std::uint64_t lines = 0, across = 0;  ///< the block grid, matrices below each other
    std::uint64_t rows = 0, columns = 0;  ///< cells
    std::uint64_t tall = 1, wide = 1;     ///< blocks of a cell that is not cut off
    bool folded = false;

    std::size_t cell_of(std::uint64_t block) const;
    /// The first block of a cell.
    std::uint64_t block_of(std::uint64_t row, std::uint64_t column) const;
};

/// A block with all its values and results.
struct kept_block {
    std::uint64_t index = 0;  ///< in the tensor's block grid
    bool poisoned = false;    ///< finite elements become NaN
    double excess = 0;        ///< region::excess
    block::block_stats stats{};
    float outer_amax = 0;       ///< where areas have outer scales: what that of its area is from
    std::vector<float> x;       ///< as they were quantized: with bias, rotated
    std::vector<float> values;  ///< dequantized, as the dialect returns them
    std::vector<std::uint8_t> codes;
    std::vector<std::uint8_t> bump;  ///< see codec::block_place; empty without
};

/// Whether a is worse: poisoned, then a larger excess of squared error, then a smaller index.
bool worse(const kept_block& a, const kept_block& b);

/// Maps the blocks of the only tensor of a run under its first recipe. Memory does not depend on
/// the size of the tensor, and results do not depend on threads.
class block_mapper final : public engine::visitor {
  public:
    static constexpr std::uint64_t most_bands = 1024;

    /// Keeps the `worst` blocks, or block `only`. `normal`: the squared error of the recipe on
    /// normal data over their squares. The map has at most that many rows and columns.
    block_mapper(std::size_t worst, std::optional<std::uint64_t> only, double normal,
                 std::uint64_t map_rows, std::uint64_t map_columns)
        : worst_(worst),
          only_(only),
          normal_(normal),
          map_rows_(map_rows),
          map_columns_(map_columns) {}

    codec::recipe_request requested(const engine::run_job& j) const override;
    void begin(const engine::run_batch& b) override;
    std::unique_ptr<engine::panel_visitor> visit(const engine::run_panel& p) override;
    void end(const engine::run_batch& b) override;

    map_layout layout;
    std::vector<region> cells;  ///< by row and column of the layout
    /// Rows of blocks across the whole grid, `band_lines` per band.
    std::vector<region> bands;
    std::uint64_t band_lines = 1;
    std::vector<kept_block> kept;  ///< worst first
    /// By recipe of the run, with the tensor's facts.
    std::vector<std::shared_ptr<const codec::block_params>> params;

  private:
    friend class panel_map;
    struct sums {
        region of;
        base::exact_sum error2, x2;

        void add(const region& r);
        region finish() const;
    };
    void keep(kept_block b);

    std::size_t worst_;
    std::optional<std::uint64_t> only_;
    double normal_;
    std::uint64_t map_rows_, map_columns_;
    std::mutex guard_;
    std::vector<sums> cell_sums_, band_sums_;
};

}  // namespace mx::show
