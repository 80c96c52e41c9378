// SPDX-License-Identifier: Apache-2.0
// The results of a sweep as a table: what every recipe made of every tensor, phase by phase.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/analysis/result.hpp"

namespace mx::compare {

/// A rate of results that is pooled over tensors, and what it is a share of.
struct pooled_rate {
    enum class whole : std::uint8_t { elements, blocks, squared_error };
    std::string_view name;
    whole of;
    double analysis::result::*figure;
};

/// What a ranking pools besides errors and bits.
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

/// The index in pooled_rates of a rate that is there.
constexpr std::size_t rate_index(std::string_view name) {
    std::size_t i = 0;
    while (pooled_rates[i].name != name) ++i;
    return i;
}

struct tensor_row {
    std::shared_ptr<const analysis::tensor_identity> of;
    /// By run and phase, see board::of; null where the tensor was left out. Not owned.
    std::vector<const analysis::result*> at;
};

struct board {
    std::size_t runs = 0;
    std::size_t phases = 1;
    std::vector<tensor_row> tensors;  ///< in the order of the files

    /// A result without elements and figures where the tensor was left out.
    const analysis::result& of(std::size_t tensor, std::size_t run, std::size_t phase = 0) const;
};

/// Arranges results of the recipes named `runs` under `phases` factors. Results of other recipes
/// are passed over. The board refers to the results.
board arrange(const std::vector<analysis::result>& results, const std::vector<std::string>& runs,
              std::size_t phases);
board arrange(std::vector<analysis::result>&&, const std::vector<std::string>&,
              std::size_t) = delete;

/// Tensors whose names differ in the number of their layer only.
struct layer_series {
    std::string file;
    std::string name;  ///< with '*' in the layer's place
    std::string role;
    std::vector<std::size_t> tensors;  ///< indices into the board, layers ascending
};

/// The series of two layers and more, in the order of their first tensors.
std::vector<layer_series> find_series(const board& b);

/// What a series says of every layer; means over the seeds of a cell.
struct series_figure {
    std::string_view name;  ///< as in the records
    double analysis::result::*figure;
};
inline constexpr std::array series_figures{
    series_figure{"rmse", &analysis::result::rmse},
    series_figure{"nrmse", &analysis::result::nrmse},
    series_figure{"sqnr_db", &analysis::result::sqnr_db},
    series_figure{"overflow_rate", &analysis::result::overflow_rate},
    series_figure{"clamp_rate", &analysis::result::clamp_rate},
    series_figure{"underflow_rate", &analysis::result::underflow_rate},
};

}  // namespace mx::compare
